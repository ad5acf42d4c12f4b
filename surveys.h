// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends.h"
#include "probe/figure_check.h"
#include "probe/survey.h"

namespace espalier {

/// What to probe: GPUs, each of which is a rank, or a number of ranks on one of them or on this
/// computer.
struct ProbeRequest {
  const BackendEntry* backend = nullptr;
  /// The devices are as CUDA numbers them; none: all. Of processes, by rank.
  DeviceChoice choice;
  int sharing = 0;  ///< ranks that share the only device; 0: they do not. Processes say themselves
  double timeout_s = 60;
};

/// Ranks of this computer where nobody says how many, and how many may share a device.
inline constexpr int kHostRanks = 4;
inline constexpr int kMaxVirtualRanks = 64;

/// The ranks whose devices are listed share one, or have one each. What is wrong where only some
/// of them share.
std::optional<std::string> share_devices(ProbeRequest& request);
inline constexpr const char* kHowToShare =
    "give each rank its own GPU, or all of them the same one: 0,0,0,0";

/// What is wrong with so many ranks on one device.
std::optional<std::string> too_many_sharing(int sharing);

/// Ranks of a comparison that nobody numbers: all GPUs where there are several, otherwise as many
/// as `unless_gpus` on the only one or on this computer. Throws what
/// `BackendEntry::count_devices` throws.
int ranks_to_probe(const BackendEntry& backend, int unless_gpus);

/// What a comparison without a topology has to probe: that many ranks on the devices chosen, in
/// turn on all there are, or on this computer. Throws Error{usage} when some but not all of them
/// share a device, and when more share one than can be probed.
ProbeRequest probe_request_for(const BackendEntry& backend, const DeviceChoice& choice, int ranks,
                               double timeout_s);

/// Told how many steps there will be, it says who is told of each.
using SurveyShown = std::function<std::function<void(const std::string&)>(std::size_t steps)>;

/// Measures the machine. Throws Error{unsupported} when there is no GPU to be used, and what the
/// back ends throw.
Survey survey_machine(const ProbeRequest& request, const SurveyShown& shown);

/// The machine that explains the survey, dated today.
Topology probed_machine(const Survey& survey);

/// Checks whether this computer still has the figures of a machine that was probed, with `backend`,
/// which `entry` made of `choice` for ranks on all GPUs of the machine. Null where there is nothing
/// to check. The back end must outlive it.
FigureCheck figure_check(const BackendEntry& entry, const DeviceChoice& choice, Backend& backend,
                         const Topology& machine, double timeout_s);

}  // namespace espalier

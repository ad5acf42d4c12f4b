// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Who launches the calls that a benchmark makes one after the other: one process all GPUs of its
/// host, a process for every GPU, or nobody, as they are nodes of a CUDA graph that was launched.
enum class LaunchMode : std::uint8_t { single, per_gpu, graph };

/// "single", "per_gpu", "graph".
std::string_view to_string(LaunchMode mode);
const std::vector<LaunchMode>& all_launch_modes();

/// What a call costs the host that launches it: `call_s` and, for every block in use of the fullest
/// GPU, `block_s`. Under NCCL a block is a channel.
struct LaunchCost {
  int since = 0;  ///< the first version of the library that has it: see `library_version`
  double call_s = 0;
  double block_s = 0;
  bool operator==(const LaunchCost&) const = default;
};

/// What it costs to launch the calls of a runtime. Both empty: nothing is known, or nothing is
/// launched.
struct LaunchCosts {
  std::optional<LaunchCost> per_gpu = {};  ///< of a process for every GPU
  /// Of one process for all GPUs of a host, for each of them, by ascending version.
  std::vector<LaunchCost> single = {};
  /// How sharply the calls of one process change over from waiting for their host to waiting for
  /// their GPUs: the exponent by which both times are combined. 1 adds them, infinity takes the
  /// longer one.
  double sharpness = std::numeric_limits<double>::infinity();
  /// How much sooner a kernel begins after the one before it where both are nodes of a CUDA graph,
  /// and not launched into a stream.
  double graph_saves_s = 0;
  bool operator==(const LaunchCosts&) const = default;

  bool empty() const { return !per_gpu && single.empty(); }
  /// The cost of a version, that of the newest for 0 and that of the oldest for older ones.
  /// \pre `single` is not empty
  const LaunchCost& single_of(int version) const;
};

/// "2.18", "2.18.3", "2.27.7+cuda13.0" as 201800, 201803, 202707; nothing for anything else.
std::optional<int> library_version(std::string_view text);
/// 201800 as "2.18", 201803 as "2.18.3".
std::string version_text(int version);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "surveys.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <set>

#include "core/words.h"
#include "probe/fit_machine.h"
#include "probe/probing_meter.h"

namespace espalier {

std::optional<std::string> share_devices(ProbeRequest& request) {
  std::vector<int>& devices = request.choice.devices;
  const std::set<int> different(devices.begin(), devices.end());
  if (different.size() == devices.size()) return std::nullopt;
  if (different.size() > 1) {
    return fmt::format("{} on {}: some of them share a GPU", counted(devices.size(), "rank"),
                       counted(different.size(), "GPU"));
  }
  request.sharing = static_cast<int>(devices.size());
  devices.resize(1);
  return std::nullopt;
}
std::optional<std::string> too_many_sharing(int sharing) {
  if (sharing <= kMaxVirtualRanks) return std::nullopt;
  return fmt::format("{} ranks on one device: at most {} can be probed", sharing, kMaxVirtualRanks);
}

int ranks_to_probe(const BackendEntry& backend, int unless_gpus) {
  const int gpus = backend.has_devices ? backend.count_devices() : 1;
  return gpus > 1 ? gpus : unless_gpus;
}

ProbeRequest probe_request_for(const BackendEntry& backend, const DeviceChoice& choice, int ranks,
                               double timeout_s) {
  ProbeRequest request{&backend, choice, 0, timeout_s};
  if (choice.gpu_memory) return request;
  if (!backend.has_devices) {
    request.sharing = ranks;
    if (const auto problem = too_many_sharing(ranks)) throw Error(ErrorKind::usage, *problem);
    return request;
  }
  const std::vector<int>& named = choice.devices;
  const int known = named.empty() ? backend.count_devices() : static_cast<int>(named.size());
  request.choice.devices.clear();
  for (int rank = 0; rank < ranks; ++rank) {
    const int next = rank % known;
    request.choice.devices.push_back(named.empty() ? next : named[static_cast<std::size_t>(next)]);
  }
  if (const auto problem = share_devices(request)) {
    throw Error(ErrorKind::usage, *problem, kHowToShare);
  }
  if (const auto problem = too_many_sharing(request.sharing)) {
    throw Error(ErrorKind::usage, *problem);
  }
  return request;
}

Survey survey_machine(const ProbeRequest& request, const SurveyShown& shown) {
  const BackendEntry& entry = *request.backend;
  const int sharing = entry.processes != nullptr ? entry.processes() : request.sharing;
  const Inventory inventory = entry.inventory(request.choice, sharing);
  DeviceChoice choice = request.choice;
  if (entry.has_devices && request.sharing > 0) {
    choice.devices.assign(static_cast<std::size_t>(request.sharing), choice.devices.front());
  }
  const std::unique_ptr<Backend> backend = entry.make(choice);
  Meter meter = probing_meter(*backend, inventory, request.timeout_s);
  meter.progress = shown(survey_steps(inventory, meter));
  return take_survey(inventory, meter);
}

Topology probed_machine(const Survey& survey) {
  return fit_machine(survey, fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))));
}

FigureCheck figure_check(const BackendEntry& entry, const DeviceChoice& choice, Backend& backend,
                         const Topology& machine, double timeout_s) {
  const bool is_on_gpus = measured_in_place_of_gpus(entry, choice).empty();
  if (is_on_gpus || entry.inventory == nullptr || !machine.has_working_sets()) return {};
  const int ranks =
      entry.processes != nullptr ? entry.processes() : static_cast<int>(machine.gpus().size());
  const Inventory inventory = entry.inventory({}, ranks);
  if (!can_check(machine, inventory)) return {};
  return [machine, inventory, meter = checking_meter(backend, inventory, timeout_s)] {
    return check_figures(machine, inventory, meter);
  };
}

}  // namespace espalier

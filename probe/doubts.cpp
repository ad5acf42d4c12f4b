// SPDX-License-Identifier: Apache-2.0
#include "probe/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "probe/fit_machine.h"

namespace espalier {

std::vector<std::string> doubts_about(const Topology& machine, std::string_view in_place_of_gpus,
                                      const std::vector<int>& devices) {
  const std::vector<NodeId> gpus = machine.gpus();
  std::vector<std::string> doubts;
  if (std::ranges::none_of(machine.sources, [](const std::string& source) {
        return source.starts_with(kProbedSource);
      })) {
    doubts.push_back(fmt::format("'{}' was not measured by espalier probe", machine.name));
  }
  const auto model =
      std::ranges::find_if(gpus, [&](NodeId gpu) { return !machine.node(gpu).model.empty(); });
  if (!in_place_of_gpus.empty() && model != gpus.end()) {
    doubts.push_back(fmt::format("'{}' describes {}, but {} are measured", machine.name,
                                 machine.node(*model).model, in_place_of_gpus));
  }
  if (!in_place_of_gpus.empty() || gpus.size() < 2) return doubts;
  const bool predicted_shared = !machine.node(gpus.front()).memory.empty();
  const bool measured_shared =
      std::set<int>(devices.begin(), devices.end()).size() < devices.size();
  if (predicted_shared && !measured_shared) {
    doubts.push_back(
        fmt::format("the ranks of '{}' share a GPU, but the measured ones do not: "
                    "use --devices 0,0,... to put them on one GPU",
                    machine.name));
  } else if (!predicted_shared && measured_shared) {
    doubts.push_back(
        fmt::format("the measured ranks share a GPU, but those of '{}' do not", machine.name));
  }
  return doubts;
}

}  // namespace espalier

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

std::vector<std::string> doubts_about(const Survey& survey) {
  // A rank's bandwidth, that of all ranks of a host, and latency: hosts that differ by less are
  // alike as far as such measurements tell.
  constexpr double kSlowShare = 0.7;
  constexpr double kLateFactor = 2;
  const auto of_one = [](const NetworkFigures& host) {
    return std::min(host.to.gbps, host.from.gbps);
  };
  const auto of_all = [](const NetworkFigures& host) { return host.all_gbps; };
  const auto latency_s = [](const NetworkFigures& host) {
    return std::max(host.to.latency_s, host.from.latency_s);
  };
  const std::vector<NetworkFigures>& hosts = survey.to_hosts;
  std::vector<std::string> doubts;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto doubt = [&](double value, double best, std::string_view what) {
      doubts.push_back(
          fmt::format("between hosts 0 and {}, {}: {:.3g}, {:.3g} to another host; the topology "
                      "says what most hosts reach",
                      i + 1, what, value, best));
    };
    const auto best_gbps = [&](const auto& figure) {
      return figure(*std::ranges::max_element(hosts, {}, figure));
    };
    if (of_one(hosts[i]) < kSlowShare * best_gbps(of_one)) {
      doubt(of_one(hosts[i]), best_gbps(of_one), "a rank sends fewer GB/s");
    } else if (of_all(hosts[i]) < kSlowShare * best_gbps(of_all)) {
      doubt(of_all(hosts[i]), best_gbps(of_all), "all ranks together send fewer GB/s");
    }
    const double best_s = latency_s(*std::ranges::min_element(hosts, {}, latency_s));
    if (latency_s(hosts[i]) > kLateFactor * best_s) {
      doubt(latency_s(hosts[i]) * 1e6, best_s * 1e6, "a message takes longer to start, in us");
    }
  }
  return doubts;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "probe/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "probe/fit_machine.h"
#include "probe/probing_meter.h"

namespace espalier {

bool was_probed(const Topology& machine) {
  return std::ranges::any_of(
      machine.sources, [](const std::string& source) { return source.starts_with(kProbedSource); });
}

std::vector<std::string> doubts_about(const Topology& machine, std::string_view in_place_of_gpus,
                                      const std::vector<int>& devices) {
  const std::vector<NodeId> gpus = machine.gpus();
  std::vector<std::string> doubts;
  if (!was_probed(machine)) {
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

namespace {

/// Those of `groups` that are reached more slowly than another one. `kind`: "host".
void doubt_slow_ones(const std::vector<GroupFigures>& groups, std::string_view kind,
                     std::vector<std::string>& doubts) {
  // A rank's bandwidth, that of all ranks of a group, and latency: groups that differ by less are
  // alike as far as such measurements tell.
  constexpr double kSlowShare = 0.7;
  constexpr double kLateFactor = 2;
  const auto of_one = [](const GroupFigures& group) {
    return std::min(group.to.gbps, group.from.gbps);
  };
  const auto of_all = [](const GroupFigures& group) { return group.all_gbps; };
  const auto latency_s = [](const GroupFigures& group) {
    return std::max(group.to.latency_s, group.from.latency_s);
  };
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto doubt = [&](double value, double best, std::string_view what) {
      doubts.push_back(
          fmt::format("between {0}s 0 and {1}, {2}: {3:.3g}, {4:.3g} to another {0}; the topology "
                      "says what most {0}s reach",
                      kind, i + 1, what, value, best));
    };
    const double best_of_one = of_one(*std::ranges::max_element(groups, {}, of_one));
    // More ranks send more: only as many are compared.
    double best_of_all = 0;
    for (const GroupFigures& group : groups) {
      if (group.pairs == groups[i].pairs) best_of_all = std::max(best_of_all, of_all(group));
    }
    if (of_one(groups[i]) < kSlowShare * best_of_one) {
      doubt(of_one(groups[i]), best_of_one, "a rank sends fewer GB/s");
    } else if (of_all(groups[i]) < kSlowShare * best_of_all) {
      doubt(of_all(groups[i]), best_of_all, "all ranks together send fewer GB/s");
    }
    const double best_s = latency_s(*std::ranges::min_element(groups, {}, latency_s));
    if (latency_s(groups[i]) > kLateFactor * best_s) {
      doubt(latency_s(groups[i]) * 1e6, best_s * 1e6, "a message takes longer to start, in us");
    }
  }
}

/// How the ranks of a host are placed otherwise than those of host 0. Where one is not bound to a
/// single socket, its whole host counts as one.
std::string_view difference(const Inventory& inventory, int host) {
  const auto each = inventory.ranks_of_a_host();
  const auto are_on_several = [&](int one) {
    const auto first = inventory.sockets.begin() + static_cast<std::ptrdiff_t>(one) * each;
    return std::any_of(first, first + each, [](int socket) { return socket != 0; });
  };
  if (!are_on_several(host)) return "on one socket, or not bound to single ones, other";
  if (!are_on_several(0)) return "bound to several sockets, other";
  return "on its sockets in another order";
}

/// The first host whose ranks are on other sockets than those of the first host; 0: none.
int differently_placed(const Inventory& inventory) {
  const int each = inventory.ranks_of_a_host();
  for (int rank = each; rank < static_cast<int>(inventory.sockets.size()); ++rank) {
    const auto socket_of = [&](int of) { return inventory.sockets[static_cast<std::size_t>(of)]; };
    if (socket_of(rank) != socket_of(rank % each)) return rank / each;
  }
  return 0;
}

/// The first rank whose GPU is another one than that of its number on the first host; 0: none.
int rank_on_another_gpu(const Inventory& inventory) {
  if (inventory.is_shared()) return 0;
  const int each = inventory.ranks_of_a_host();
  const auto name_of = [&](int rank) {
    return inventory.devices[static_cast<std::size_t>(rank)].name;
  };
  for (int rank = each; rank < inventory.ranks(); ++rank) {
    if (name_of(rank) != name_of(rank % each)) return rank;
  }
  return 0;
}

}  // namespace

std::vector<std::string> doubts_about(const Survey& survey) {
  std::vector<std::string> doubts;
  doubt_slow_ones(survey.to_sockets, "socket", doubts);
  doubt_slow_ones(survey.to_hosts, "host", doubts);
  if (const int host = differently_placed(survey.inventory)) {
    doubts.push_back(fmt::format(
        "the ranks of host {} are {} than those of host 0; the topology says where those of host 0 "
        "are",
        host, difference(survey.inventory, host)));
  }
  if (const int rank = rank_on_another_gpu(survey.inventory)) {
    const std::vector<ProbedDevice>& devices = survey.inventory.devices;
    const int like = rank % survey.inventory.ranks_of_a_host();
    doubts.push_back(fmt::format(
        "rank {} is on {}, and rank {} of host 0 on {}; the topology says what host 0 has", rank,
        devices[static_cast<std::size_t>(rank)].name, like,
        devices[static_cast<std::size_t>(like)].name));
  }
  if (caches_hold_half_of_what_is_probed(survey.inventory)) {
    doubts.emplace_back(
        "the caches of a host hold more than half of what was measured; longer messages may take "
        "longer than predicted");
  }
  return doubts;
}

}  // namespace espalier

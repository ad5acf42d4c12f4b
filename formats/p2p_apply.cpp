// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/units.h"
#include "core/words.h"
#include "formats/p2p_machine.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// No copy engine reaches less of a link that works.
constexpr double kLeastShare = 0.5;
constexpr double kLargestGbps = 1e5;
constexpr double kSmallestGbps = 1e-3;
constexpr std::size_t kListed = 6;

double theory(const Link& link) { return link.gbps * link.count; }

class Applier {
 public:
  Applier(const P2pRates& rates, Topology& machine)
      : rates_(rates),
        machine_(machine),
        gpus_(machine.gpus()),
        router_(machine, machine.profile("ideal")) {}

  void apply() {
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) apply_pair(b, a);
    }
    for (const auto& [link, gbps] : best_) set_link(machine_.link(link), gbps);
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) set_memory(gpu);
    for (const auto& [why, pairs] : doubts_) {
      std::vector<std::string> listed(
          pairs.begin(),
          pairs.begin() + static_cast<std::ptrdiff_t>(std::min(kListed, pairs.size())));
      if (pairs.size() > kListed) listed.push_back(fmt::format("{} more", pairs.size() - kListed));
      machine_.notes.push_back(
          fmt::format("{}{} {}", why, why.ends_with("?") ? "" : ":", join(listed, ", ")));
    }
  }

 private:
  const std::string& name(int gpu) const {
    return machine_.node(gpus_[static_cast<std::size_t>(gpu)]).name;
  }
  void doubt(int a, int b, double gbps, const std::string& why) {
    doubts_[why].push_back(fmt::format("{}-{} {} GB/s", name(a), name(b), format_gbps(gbps)));
  }

  void apply_pair(int a, int b) {
    const Route* route =
        router_.route(gpus_[static_cast<std::size_t>(a)], gpus_[static_cast<std::size_t>(b)]);
    if (route == nullptr || route->hops.empty()) return;
    const auto direct = P2pRates::slower(rates_.direct, a, b);
    const auto staged = P2pRates::slower(rates_.staged, a, b);
    const bool is_staged = route->kind == RouteKind::staged;
    const auto rate = is_staged && staged ? staged : direct;
    if (!rate || *rate < kSmallestGbps) {
      if (staged)
        doubt(a, b, *staged,
              "there are only rates without peer access, which say nothing "
              "of the links of these pairs");
      return;
    }
    if (route->kind == RouteKind::gpu_fabric) {
      for (const Hop& hop : route->hops) take(hop.link, *rate);
      return;
    }
    apply_host(a, b, *route, *rate);
  }

  /// The links with the least capacity limit the route: one of them, or those of the two GPUs.
  void apply_host(int a, int b, const Route& route, double rate) {
    double least = kLargestGbps;
    for (const Hop& hop : route.hops) least = std::min(least, theory(machine_.link(hop.link)));
    std::vector<std::size_t> limits;
    for (std::size_t i = 0; i < route.hops.size(); ++i) {
      if (theory(machine_.link(route.hops[i].link)) <= least * 1.01) limits.push_back(i);
    }
    const bool ends = std::ranges::all_of(
        limits, [&](std::size_t i) { return i == 0 || i + 1 == route.hops.size(); });
    if (limits.size() > 1 && !ends) {
      doubt(a, b, rate, "which link limits these pairs cannot be told");
      return;
    }
    for (const std::size_t i : limits) take(route.hops[i].link, rate);
  }

  void take(LinkId link, double gbps) {
    double& best = best_.try_emplace(link, 0).first->second;
    best = std::max(best, gbps);
  }

  void set_link(Link& link, double gbps) {
    const double most = theory(link);
    const std::string what =
        fmt::format("{}-{} {} of {} GB/s", machine_.node(link.a).name, machine_.node(link.b).name,
                    format_gbps(gbps), format_gbps(most));
    if (gbps > most) {
      doubts_
          ["rates above what these links carry, which are taken to be as fast as they can be: "
           "is it this machine?"]
              .push_back(what);
    } else if (gbps < kLeastShare * most) {
      doubts_["rates below half of what these links carry: is it this machine?"].push_back(what);
    }
    link.measured_gbps = std::min(gbps, most);
    link.measured_factor = 1;
  }

  void set_memory(std::size_t gpu) {
    Node& node = machine_.node(gpus_[gpu]);
    const auto& gbps = rates_.memory[gpu];
    if (gbps && *gbps >= 1 && node.memory.empty()) node.memory_gbps = *gbps;
  }

  const P2pRates& rates_;
  Topology& machine_;
  std::vector<NodeId> gpus_;
  Router router_;
  std::map<LinkId, double> best_;
  std::map<std::string, std::vector<std::string>> doubts_;  ///< pairs, by what is doubted
};

}  // namespace

void apply_rates(const P2pRates& rates, Topology& machine) { Applier(rates, machine).apply(); }

}  // namespace espalier

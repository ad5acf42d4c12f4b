// SPDX-License-Identifier: Apache-2.0
// What one rank has, another needs, so it travels from place to place, by ops that each pay their
// start-up and the latency of their routes. An op moves it over one route, or over two when it
// fetches operands and puts the result elsewhere, and then pays the larger start-up once. Neither
// the start-up nor the latency of a route between two places is less than on the best path that the
// links allow, taken for each by itself. So the shortest way over such ops is a lower bound.
#include "planner/time_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/words.h"
#include "planner/packing/demands.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxPlaces = 128;
constexpr double kNever = std::numeric_limits<double>::infinity();

/// The least cost of a path from `source` to every node, past other GPUs if these forward, where
/// `extend` says what a path of some cost costs with one link more.
template <class Extend>
std::vector<double> least_costs(const Topology& topology,
                                const std::vector<std::vector<LinkId>>& links, NodeId source,
                                bool gpus_forward, const Extend& extend) {
  std::vector<double> cost(topology.nodes.size(), kNever);
  using Entry = std::pair<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  cost[static_cast<std::size_t>(source)] = 0;
  open.emplace(0, source);
  while (!open.empty()) {
    const auto [at_s, node] = open.top();
    open.pop();
    if (at_s > cost[static_cast<std::size_t>(node)]) continue;
    const bool is_end = topology.node(node).kind == NodeKind::gpu && !gpus_forward;
    if (is_end && node != source) continue;
    for (const LinkId id : links[static_cast<std::size_t>(node)]) {
      const Link& link = topology.link(id);
      const NodeId next = link.a == node ? link.b : link.a;
      const double next_s = extend(at_s, link);
      if (next_s >= cost[static_cast<std::size_t>(next)]) continue;
      cost[static_cast<std::size_t>(next)] = next_s;
      open.emplace(next_s, next);
    }
  }
  return cost;
}

/// What ops cost at least, between the places where data may lie.
class Ways {
 public:
  Ways(const Router& router, const Placement& placement, bool through_gpus)
      : topology_(router.topology()),
        latency_is_last_(!router.profile().gets_wait &&
                         router.profile().reduction != ReductionMode::separate) {
    list_places(router, placement);
    const bool is_large = places() > kMaxPlaces;
    find_routes(router, is_large ? 1 : places(),
                topology_.gpus_forward || through_gpus || is_large);
    fuse();
  }

  /// Those whose ways are known, the first ones: all, or the first rank.
  std::size_t sources() const { return routes_.size(); }

  std::size_t places() const { return places_.size(); }

  /// The least start-up and latency of any transfer; 0 when there is none.
  double ends_s() const {
    double overhead_s = kNever, latency_s = kNever;
    for (std::size_t from = 0; from < sources(); ++from) {
      for (std::size_t to = 0; to < places(); ++to) {
        if (from == to || routes_[from][to].latency_s == kNever) continue;
        overhead_s = std::min(overhead_s, routes_[from][to].overhead_s);
        latency_s = std::min(latency_s, routes_[from][to].latency_s);
      }
    }
    return overhead_s == kNever ? 0 : overhead_s + (latency_is_last_ ? latency_s : 0);
  }

  /// The shortest way from a place to every other one.
  struct Tree {
    std::vector<double> s;
    std::vector<std::size_t> parent;  ///< where the last op of the way began
  };
  Tree from(std::size_t source) const {
    Tree tree{std::vector<double>(places(), kNever), std::vector<std::size_t>(places(), source)};
    std::vector<bool> settled(places(), false);
    tree.s[source] = 0;
    if (sources() < places()) {  // what one op takes at least
      for (std::size_t to = 0; to < places(); ++to) tree.s[to] = ops_[source][to].s();
      return tree;
    }
    while (true) {
      std::size_t nearest = places();
      for (std::size_t place = 0; place < places(); ++place) {
        if (settled[place] || tree.s[place] == kNever) continue;
        if (nearest == places() || tree.s[place] < tree.s[nearest]) nearest = place;
      }
      if (nearest == places()) return tree;
      settled[nearest] = true;
      for (std::size_t next = 0; next < places(); ++next) {
        const double next_s = tree.s[nearest] + ops_[nearest][next].s();
        if (settled[next] || next_s >= tree.s[next]) continue;
        tree.s[next] = next_s;
        tree.parent[next] = nearest;
      }
    }
  }

  /// "gpu0 > gpu1 > gpu5 takes 1 op: start-up 3.1 us, wires 0.6 us".
  std::string describe(const Tree& tree, std::size_t source, std::size_t last) const {
    std::vector<std::string> names;
    double overhead_s = 0, latency_s = 0;
    int ops = 0;
    for (std::size_t at = last; at != source; at = tree.parent[at]) {
      const Cost& op = ops_[tree.parent[at]][at];
      names.push_back(name(at));
      if (op.over != kNone) names.push_back(name(op.over));
      overhead_s += op.s() - op.latency_s;
      latency_s += op.latency_s;
      ++ops;
    }
    names.push_back(name(source));
    std::reverse(names.begin(), names.end());
    return fmt::format(
        "what {} has is at {} after {} at the earliest ({}): {:.6g} us of start-up "
        "and {:.6g} us on wires",
        name(source), name(last), counted(ops, "op"), join(names, " > "), overhead_s * 1e6,
        latency_s * 1e6);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Cost {
    double overhead_s = kNever;
    double latency_s = kNever;
    double hop_s = 0;          ///< at least, latency included (Protocol::hop_s)
    std::size_t over = kNone;  ///< the place of an op that fetches and puts
    double s() const { return std::max(overhead_s + latency_s, hop_s); }
  };

  const std::string& name(std::size_t place) const { return topology_.node(places_[place]).name; }

  /// Ranks first.
  void list_places(const Router& router, const Placement& placement) {
    places_ = placement.ranks;
    places_.insert(places_.end(), placement.relays.begin(), placement.relays.end());
    if (router.scope() == LinkScope::fabric) return;
    std::set<int> hosts;
    for (const NodeId place : places_) hosts.insert(topology_.node(place).host);
    for (NodeId node = 0; node < static_cast<NodeId>(topology_.nodes.size()); ++node) {
      const Node& one = topology_.node(node);
      if (one.kind == NodeKind::cpu && hosts.contains(one.host)) places_.push_back(node);
    }
  }

  /// What an op in a switch costs at least instead of start-up and hops, carried out by one of the
  /// GPUs of the placement; infinite where there is none.
  double least_slice_s(const Router& router) const {
    std::set<std::string_view> models;
    for (const NodeId place : places_) models.insert(topology_.node(place).model);
    std::set<bool> is_network;  // of the switches
    for (const Node& node : topology_.nodes) {
      if (node.combines) is_network.insert(node.kind == NodeKind::fabric);
    }
    double least_s = kNever;
    for (const bool in_network : is_network) {
      for (const std::string_view model : models) {
        const SwitchOps* ops = router.profile().switch_ops(model, in_network);
        if (ops != nullptr) least_s = std::min(least_s, ops->slice_s);
      }
    }
    return least_s;
  }

  void find_routes(const Router& router, std::size_t sources, bool gpus_forward) {
    std::vector<std::vector<LinkId>> links(topology_.nodes.size());
    for (LinkId id = 0; id < static_cast<LinkId>(topology_.links.size()); ++id) {
      const Link& link = topology_.link(id);
      const bool is_fabric = link.link_class == LinkClass::gpu_fabric;
      if (router.scope() == LinkScope::fabric && !is_fabric) continue;
      links[static_cast<std::size_t>(link.a)].push_back(id);
      links[static_cast<std::size_t>(link.b)].push_back(id);
    }
    const auto overhead_s = [&](const Link& link) {
      const Profile& profile = router.profile();
      const auto known = profile.links.find(link.kind);
      const double copy_s = known == profile.links.end() ? 0 : known->second.overhead_s;
      // What reads its operands starts as a kernel, whatever the link.
      const bool reads = profile.reduction == ReductionMode::reading;
      return reads ? std::min(copy_s, profile.reduce_overhead_s) : copy_s;
    };
    const auto hop_s = [&](const Link& link) {
      const auto known = router.profile().protocol.hop_s.find(link.link_class);
      return known == router.profile().protocol.hop_s.end() ? 0 : known->second;
    };
    const double slice_s = least_slice_s(router);
    routes_.resize(sources);
    for (std::size_t from = 0; from < sources; ++from) {
      const auto latencies =
          least_costs(topology_, links, places_[from], gpus_forward,
                      [](double at_s, const Link& link) { return at_s + link.latency_s; });
      const auto overheads = least_costs(
          topology_, links, places_[from], gpus_forward, [&](double at_s, const Link& link) {
            return std::max(at_s, std::min(overhead_s(link), slice_s));
          });
      const auto hops = least_costs(topology_, links, places_[from], gpus_forward,
                                    [&](double at_s, const Link& link) {
                                      return std::max(at_s, std::min(hop_s(link), slice_s));
                                    });
      for (const NodeId to : places_) {
        const auto node = static_cast<std::size_t>(to);
        const double hop = hops[node] == kNever ? 0 : hops[node];
        routes_[from].push_back({overheads[node], latencies[node], hop, kNone});
      }
    }
  }

  /// Ops of one route and of two.
  void fuse() {
    ops_ = routes_;
    if (sources() < places()) return;
    for (std::size_t over = 0; over < places(); ++over) {
      for (std::size_t from = 0; from < places(); ++from) {
        for (std::size_t to = 0; to < places(); ++to) {
          if (from == over || to == over || from == to) continue;
          const Cost& first = routes_[from][over];
          const Cost& second = routes_[over][to];
          const Cost both{std::max(first.overhead_s, second.overhead_s),
                          first.latency_s + second.latency_s, std::max(first.hop_s, second.hop_s),
                          over};
          if (both.s() < ops_[from][to].s()) ops_[from][to] = both;
        }
      }
    }
  }

  const Topology& topology_;
  const bool latency_is_last_;
  std::vector<NodeId> places_;
  std::vector<std::vector<Cost>> routes_;  ///< of single transfers, from and to
  std::vector<std::vector<Cost>> ops_;
};

/// Who needs what whom has: pairs of ranks; every pair where all combine, or have something for
/// all.
std::vector<Demand> needs_of(Collective collective, int root, int ranks) {
  const bool is_all_pairs =
      collective == Collective::allreduce || collective == Collective::alltoall;
  return demands_of(is_all_pairs ? Collective::allgather : collective, root, ranks);
}

}  // namespace

double TimeBound::least_s(double bytes, const Bound& bandwidth) const {
  const bool moves = std::isfinite(bandwidth.algbw_gbps) && bandwidth.algbw_gbps > 0;
  const double links_s = moves ? ends_s + bytes * wire / (bandwidth.algbw_gbps * 1e9) : 0;
  return call_s + std::max(way_s, links_s);
}

TimeBound time_bound(Collective collective, int root, const Router& router,
                     const Placement& placement, const TimeBoundOptions& options) {
  TimeBound bound;
  bound.call_s = router.profile().call_overhead_s;
  bound.protocol = router.profile().protocol.name;
  const Ways ways(router, placement, options.through_gpus);
  bound.ends_s = ways.ends_s();
  const auto ranks = placement.ranks.size();
  const bool is_turned = info(collective).reduces;  // as demands of reductions are
  const std::size_t sources = std::min(ranks, ways.sources());
  std::vector<std::vector<bool>> needs(sources, std::vector<bool>(ranks, false));
  const auto need = [&](std::size_t from, std::size_t to) {
    if (is_turned) std::swap(from, to);
    if (from < sources) needs[from][to] = true;
  };
  for (const Demand& demand : needs_of(collective, root, static_cast<int>(ranks))) {
    const auto from = static_cast<std::size_t>(demand.from);
    if (demand.to != kEveryRank) {
      need(from, static_cast<std::size_t>(demand.to));
    } else if (is_turned || from < sources) {
      for (std::size_t to = 0; to < (is_turned ? sources : ranks); ++to) need(from, to);
    }
  }
  for (std::size_t from = 0; from < sources; ++from) {
    const Ways::Tree tree = ways.from(from);
    for (std::size_t to = 0; to < ranks; ++to) {
      if (from == to || !needs[from][to] || !std::isfinite(tree.s[to])) continue;
      if (tree.s[to] <= bound.way_s) continue;
      bound.way_s = tree.s[to];
      bound.certificate = ways.describe(tree, from, to);
    }
  }
  return bound;
}

}  // namespace espalier

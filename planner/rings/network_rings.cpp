// SPDX-License-Identifier: Apache-2.0
#include "planner/rings/network_rings.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace espalier {
namespace {

/// More rings than this over the network gain nothing.
constexpr std::size_t kMaxRings = 32;
/// Rounds of improvement; few machines need more than two.
constexpr int kMaxTurns = 8;

/// The network link by which a rank leaves its machine for another; -1 when it can't.
LinkId port(const Router& router, NodeId from, NodeId elsewhere) {
  const Route* route = router.route(from, elsewhere);
  if (route == nullptr) return -1;
  for (const Hop& hop : route->hops) {
    const Link& link = router.topology().link(hop.link);
    if (link.link_class == LinkClass::network) return hop.link;
  }
  return -1;
}

/// Where the rings of one island are cut open.
class Cuts {
 public:
  Cuts(const std::vector<Ring>& rings, std::map<int, LinkId> port_of_rank, bool both_ways)
      : rings_(rings), port_of_rank_(std::move(port_of_rank)), both_ways_(both_ways) {}

  std::size_t ports() const {
    std::set<LinkId> ports;
    for (const auto& [rank, port] : port_of_rank_) ports.insert(port);
    return ports.size();
  }

  /// Chooses cuts for `count` rings: one after the other, then each again as long as that helps.
  void choose(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      first_.push_back(best_first(ring(i)));
      load(i, 1);
    }
    bool improved = true;
    for (int round = 0; improved && round < kMaxTurns; ++round) {
      improved = false;
      for (std::size_t i = 0; i < count; ++i) {
        load(i, -1);
        const std::size_t before = std::exchange(first_[i], best_first(ring(i)));
        improved = improved || before != first_[i];
        load(i, 1);
      }
    }
  }

  void append(std::size_t i, Ring& joined) const {
    const std::size_t n = ring(i).order.size();
    for (std::size_t step = 0; step < n; ++step) {
      const std::size_t at = (first_[i] + step) % n;
      joined.order.push_back(ring(i).order[at]);
      joined.relays.push_back(step + 1 < n ? ring(i).relays[at] : -1);
    }
  }

 private:
  const Ring& ring(std::size_t i) const { return rings_[i % rings_.size()]; }

  std::pair<LinkId, LinkId> ends(const Ring& ring, std::size_t first) const {
    const std::size_t n = ring.order.size();
    return {port_of_rank_.at(ring.order[first]), port_of_rank_.at(ring.order[(first + n - 1) % n])};
  }

  /// The first rank after the cut.
  std::size_t best_first(const Ring& ring) {
    // Growth of the sum of squared loads, halved: even loads have the least sum.
    const auto cost = [&](std::size_t first) {
      const auto [in, out] = ends(ring, first);
      const bool twice = both_ways_ && in == out;
      return entering_[in] + leaving_[out] + (both_ways_ ? leaving_[in] + entering_[out] : 0) +
             (twice ? 2 : 0);
    };
    std::size_t best = 0;
    for (std::size_t first = 1; first < ring.order.size(); ++first) {
      if (cost(first) < cost(best)) best = first;
    }
    return best;
  }

  void load(std::size_t i, int times) {
    const auto [in, out] = ends(ring(i), first_[i]);
    entering_[in] += times;
    leaving_[out] += times;
    if (!both_ways_) return;
    entering_[out] += times;
    leaving_[in] += times;
  }

  const std::vector<Ring>& rings_;
  const std::map<int, LinkId> port_of_rank_;
  const bool both_ways_;
  std::vector<std::size_t> first_;
  std::map<LinkId, int> entering_, leaving_;
};

}  // namespace

std::vector<Ring> join_rings(const Router& router, const Placement& placement,
                             const std::vector<std::vector<Ring>>& rings_by_island,
                             bool both_ways) {
  const auto node = [&](int rank) { return placement.ranks[static_cast<std::size_t>(rank)]; };
  std::vector<Cuts> islands;
  std::size_t count = 1;
  for (std::size_t i = 0; i < rings_by_island.size(); ++i) {
    const std::vector<Ring>& rings = rings_by_island[i];
    const int elsewhere = rings_by_island[(i + 1) % rings_by_island.size()].front().order.front();
    std::map<int, LinkId> port_of_rank;
    for (const int rank : rings.front().order) {
      port_of_rank[rank] = port(router, node(rank), node(elsewhere));
    }
    islands.emplace_back(rings, std::move(port_of_rank), both_ways);
    count = std::max({count, rings.size(), std::min(islands.back().ports(), kMaxRings)});
  }
  for (Cuts& island : islands) island.choose(count);
  std::vector<Ring> joined(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (const Cuts& island : islands) island.append(i, joined[i]);
  }
  return joined;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/relay_roles.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

/// More relays than these keep the roles that all of them have together: each change costs a round
/// of maximum flows.
constexpr std::size_t kMaxChangedRelays = 32;

using Roles = std::vector<RelayRole>;

class RoleChooser {
 public:
  RoleChooser(const Router& router, const Placement& placement, Supply supply, MediaUse media,
              int root)
      : router_(router),
        placement_(placement),
        supply_(std::move(supply)),
        media_(media),
        root_(root),
        best_{Roles(placement.relays.size(), RelayRole::unused), 0} {
    best_.bytes_per_s = rate(best_.roles);
  }

  RelayPlan run() {
    const std::size_t relays = placement_.relays.size();
    // A relay that forwards may be left out as well, so that it is never worse than none.
    offer(Roles(relays, RelayRole::forwards));
    offer(Roles(relays, RelayRole::member));
    if (relays <= kMaxComparedRelays) {
      for (unsigned members = 1; members + 1 < 1U << relays; ++members) offer(roles_of(members));
    } else if (relays <= kMaxChangedRelays) {
      change_one_by_one();
    }
    leave_out();
    return std::move(best_);
  }

 private:
  Rational rate(const Roles& roles) const {
    const CapacityGraph graph = capacity_graph(router_, placement_, media_, root_, roles);
    Supply supply = supply_;
    supply.resize(static_cast<std::size_t>(graph.ranks), 0);
    const TreeRate rate = best_rate(graph, supply);
    return Rational(rate.capacity, rate.supply) * graph.unit_bytes_per_s;
  }

  bool offer(const Roles& roles) {
    const Rational offered = rate(roles);
    if (offered <= best_.bytes_per_s) return false;
    best_ = {roles, offered};
    return true;
  }

  Roles roles_of(unsigned members) const {
    Roles roles;
    for (std::size_t relay = 0; relay < placement_.relays.size(); ++relay) {
      const bool is_member = (members >> relay & 1U) != 0;
      roles.push_back(is_member ? RelayRole::member : RelayRole::forwards);
    }
    return roles;
  }

  void change_one_by_one() {
    bool better = true;
    while (better) {
      better = false;
      for (std::size_t relay = 0; relay < best_.roles.size(); ++relay) {
        Roles roles = best_.roles;
        const bool is_member = roles[relay] == RelayRole::member;
        roles[relay] = is_member ? RelayRole::forwards : RelayRole::member;
        better = offer(roles) || better;
      }
    }
  }

  /// Relays that the rate does not need: fewer transfers, lower trees.
  void leave_out() {
    if (best_.roles.size() > kMaxChangedRelays) return;
    for (RelayRole& role : best_.roles) {
      const RelayRole before = std::exchange(role, RelayRole::unused);
      if (before != RelayRole::unused && rate(best_.roles) < best_.bytes_per_s) role = before;
    }
  }

  const Router& router_;
  const Placement& placement_;
  const Supply supply_;
  const MediaUse media_;
  const int root_;
  RelayPlan best_;
};

/// A way from a site of the tree to another, relay by relay.
struct Segment {
  int to = 0;
  std::vector<NodeId> path;
};

class Unfolder {
 public:
  Unfolder(const CapacityGraph& graph, const Placement& placement) {
    const int ranks = static_cast<int>(placement.ranks.size());
    for (std::size_t i = 0; i < placement.relays.size(); ++i) {
      site_of_[placement.relays[i]] = ranks + static_cast<int>(i);
    }
    for (int vertex = 0; vertex < graph.ranks; ++vertex) {
      const auto relay = site_of_.find(graph.node[static_cast<std::size_t>(vertex)]);
      site_of_vertex_.push_back(relay == site_of_.end() ? vertex : relay->second);
    }
    first_relay_ = ranks;
  }

  PlannedTree run(const PlannedTree& tree) const {
    PlannedTree result{site(tree.root), tree.weight, {}};
    std::set<int> reached{result.root};
    for (const TreeEdge& edge : tree.edges) {
      int at = site(edge.parent);
      std::vector<Segment> way = segments(edge);
      // From the last relay on the way that has the data already.
      for (std::size_t i = way.size(); i-- > 0;) {
        if (reached.count(way[i].to) == 0) continue;
        at = way[i].to;
        way.erase(way.begin(), way.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        break;
      }
      for (Segment& segment : way) {
        reached.insert(segment.to);
        result.edges.push_back({at, segment.to, std::move(segment.path)});
        at = segment.to;
      }
    }
    drop_leaves(result);
    return result;
  }

 private:
  int site(int vertex) const { return site_of_vertex_[static_cast<std::size_t>(vertex)]; }

  /// The edge cut at its relays; where it comes to one twice, without what lies between.
  std::vector<Segment> segments(const TreeEdge& edge) const {
    std::vector<Segment> way{{0, {}}};
    for (const NodeId node : edge.path) {
      const auto relay = site_of_.find(node);
      if (relay == site_of_.end()) {
        way.back().path.push_back(node);
        continue;
      }
      way.back().to = relay->second;
      const auto earlier =
          std::find_if(way.begin(), way.end(), [&](auto& one) { return one.to == relay->second; });
      way.erase(earlier + 1, way.end());
      way.push_back({0, {}});
    }
    way.back().to = site(edge.child);
    return way;
  }

  /// Relays from which nothing goes on.
  void drop_leaves(PlannedTree& tree) const {
    std::set<int> parents;
    std::vector<TreeEdge> kept;
    for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge) {
      if (edge->child >= first_relay_ && parents.count(edge->child) == 0) continue;
      parents.insert(edge->parent);
      kept.push_back(std::move(*edge));
    }
    std::reverse(kept.begin(), kept.end());
    tree.edges = std::move(kept);
  }

  std::map<NodeId, int> site_of_;  ///< of relays
  std::vector<int> site_of_vertex_;
  int first_relay_ = 0;
};

}  // namespace

RelayPlan choose_roles(const Router& router, const Placement& placement, const Supply& supply,
                       MediaUse media, int root) {
  CHECK(supply.size() == placement.ranks.size());
  return RoleChooser(router, placement, supply, media, root).run();
}

void make_relays_sites(std::vector<PlannedTree>& trees, const CapacityGraph& graph,
                       const Placement& placement) {
  const Unfolder unfolder(graph, placement);
  for (PlannedTree& tree : trees) tree = unfolder.run(tree);
}

}  // namespace espalier

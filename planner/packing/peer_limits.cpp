// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/peer_limits.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace espalier {
namespace {

struct Pair {
  int a = 0, b = 0;  ///< sites
};

/// How many peers a site may get at a step, within its limit: `maximum`, and `spare` less than
/// that.
struct Room {
  int maximum = std::numeric_limits<int>::max();
  int spare = 0;
};

class PeerChooser {
 public:
  PeerChooser(const Router& router, const Placement& placement)
      : router_(router), sites_(placement.ranks) {
    sites_.insert(sites_.end(), placement.relays.begin(), placement.relays.end());
    const std::size_t n = sites_.size();
    may_join_.assign(n, std::vector<bool>(n, false));
    peers_.assign(n, 0);
    part_.resize(n);
    std::iota(part_.begin(), part_.end(), 0);
    list_pairs();
  }

  /// `by_groups`: see join_groups; where limits are too low for that, chains still connect.
  std::optional<PeerChoice> run(bool by_groups) {
    by_groups ? join_groups() : connect({.maximum = 2});  // a chain always has an end to go on from
    connect({});
    fill();
    return is_connected() ? std::optional(std::move(may_join_)) : std::nullopt;
  }

 private:
  const Node& node(int site) const {
    return router_.topology().node(sites_[static_cast<std::size_t>(site)]);
  }

  void list_pairs() {
    const int n = static_cast<int>(sites_.size());
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b) {
        const NodeId from = sites_[static_cast<std::size_t>(a)];
        const NodeId to = sites_[static_cast<std::size_t>(b)];
        const Route* route = router_.route(from, to);
        if (route == nullptr) continue;
        if (!maps_memory(router_.topology(), *route, from, to)) {
          allow({a, b});
          free_pairs_.push_back({a, b});
          continue;
        }
        double s_per_gb = 0;  // as if hop by hop
        for (const Hop& hop : route->hops) s_per_gb += 1 / router_.capacity_gbps(hop.link);
        by_distance_[s_per_gb].push_back({a, b});
      }
    }
    // Neighbours in the machine's order, then those two apart, and so on, counted around: each
    // site comes as often as any other.
    const auto around = [n](const Pair& pair) {
      const int apart = pair.b - pair.a;
      return std::min(apart, n - apart);
    };
    for (auto& [distance, pairs] : by_distance_) std::ranges::stable_sort(pairs, {}, around);
  }

  void allow(const Pair& pair) {
    may_join_[static_cast<std::size_t>(pair.a)][static_cast<std::size_t>(pair.b)] = true;
    may_join_[static_cast<std::size_t>(pair.b)][static_cast<std::size_t>(pair.a)] = true;
  }

  /// Whether the site may have another peer and stay within the room.
  bool fits(int site, const Room& room) const {
    const int limit = node(site).peer_limit;
    const int peers = peers_[static_cast<std::size_t>(site)];
    return peers < room.maximum && (limit == 0 || peers < limit - room.spare);
  }

  /// Makes the pair peers if both have room.
  bool join(const Pair& pair, const Room& room) {
    if (!fits(pair.a, room) || !fits(pair.b, room)) return false;
    if (may_join_[static_cast<std::size_t>(pair.a)][static_cast<std::size_t>(pair.b)]) return false;
    allow(pair);
    ++peers_[static_cast<std::size_t>(pair.a)];
    ++peers_[static_cast<std::size_t>(pair.b)];
    unite(pair);
    return true;
  }

  /// Joins parts of a host, nearest first.
  void connect(const Room& room) {
    for (const auto& [distance, pairs] : by_distance_) {
      for (const Pair& pair : pairs) {
        if (part_[static_cast<std::size_t>(pair.a)] != part_[static_cast<std::size_t>(pair.b)]) {
          join(pair, room);
        }
      }
    }
  }

  /// Joins every group of nearest sites to every other one, near groups first, by the two sites
  /// with fewest peers so far: what groups send each other then needs no third one to pass it on.
  void join_groups() {
    if (by_distance_.empty()) return;
    const std::vector<int> group = nearest_groups();
    const auto peers = [&](const Pair& pair) {
      return peers_[static_cast<std::size_t>(pair.a)] + peers_[static_cast<std::size_t>(pair.b)];
    };
    const Room room{.spare = 2};  // for near ones
    std::set<std::pair<int, int>> joined;
    for (const auto& [distance, pairs] : by_distance_) {
      std::map<std::pair<int, int>, std::vector<Pair>> between;
      for (const Pair& pair : pairs) {
        const std::pair<int, int> groups = std::minmax(group[static_cast<std::size_t>(pair.a)],
                                                       group[static_cast<std::size_t>(pair.b)]);
        if (groups.first != groups.second) between[groups].push_back(pair);
      }
      for (auto& [groups, candidates] : between) {
        std::ranges::stable_sort(candidates, {}, peers);
        for (auto pair = candidates.begin(); pair != candidates.end() && !joined.contains(groups);
             ++pair) {
          if (join(*pair, room)) joined.insert(groups);
        }
      }
    }
  }

  /// Sites that pairs at the least distance join, by number of their first.
  std::vector<int> nearest_groups() const {
    std::vector<int> group(sites_.size());
    std::iota(group.begin(), group.end(), 0);
    for (const Pair& pair : by_distance_.begin()->second) {
      const auto [kept, gone] = std::minmax(group[static_cast<std::size_t>(pair.a)],
                                            group[static_cast<std::size_t>(pair.b)]);
      std::replace(group.begin(), group.end(), int{gone}, int{kept});
    }
    return group;
  }

  void fill() {
    for (const auto& [distance, pairs] : by_distance_) {
      for (const Pair& pair : pairs) join(pair, {});
    }
  }

  bool is_connected() {
    for (const Pair& pair : free_pairs_) unite(pair);
    return std::ranges::all_of(part_, [&](int part) { return part == part_.front(); });
  }

  void unite(const Pair& pair) {
    const int gone = part_[static_cast<std::size_t>(pair.b)];
    std::replace(part_.begin(), part_.end(), gone, part_[static_cast<std::size_t>(pair.a)]);
  }

  const Router& router_;
  std::vector<NodeId> sites_;
  std::map<double, std::vector<Pair>> by_distance_;  ///< those that have to map memory
  std::vector<Pair> free_pairs_;                     ///< the others
  PeerChoice may_join_;
  std::vector<int> peers_;  ///< how many, by site
  std::vector<int> part_;   ///< by site: peers, directly or over others, are in one part
};

/// Takes the arcs from one site on, over vertices of its own.
class Layer {
 public:
  Layer(const PackingProblem& problem, const std::vector<bool>& peers, int site,
        PackingProblem& result)
      : problem_(problem), peers_(peers), result_(result) {
    copy_arcs(site, site);
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const int vertex = reached_[i];
      copy_arcs(vertex, copies_.at(vertex));
    }
  }

 private:
  void copy_arcs(int vertex, int copy) {
    for (const PackingProblem::Arc& arc : problem_.arcs_from[static_cast<std::size_t>(vertex)]) {
      int to = arc.to;
      if (arc.to < problem_.sites()) {
        if (!peers_[static_cast<std::size_t>(arc.to)]) continue;
      } else {
        const auto [known, fresh] =
            copies_.emplace(arc.to, static_cast<int>(result_.arcs_from.size()));
        if (fresh) {
          reached_.push_back(arc.to);
          result_.node.push_back(problem_.node[static_cast<std::size_t>(arc.to)]);
          result_.arcs_from.emplace_back();
        }
        to = known->second;
      }
      result_.arcs_from[static_cast<std::size_t>(copy)].push_back({to, arc.resource});
    }
  }

  const PackingProblem& problem_;
  const std::vector<bool>& peers_;
  PackingProblem& result_;
  std::map<int, int> copies_;  ///< by vertex
  std::vector<int> reached_;   ///< vertices copied, in order
};

}  // namespace

std::optional<PeerChoice> choose_peers(const Router& router, const Placement& placement) {
  auto peers = PeerChooser(router, placement).run(/*by_groups=*/true);
  return peers ? peers : PeerChooser(router, placement).run(/*by_groups=*/false);
}

PackingProblem among_peers(const PackingProblem& problem, const PeerChoice& peers) {
  PackingProblem result = problem;
  const auto sites = static_cast<std::size_t>(problem.sites());
  result.node.resize(sites);
  result.arcs_from.assign(sites, {});
  for (std::size_t site = 0; site < sites; ++site) {
    Layer(problem, peers[site], static_cast<int>(site), result);
  }
  return result;
}

bool keeps_peer_limits(const Forest& forest, const Router& router, const Placement& placement) {
  const Topology& topology = router.topology();
  std::map<NodeId, std::set<NodeId>> peers;
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      const NodeId from = site_node(placement, edge.parent);
      const NodeId to = site_node(placement, edge.child);
      const Route* route =
          edge.path.empty() ? router.route(from, to) : router.route(from, to, edge.path);
      if (route == nullptr || !maps_memory(topology, *route, from, to)) continue;
      peers[from].insert(to);
      peers[to].insert(from);
    }
  }
  return std::ranges::all_of(peers, [&](const auto& entry) {
    const int limit = topology.node(entry.first).peer_limit;
    return limit == 0 || entry.second.size() <= static_cast<std::size_t>(limit);
  });
}

Forest keep_peer_limits(Forest forest, const Router& router, const Placement& placement,
                        const std::function<Forest(const PeerChoice&)>& replan) {
  if (keeps_peer_limits(forest, router, placement)) return forest;
  const auto peers = choose_peers(router, placement);
  if (!peers) return forest;  // the check of routes (R10) says why it can't be carried out
  Forest limited = replan(*peers);
  // Weights rounded to whole units can cost the plan that gave way more.
  limited.unlimited_gbps = std::max(forest.algbw_gbps, limited.algbw_gbps);
  return limited;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "planner/blink/blink_trees.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/max_cardinality_matching.hpp>
#include <limits>
#include <tuple>

#include "core/check.h"
#include "core/words.h"
#include "planner/graph/fabric_links.h"

namespace espalier {
namespace {

/// All subsets of this many cross-linked ranks are tried; of more, single ones and all together.
constexpr std::size_t kMaxForSubsets = 4;

std::vector<std::vector<double>> joint_gbps(const Router& router, const Placement& placement) {
  const std::size_t n = placement.ranks.size();
  std::vector<std::vector<double>> gbps(n, std::vector<double>(n, 0));
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      const NodeId from = placement.ranks[a], to = placement.ranks[b];
      if (a == b || fabric_joint(router, from, to) == FabricJoint::none) continue;
      double narrowest = std::numeric_limits<double>::infinity();
      for (const Hop& hop : router.route(from, to)->hops) {
        narrowest = std::min(narrowest, router.capacity_gbps(hop.link));
      }
      gbps[a][b] = narrowest;
    }
  }
  return gbps;
}

/// Two groups in which all are joined are a colouring of the pairs that are not.
class Colouring {
 public:
  explicit Colouring(const std::vector<std::vector<double>>& gbps)
      : gbps_(gbps), part_(gbps.size(), -1), side_(gbps.size(), 0) {
    for (std::size_t rank = 0; rank < gbps.size() && possible_; ++rank) {
      if (part_[rank] < 0) colour(rank, 0, parts_++);
    }
  }

  bool possible() const { return possible_; }

  /// The best way to put each part's two sides into the groups.
  std::vector<std::vector<int>> best() const {
    std::vector<std::vector<int>> best;
    std::tuple<std::size_t, double> best_score{0, 0};
    for (unsigned flips = 0; flips < 1U << parts_; ++flips) {
      // The mirror image of every grouping comes up, too.
      const std::size_t first = size_of_first(flips);
      if (2 * first < part_.size() || first < std::get<0>(best_score)) continue;
      std::vector<std::vector<int>> groups(2);
      for (std::size_t rank = 0; rank < part_.size(); ++rank) {
        groups[group_of(rank, flips)].push_back(static_cast<int>(rank));
      }
      const std::tuple score{first, narrowest(groups)};
      if (best.empty() || score > best_score) {
        best_score = score;
        best = groups;
      }
    }
    if (best[1].empty()) best.pop_back();
    return best;
  }

 private:
  void colour(std::size_t rank, int side, int part) {
    part_[rank] = part;
    side_[rank] = side;
    for (std::size_t other = 0; other < part_.size(); ++other) {
      if (other == rank || gbps_[rank][other] > 0) continue;
      if (part_[other] < 0) {
        colour(other, 1 - side, part);
      } else if (side_[other] == side) {
        possible_ = false;
      }
    }
  }

  /// Of two, when the sides of these parts are exchanged.
  std::size_t group_of(std::size_t rank, unsigned flips) const {
    return static_cast<std::size_t>(side_[rank]) ^ (flips >> part_[rank] & 1U);
  }

  std::size_t size_of_first(unsigned flips) const {
    std::size_t size = 0;
    for (std::size_t rank = 0; rank < part_.size(); ++rank) {
      size += group_of(rank, flips) == 0 ? 1 : 0;
    }
    return size;
  }

  double narrowest(const std::vector<std::vector<int>>& groups) const {
    double narrowest = std::numeric_limits<double>::infinity();
    for (const std::vector<int>& group : groups) {
      for (const int a : group) {
        for (const int b : group) {
          if (a == b) continue;
          narrowest =
              std::min(narrowest, gbps_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]);
        }
      }
    }
    return narrowest;
  }

  const std::vector<std::vector<double>>& gbps_;
  std::vector<int> part_;
  std::vector<int> side_;
  int parts_ = 0;
  bool possible_ = true;
};

std::string names(const Router& router, const Placement& placement, const std::vector<int>& ranks) {
  std::vector<std::string> words;
  for (const int rank : ranks) {
    const NodeId node = placement.ranks[static_cast<std::size_t>(rank)];
    words.push_back(router.topology().node(node).name);
  }
  return "{" + join(words, ", ") + "}";
}

TreeEdges star(int centre, const std::vector<int>& leaves) {
  TreeEdges edges;
  for (const int leaf : leaves) edges.emplace_back(centre, leaf);
  return edges;
}

std::vector<int> without(const std::vector<int>& ranks, const std::vector<int>& left_out) {
  std::vector<int> rest;
  for (const int rank : ranks) {
    if (std::find(left_out.begin(), left_out.end(), rank) == left_out.end()) rest.push_back(rank);
  }
  return rest;
}

TreeEdges joined(TreeEdges first, const TreeEdges& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// The non-empty subsets worth trying, single ones first.
std::vector<std::vector<int>> subsets(const std::vector<int>& ranks) {
  std::vector<std::vector<int>> found;
  for (const int rank : ranks) found.push_back({rank});
  if (ranks.size() > kMaxForSubsets) {
    found.push_back(ranks);
    return found;
  }
  for (unsigned mask = 1; mask < 1U << ranks.size(); ++mask) {
    std::vector<int> subset;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if ((mask >> i & 1U) != 0) subset.push_back(ranks[i]);
    }
    if (subset.size() > 1) found.push_back(subset);
  }
  return found;
}

}  // namespace

BlinkGroups find_blink_groups(const Router& router, const Placement& placement) {
  CHECK(placement.ranks.size() >= 2 && placement.ranks.size() <= std::size_t{kMaxBlinkRanks});
  const std::vector<std::vector<double>> gbps = joint_gbps(router, placement);
  const Colouring colouring(gbps);
  if (!colouring.possible()) {
    return {{}, "these GPUs form more than two groups that the GPU fabric connects fully"};
  }
  BlinkGroups found{colouring.best(), ""};
  if (found.groups.size() == 1) return found;
  for (const int a : found.groups[0]) {
    for (const int b : found.groups[1]) {
      if (gbps[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] > 0) return found;
    }
  }
  found.why_not = "the GPU fabric does not connect " + names(router, placement, found.groups[0]) +
                  " and " + names(router, placement, found.groups[1]);
  return found;
}

BlinkTrees::BlinkTrees(const Router& router, const Placement& placement, const BlinkGroups& groups)
    : groups_(groups), gbps_(joint_gbps(router, placement)) {}

std::vector<TreeEdges> BlinkTrees::from(int root) const {
  const std::vector<int>& own = group_of(root);
  const std::vector<int> rest = without(own, {root});
  const std::vector<int> others = others_of(root);
  std::vector<TreeEdges> inside = {star(root, rest)};
  for (const int forwarder : rest) {
    if (rest.size() == 1) break;  // nobody to forward to
    inside.push_back(joined({{root, forwarder}}, star(forwarder, without(rest, {forwarder}))));
  }
  if (others.empty()) return inside;

  std::vector<TreeEdges> trees;
  for (const TreeEdges& way : inside) {
    for (const TreeEdges& onward : across(own, others, -1)) trees.push_back(joined(way, onward));
  }
  if (rest.empty()) return trees;
  for (const int entry : others) {
    if (gbps(root, entry) == 0) continue;
    const TreeEdges there = joined({{root, entry}}, star(entry, without(others, {entry})));
    for (const TreeEdges& back : across(others, rest, root)) trees.push_back(joined(there, back));
  }
  return trees;
}

std::vector<TreeEdges> BlinkTrees::paths(int root, int source) const {
  std::vector<TreeEdges> found;
  if (same_group(root, source)) {
    found.push_back({{root, source}});
    for (const int between : without(group_of(root), {root, source})) {
      found.push_back({{root, between}, {between, source}});
    }
    return found;
  }
  for (const int near : group_of(root)) {
    for (const int far : group_of(source)) {
      if (gbps(near, far) == 0) continue;
      TreeEdges path;
      if (near != root) path.emplace_back(root, near);
      path.emplace_back(near, far);
      if (far != source) path.emplace_back(far, source);
      found.push_back(std::move(path));
    }
  }
  return found;
}

std::vector<TreeEdges> BlinkTrees::printed_broadcast(int root) const {
  const std::vector<int> rest = without(group_of(root), {root});
  std::vector<TreeEdges> trees;
  for (const int forwarder : rest) {
    trees.push_back(joined({{root, forwarder}}, star(forwarder, without(rest, {forwarder}))));
  }
  return trees;
}

std::vector<TreeEdges> BlinkTrees::printed_allreduce() const {
  std::vector<TreeEdges> trees;
  if (groups_.groups.size() == 1) {
    for (const int rank : groups_.groups[0]) {
      trees.push_back(star(rank, without(groups_.groups[0], {rank})));
    }
    return trees;
  }
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
  Graph links(gbps_.size());
  for (const int a : groups_.groups[0]) {
    for (const int b : groups_.groups[1]) {
      if (gbps(a, b) > 0) add_edge(static_cast<std::size_t>(a), static_cast<std::size_t>(b), links);
    }
  }
  std::vector<Graph::vertex_descriptor> counterpart(gbps_.size());
  boost::edmonds_maximum_cardinality_matching(links, counterpart.data());
  for (const int rank : groups_.groups[0]) {
    const auto matched = counterpart[static_cast<std::size_t>(rank)];
    if (matched == Graph::null_vertex()) continue;
    const int partner = static_cast<int>(matched);
    trees.push_back(
        joined(joined(star(rank, without(groups_.groups[0], {rank})), {{rank, partner}}),
               star(partner, without(groups_.groups[1], {partner}))));
  }
  return trees;
}

bool BlinkTrees::same_group(int a, int b) const { return &group_of(a) == &group_of(b); }

const std::vector<int>& BlinkTrees::group_of(int rank) const {
  const std::vector<int>& first = groups_.groups.front();
  return std::find(first.begin(), first.end(), rank) != first.end() ? first : groups_.groups.back();
}

std::vector<int> BlinkTrees::others_of(int rank) const {
  if (groups_.groups.size() == 1) return {};
  return &group_of(rank) == &groups_.groups[0] ? groups_.groups[1] : groups_.groups[0];
}

double BlinkTrees::gbps(int a, int b) const {
  return gbps_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
}

int BlinkTrees::widest_neighbour(int rank, const std::vector<int>& candidates) const {
  return *std::max_element(candidates.begin(), candidates.end(),
                           [&](int a, int b) { return gbps(a, rank) < gbps(b, rank); });
}

std::vector<TreeEdges> BlinkTrees::across(const std::vector<int>& holders,
                                          const std::vector<int>& targets, int helper) const {
  std::vector<int> linked;
  for (const int target : targets) {
    if (gbps(widest_neighbour(target, holders), target) > 0) linked.push_back(target);
  }
  std::vector<TreeEdges> found;
  for (const std::vector<int>& entries : subsets(linked)) {
    std::vector<TreeEdges> crossings;
    if (entries.size() == 1) {
      for (const int holder : holders) {
        if (gbps(holder, entries[0]) > 0) crossings.push_back({{holder, entries[0]}});
      }
    } else {
      TreeEdges& widest = crossings.emplace_back();
      for (const int entry : entries) widest.emplace_back(widest_neighbour(entry, holders), entry);
    }
    const std::vector<int> rest = without(targets, entries);
    std::vector<int> forwarders = entries;
    if (helper >= 0) forwarders.push_back(helper);
    if (rest.empty()) forwarders.resize(1);
    for (const TreeEdges& crossing : crossings) {
      for (const int forwarder : forwarders) {
        found.push_back(joined(crossing, star(forwarder, rest)));
      }
    }
  }
  return found;
}

}  // namespace espalier

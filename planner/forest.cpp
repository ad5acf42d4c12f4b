// SPDX-License-Identifier: Apache-2.0
#include "planner/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/words.h"

namespace espalier {

int PlannedTree::height() const {
  std::map<int, int> depth{{root, 0}};
  int height = 0;
  for (const TreeEdge& edge : edges) {
    const int below = depth[edge.parent] + 1;
    depth[edge.child] = below;
    height = std::max(height, below);
  }
  return height;
}

namespace {

/// As loads may exceed capacities by rounding.
constexpr double kTolerance = 1e-9;

class ForestChecker {
 public:
  ForestChecker(const Forest& forest, const Router& router, const Placement& placement)
      : forest_(forest),
        router_(router),
        placement_(placement),
        ranks_(static_cast<int>(placement.ranks.size())) {}

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < forest_.trees.size(); ++i) check_tree(i);
    check_weights();
    check_loads();
    return std::move(problems_);
  }

 private:
  bool is_rank(int rank) const { return rank >= 0 && rank < ranks_; }
  bool blocked() const { return info(forest_.collective).blocked; }

  void check_tree(std::size_t index) {
    const PlannedTree& tree = forest_.trees[index];
    const auto problem = [&](const std::string& what) {
      problems_.push_back(fmt::format("tree {}: {}", index, what));
    };
    if (!is_rank(tree.root)) return problem(fmt::format("its root {} is no rank", tree.root));
    if (tree.weight <= 0) problem(fmt::format("its weight is {}", tree.weight));
    std::set<int> reached{tree.root};
    for (const TreeEdge& edge : tree.edges) {
      if (!is_rank(edge.parent) || !is_rank(edge.child)) {
        problem(fmt::format("edge {} - {} does not join ranks", edge.parent, edge.child));
        continue;
      }
      if (reached.count(edge.parent) == 0) {
        problem(fmt::format("rank {} is a parent before it is reached", edge.parent));
      }
      if (!reached.insert(edge.child).second) {
        problem(fmt::format("rank {} is reached twice", edge.child));
      }
      const bool up = forest_.collective != Collective::broadcast &&
                      forest_.collective != Collective::allgather;
      const bool down =
          info(forest_.collective).reduces == false || forest_.collective == Collective::allreduce;
      if (up) load(index, edge, true, tree.weight);
      if (down) load(index, edge, false, tree.weight);
    }
    if (static_cast<int>(reached.size()) < ranks_) {
      problem(fmt::format("it reaches {} of {} ranks", reached.size(), ranks_));
    }
  }

  /// Counts the edge on every link it crosses, from child to parent when `up`.
  void load(std::size_t index, const TreeEdge& edge, bool up, std::int64_t weight) {
    const NodeId parent = placement_.ranks[edge.parent];
    const NodeId child = placement_.ranks[edge.child];
    std::vector<NodeId> path = edge.path;
    if (up) std::reverse(path.begin(), path.end());
    const NodeId from = up ? child : parent;
    const NodeId to = up ? parent : child;
    const Route* route = path.empty() ? router_.route(from, to) : router_.route(from, to, path);
    const Topology& topology = router_.topology();
    if (route == nullptr) {
      problems_.push_back(fmt::format("tree {}: no route from {} to {} via '{}'", index,
                                      topology.nodes[from].name, topology.nodes[to].name,
                                      path_text(topology, path)));
      return;
    }
    std::set<std::string> media;
    for (const Hop& hop : route->hops) {
      const Link& link = topology.links[hop.link];
      if (link.duplex == Duplex::shared) {
        // What one station puts on a bus all others hear.
        if (media.insert(link.medium).second) shared_loads_[link.medium] += weight;
        capacity_of_medium_[link.medium] = router_.capacity_gbps(hop.link);
      } else {
        loads_[{hop.link, link.duplex == Duplex::half || hop.forward}] += weight;
      }
    }
  }

  void check_weights() {
    std::map<int, std::int64_t> by_root;
    std::int64_t sum = 0;
    for (const PlannedTree& tree : forest_.trees) {
      by_root[tree.root] += tree.weight;
      sum += tree.weight;
    }
    if (!blocked()) {
      if (sum != forest_.units) {
        problems_.push_back(fmt::format("the weights add up to {}, not {}", sum, forest_.units));
      }
      if (forest_.collective != Collective::allreduce && by_root.size() > 1) {
        problems_.push_back(fmt::format("there are {} roots", by_root.size()));
      }
      return;
    }
    for (int rank = 0; rank < ranks_; ++rank) {
      if (by_root[rank] * ranks_ != forest_.units) {
        problems_.push_back(fmt::format("the weights at rank {} add up to {}, not {} / {}", rank,
                                        by_root[rank], forest_.units, ranks_));
      }
    }
  }

  void check_load(const std::string& what, double units, double capacity_gbps) {
    const double gbps = units * forest_.algbw_gbps / static_cast<double>(forest_.units);
    if (gbps <= capacity_gbps * (1 + kTolerance)) return;
    problems_.push_back(
        fmt::format("{} would carry {:.6g} GB/s and can carry {:.6g}", what, gbps, capacity_gbps));
  }

  void check_loads() {
    const Topology& topology = router_.topology();
    for (const auto& [direction, units] : loads_) {
      const auto [id, forward] = direction;
      const Link& link = topology.links[id];
      const std::string& from = topology.nodes[forward ? link.a : link.b].name;
      const std::string& to = topology.nodes[forward ? link.b : link.a].name;
      const char* arrow = link.duplex == Duplex::half ? "<->" : "->";
      check_load(fmt::format("{}{}{} {}", from, arrow, to, link.kind), static_cast<double>(units),
                 router_.capacity_gbps(id));
    }
    for (const auto& [medium, units] : shared_loads_) {
      check_load("medium " + medium, static_cast<double>(units), capacity_of_medium_.at(medium));
    }
  }

  const Forest& forest_;
  const Router& router_;
  const Placement& placement_;
  const int ranks_;
  std::map<std::pair<LinkId, bool>, std::int64_t> loads_;  ///< by link and direction
  std::map<std::string, std::int64_t> shared_loads_;
  std::map<std::string, double> capacity_of_medium_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_forest(const Forest& forest, const Router& router,
                                      const Placement& placement) {
  return ForestChecker(forest, router, placement).run();
}

}  // namespace espalier

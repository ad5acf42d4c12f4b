// SPDX-License-Identifier: Apache-2.0
#include "planner/forest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "planner/link_loads.h"

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

bool PlannedTree::uses_relays(int ranks) const {
  const auto relays = [&](const TreeEdge& edge) {
    return edge.parent >= ranks || edge.child >= ranks;
  };
  return std::ranges::any_of(edges, relays);
}

bool has_paths(Collective collective) {
  switch (collective) {
    case Collective::gather:
    case Collective::scatter:
    case Collective::alltoall:
    case Collective::sendrecv:
      return true;
    default:
      return false;
  }
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
        ranks_(static_cast<int>(placement.ranks.size())),
        sites_(ranks_ + static_cast<int>(placement.relays.size())),
        loads_(router, placement) {}

  std::vector<std::string> run() {
    for (std::size_t i = 0; i < forest_.trees.size(); ++i) check_tree(i);
    is_path() ? check_demands() : check_weights();
    check_loads();
    return std::move(problems_);
  }

 private:
  bool is_rank(int rank) const { return rank >= 0 && rank < ranks_; }
  bool is_site(int site) const { return site >= 0 && site < sites_; }
  bool blocked() const { return info(forest_.collective).blocked; }
  bool is_path() const { return has_paths(forest_.collective); }

  void check_tree(std::size_t index) {
    const PlannedTree& tree = forest_.trees[index];
    const auto problem = [&](const std::string& what) {
      problems_.push_back(fmt::format("tree {}: {}", index, what));
    };
    const bool roots_free = forest_.collective == Collective::allreduce;
    if (!(roots_free ? is_site(tree.root) : is_rank(tree.root))) {
      return problem(fmt::format("its root {} is not a rank", tree.root));
    }
    if (tree.weight <= 0) problem(fmt::format("its weight is {}", tree.weight));
    std::set<int> reached{tree.root};
    int last = tree.root;
    for (const TreeEdge& edge : tree.edges) {
      if (!is_site(edge.parent) || !is_site(edge.child)) {
        problem(fmt::format("edge {} - {} does not join ranks", edge.parent, edge.child));
        continue;
      }
      if (is_path() && edge.parent != last) {
        problem(fmt::format("it goes on from rank {}, not from {}", edge.parent, last));
      } else if (reached.count(edge.parent) == 0) {
        problem(fmt::format("rank {} is a parent before it is reached", edge.parent));
      }
      if (!reached.insert(edge.child).second) {
        problem(fmt::format("rank {} is reached twice", edge.child));
      }
      last = edge.child;
      if (!loads_.add(edge, forest_.collective, tree.weight)) {
        const auto name = [&](int site) {
          return router_.topology().node(site_node(placement_, site)).name;
        };
        problem(fmt::format("no route between {} and {} via '{}'", name(edge.parent),
                            name(edge.child), path_text(router_.topology(), edge.path)));
      }
    }
    const auto ranks = std::ranges::count_if(reached, [&](int site) { return is_rank(site); });
    if (!is_path() && ranks < ranks_) {
      problem(fmt::format("it reaches {} of {} ranks", ranks, ranks_));
    }
    for (const int site : reached) {
      if (is_rank(site)) continue;
      const bool leads_on = std::ranges::any_of(
          tree.edges, [&](const TreeEdge& edge) { return edge.parent == site; });
      if (!leads_on) problem(fmt::format("relay {} is a leaf", site - ranks_));
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

  /// The contract says which rank needs blocks of which.
  void check_demands() {
    Contract contract{forest_.collective, ranks_, 0, blocked() ? ranks_ : 1, false};
    if (!forest_.trees.empty()) contract.root = forest_.trees.front().root;
    const std::int64_t block = forest_.units / contract.units;
    std::map<std::pair<int, int>, std::int64_t> missing;  // units by sender and receiver
    for (int to = 0; to < ranks_; ++to) {
      const std::int64_t units = output_region(contract, to).units;
      for (std::int64_t unit = 0; unit < units; ++unit) {
        const int from = origin_of(contract, to, unit).rank;
        if (from != to) missing[{from, to}] += block;
      }
    }
    for (const PlannedTree& tree : forest_.trees) {
      if (tree.edges.empty() && ranks_ == 1) continue;  // see nothing_to_send
      int from = tree.root;
      int to = tree.edges.empty() ? tree.root : tree.edges.back().child;
      if (goes_up(forest_.collective)) std::swap(from, to);
      missing[{from, to}] -= tree.weight;
    }
    for (const auto& [pair, units] : missing) {
      if (units == 0) continue;
      problems_.push_back(fmt::format("from rank {} to {}, the number of units is {} too {}",
                                      pair.first, pair.second, std::abs(units),
                                      units > 0 ? "few" : "many"));
    }
  }

  void check_loads() {
    for (const LinkLoad& load : loads_.loaded()) {
      const double share = share_used(load, forest_);
      if (share <= 1 + kTolerance) continue;
      problems_.push_back(
          fmt::format("{} would carry {:.6g} GB/s, but can carry only {:.6g}",
                      link_name(router_.topology(), load.hop.link, load.hop.forward),
                      share * load.capacity_gbps, load.capacity_gbps));
    }
  }

  const Forest& forest_;
  const Router& router_;
  const Placement& placement_;
  const int ranks_;
  const int sites_;
  LinkLoads loads_;
  std::vector<std::string> problems_;
};

}  // namespace

Forest nothing_to_send(Collective collective) {
  return {collective, 1, {{}}, std::numeric_limits<double>::infinity(), "unlimited"};
}

bool goes_up(Collective collective) {
  return info(collective).reduces || collective == Collective::gather;
}

bool goes_down(Collective collective) {
  return !goes_up(collective) || collective == Collective::allreduce;
}

Forest round_weights(const Forest& forest, std::int64_t strips) {
  // What has to stay together: the message, a root's part of it, or that of a pair of ranks.
  using Part = std::pair<int, int>;
  const auto part_of = [&](const PlannedTree& tree) -> Part {
    if (forest.collective == Collective::allreduce) return {0, 0};
    return {tree.root, has_paths(forest.collective) ? tree.edges.back().child : 0};
  };
  std::map<Part, std::vector<std::size_t>> parts;
  std::int64_t part_units = 0;  // all parts have the same
  for (std::size_t i = 0; i < forest.trees.size(); ++i) {
    parts[part_of(forest.trees[i])].push_back(i);
    if (parts.size() == 1) part_units += forest.trees[i].weight;
  }
  if (parts.empty() || part_units == 0) return forest;
  const std::int64_t wanted =
      std::max<std::int64_t>(1, strips / static_cast<std::int64_t>(parts.size()));
  if (wanted >= part_units) return forest;
  Forest rounded = forest;
  rounded.units = forest.units / part_units * wanted;
  for (auto& [unused, trees] : parts) {
    // By largest remainders.
    std::int64_t left = wanted;
    const auto remainder = [&](std::size_t i) {
      return forest.trees[i].weight * wanted % part_units;
    };
    for (const std::size_t i : trees) {
      rounded.trees[i].weight = forest.trees[i].weight * wanted / part_units;
      left -= rounded.trees[i].weight;
    }
    std::ranges::stable_sort(trees, std::greater<>(), remainder);
    for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) {
      ++rounded.trees[trees[i]].weight;
    }
  }
  std::erase_if(rounded.trees, [](const PlannedTree& tree) { return tree.weight == 0; });
  return rounded;
}

std::vector<std::string> check_forest(const Forest& forest, const Router& router,
                                      const Placement& placement) {
  return ForestChecker(forest, router, placement).run();
}

}  // namespace espalier

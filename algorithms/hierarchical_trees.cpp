// SPDX-License-Identifier: Apache-2.0
// The schedule of "Optimal aggregation schedules" over the spanning tree polytope, figure 4, from
// any machine's own hierarchy: ranks combine with those nearest to them first, then one of each
// group with the groups nearest to theirs, and so on up to the root. Every rank is the root of an
// equal share of the message, so that the links of one level carry the same. Each group sends once
// per root, which is the least, however narrow the links between groups are.
#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "algorithms/forest_program.h"
#include "algorithms/schedules.h"
#include "ir/unfold.h"

namespace espalier {

namespace {

/// Ranks by nearness: a group is one rank, or groups whose ranks are equally many links apart.
struct Group {
  std::vector<Group> members;
  std::vector<int> ranks;  ///< of all members, in order
};

/// Links on the way from rank to rank; the same both ways.
std::vector<std::vector<std::size_t>> hop_counts(const BuildRequest& request) {
  const auto n = static_cast<std::size_t>(request.ranks);
  std::vector<std::vector<std::size_t>> hops(n, std::vector<std::size_t>(n, 0));
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      const Route* route =
          request.router->route(request.placement->ranks[a], request.placement->ranks[b]);
      // Ranks without a route come last; the check of routes (R10) refuses the program.
      hops[a][b] = hops[b][a] = route == nullptr ? n * n : route->hops.size();
    }
  }
  return hops;
}

/// Groups at growing distances until one holds all ranks.
Group hierarchy(const BuildRequest& request) {
  const auto hops = hop_counts(request);
  std::set<std::size_t> distances;
  for (const auto& row : hops) distances.insert(row.begin(), row.end());
  distances.erase(0);
  std::vector<Group> groups;
  for (int rank = 0; rank < request.ranks; ++rank) groups.push_back({{}, {rank}});
  const auto is_near = [&](const Group& a, const Group& b, std::size_t distance) {
    return std::any_of(a.ranks.begin(), a.ranks.end(), [&](int x) {
      return std::any_of(b.ranks.begin(), b.ranks.end(), [&](int y) {
        return hops[static_cast<std::size_t>(x)][static_cast<std::size_t>(y)] <= distance;
      });
    });
  };
  for (const std::size_t distance : distances) {
    std::vector<Group> merged;
    std::vector<bool> taken(groups.size(), false);
    for (std::size_t first = 0; first < groups.size(); ++first) {
      if (taken[first]) continue;
      Group group;
      std::vector<std::size_t> reached{first};
      taken[first] = true;
      for (std::size_t i = 0; i < reached.size(); ++i) {
        for (std::size_t other = 0; other < groups.size(); ++other) {
          if (taken[other] || !is_near(groups[reached[i]], groups[other], distance)) continue;
          taken[other] = true;
          reached.push_back(other);
        }
      }
      std::sort(reached.begin(), reached.end());
      for (const std::size_t i : reached) {
        group.ranks.insert(group.ranks.end(), groups[i].ranks.begin(), groups[i].ranks.end());
      }
      if (reached.size() == 1) {
        group = std::move(groups[first]);
      } else {
        for (const std::size_t i : reached) group.members.push_back(std::move(groups[i]));
      }
      merged.push_back(std::move(group));
    }
    groups = std::move(merged);
  }
  return std::move(groups.front());
}

/// Adds the edges of a group's tree. The leader stands at `place`, counted around within the group;
/// leaders of the members stand at the same place of theirs, so that all ranks get their turn as
/// the root moves on. Members combine as a binomial tree.
void add_edges(const Group& group, std::size_t place, std::vector<TreeEdge>& edges) {
  const std::size_t m = group.members.size();
  if (m == 0) return;
  std::size_t leading = 0;  // the member in which the place falls
  std::size_t inside = place % group.ranks.size();
  while (inside >= group.members[leading].ranks.size()) {
    inside -= group.members[leading++].ranks.size();
  }
  const auto member = [&](std::size_t i) -> const Group& {
    return group.members[(leading + i) % m];
  };
  const auto leader = [&](std::size_t i) {
    return member(i).ranks[inside % member(i).ranks.size()];
  };
  // Parents first: the far half of the members, then the quarters, and so on.
  std::size_t stride = 1;
  while (stride * 2 < m) stride *= 2;
  for (; stride >= 1; stride /= 2) {
    for (std::size_t parent = 0; parent + stride < m; parent += 2 * stride) {
      edges.push_back({leader(parent), leader(parent + stride), {}});
    }
  }
  for (std::size_t i = 0; i < m; ++i) add_edges(member(i), inside, edges);
}

std::vector<TreeEdge> tree_at(const Group& all, int place) {
  std::vector<TreeEdge> edges;
  add_edges(all, static_cast<std::size_t>(place), edges);
  return edges;
}

/// The tree of every place, by those of the first places: the trees of as many places after them
/// are the same, with all ranks moved on by so many, around.
struct Trees {
  std::vector<std::vector<TreeEdge>> first;  ///< the edges of each
  int groups = 1;                            ///< of places
};

/// Whether the tree of every place is that of the place `each` before it, moved on by `each` ranks.
bool are_alike(const Group& all, int each) {
  const auto n = static_cast<int>(all.ranks.size());
  for (int place = each; place < n; ++place) {
    std::vector<TreeEdge> moved = tree_at(all, place - each);
    for (TreeEdge& edge : moved) {
      edge.parent = (edge.parent + each) % n;
      edge.child = (edge.child + each) % n;
    }
    if (moved != tree_at(all, place)) return false;
  }
  return true;
}

Trees trees_of(const BuildRequest& request) {
  const Group all = hierarchy(request);
  const auto members = static_cast<int>(all.members.size());
  const bool divides = members > 0 && request.ranks % members == 0;
  Trees trees;
  if (divides && are_alike(all, request.ranks / members)) trees.groups = members;
  for (int place = 0; place < request.ranks / trees.groups; ++place) {
    trees.first.push_back(tree_at(all, place));
  }
  return trees;
}

/// A rank has a share of two units, for two strips.
constexpr Strips kStrips = {};

Contract contract_of(const BuildRequest& request) {
  return request.contract(kStrips.per_unit * request.ranks);
}

/// The routes between all pairs of ranks are looked at. The ops of one group would not be too many
/// for many more.
constexpr int kMostFoldedRanks = 1024;

std::vector<Fold> fold_trees(const BuildRequest& request) {
  if (request.ranks > kMostFoldedRanks) return {};
  return all_turned_by_blocks(contract_of(request), trees_of(request).groups);
}

/// What a rank combines on the way up: what it has, and what its children have combined.
struct Combining {
  struct Child {
    int rank = 0;
    bool is_leaf = false;  ///< and passes on what it has
  };
  int parent = 0;
  std::vector<Child> children;
};

/// Children before parents.
std::vector<Combining> ways_up(const std::vector<TreeEdge>& edges, int ranks) {
  std::vector<std::vector<int>> children(static_cast<std::size_t>(ranks));
  for (const TreeEdge& edge : edges) {
    children[static_cast<std::size_t>(edge.parent)].push_back(edge.child);
  }
  std::vector<Combining> all;
  const auto combine = [&](int parent) {
    Combining& one = all.emplace_back(Combining{parent, {}});
    for (const int child : children[static_cast<std::size_t>(parent)]) {
      one.children.push_back({child, children[static_cast<std::size_t>(child)].empty()});
    }
  };
  // Edges stand parents first, so that backwards every child is done before its parent.
  std::vector<bool> is_done(children.size(), false);
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
    const auto child = static_cast<std::size_t>(edge->child);
    if (!children[child].empty() && !is_done[child]) combine(edge->child);
    is_done[child] = true;
  }
  combine(edges.front().parent);
  return all;
}

/// Every transfer has a lane of its own at the rank that carries it out, as with other trees
/// (ForestWriter). All trees advance together, so that groups of ranks that are alike number their
/// lanes alike.
class Writer {
 public:
  explicit Writer(const BuildRequest& request)
      : trees_(trees_of(request)),
        builder_("hierarchical_trees", contract_of(request), request.fold),
        lanes_(static_cast<std::size_t>(request.ranks), 0) {
    std::size_t edges = 0;
    for (const auto& tree : trees_.first) edges += tree.size();
    const std::int64_t ops = kStrips.per_unit * trees_.groups * static_cast<std::int64_t>(edges);
    strips_ = strip_count(kStrips.per_unit, ops, kStrips);
  }

  Program write() {
    std::vector<std::vector<Combining>> up;
    std::size_t steps_up = 0;
    std::size_t steps_down = 0;
    for (const auto& tree : trees_.first) {
      up.push_back(ways_up(tree, builder_.ranks()));
      steps_up = std::max(steps_up, up.back().size());
      steps_down = std::max(steps_down, tree.size());
    }
    for (std::size_t step = 0; step < steps_up; ++step) {
      for_each_strip([&](const Strip& strip) {
        const std::vector<Combining>& ways = up[static_cast<std::size_t>(strip.place)];
        if (step < ways.size()) combine(strip, ways[step]);
      });
    }
    for (std::size_t step = 0; step < steps_down; ++step) {
      for_each_strip([&](const Strip& strip) {
        const auto& edges = trees_.first[static_cast<std::size_t>(strip.place)];
        if (step < edges.size()) send(strip, edges[step]);
      });
    }
    return builder_.finish();
  }

 private:
  /// A part of the message that goes up and down one tree.
  struct Strip {
    int place = 0;     ///< of the first group
    int moved_on = 0;  ///< ranks of its tree, after those of that place's
    std::int64_t begin = 0;
    std::int64_t units = 0;
  };

  template <typename Visit>
  void for_each_strip(Visit visit) const {
    const auto each = static_cast<int>(trees_.first.size());
    for (int group = 0; group < trees_.groups; ++group) {
      for (int place = 0; place < each; ++place) {
        const std::int64_t share = kStrips.per_unit * (group * each + place);
        for (std::int64_t i = 0; i < strips_; ++i) {
          const std::int64_t begin = kStrips.per_unit * i / strips_;
          const std::int64_t end = kStrips.per_unit * (i + 1) / strips_;
          visit(Strip{place, group * each, share + begin, end - begin});
        }
      }
    }
  }

  int rank(const Strip& strip, int of_first) const {
    return (of_first + strip.moved_on) % builder_.ranks();
  }
  Slice input(const Strip& strip, int of_first) const {
    return builder_.input(rank(strip, of_first), strip.begin, strip.units);
  }
  Slice result(const Strip& strip, int of_first) const {
    return builder_.output(rank(strip, of_first), strip.begin, strip.units);
  }
  int new_lane(int rank) { return lanes_[static_cast<std::size_t>(rank)]++; }

  void combine(const Strip& strip, const Combining& one) {
    const int parent = rank(strip, one.parent);
    if (!builder_.builds(parent)) return;
    std::vector<Slice> sources = {input(strip, one.parent)};
    for (const Combining::Child& child : one.children) {
      sources.push_back(child.is_leaf ? input(strip, child.rank) : result(strip, child.rank));
    }
    builder_.combine(result(strip, one.parent), sources, {.lane = new_lane(parent)});
  }

  void send(const Strip& strip, const TreeEdge& edge) {
    const int parent = rank(strip, edge.parent);
    if (!builder_.builds(parent)) return;
    builder_.copy(result(strip, edge.child), result(strip, edge.parent),
                  {.lane = new_lane(parent)});
  }

  const Trees trees_;
  Builder builder_;
  std::vector<int> lanes_;   ///< by rank: those in use
  std::int64_t strips_ = 1;  ///< of a share
};

Program build_hierarchical_trees(const BuildRequest& request) {
  if (request.ranks > 1) return Writer(request).write();
  Builder builder("hierarchical_trees", request.contract(1));
  keep_own(builder, 0, 0, 1, 0);
  return builder.finish();
}

}  // namespace

const Algorithm& hierarchical_trees_algorithm() {
  static const Algorithm algorithm = {
      .name = "hierarchical_trees",
      .summary =
          "nearby ranks combine first, then groups of them; every rank is the root of a share",
      .constraints = "any number of ranks; needs a machine",
      .paper = "schedules on the spanning tree polytope, fig. 4",
      .collectives = {Collective::allreduce},
      .pipelined = true,
      .staggered = true,
      .needs_machine = true,
      .max_ranks = 512,
      .folds = fold_trees,
      .build = build_hierarchical_trees};
  return algorithm;
}

}  // namespace espalier

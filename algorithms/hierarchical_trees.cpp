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

Program build_hierarchical_trees(const BuildRequest& request) {
  if (request.ranks == 1) {
    Builder builder("hierarchical_trees", request.contract(1));
    keep_own(builder, 0, 0, 1, 0);
    return builder.finish();
  }
  Forest forest;
  forest.collective = Collective::allreduce;
  forest.units = request.ranks;
  const Group all = hierarchy(request);
  for (std::size_t place = 0; place < all.ranks.size(); ++place) {
    PlannedTree tree{all.ranks[place], 1, {}};
    add_edges(all, place, tree.edges);
    forest.trees.push_back(std::move(tree));
  }
  return allreduce_program("hierarchical_trees", request, forest, {});
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
      .build = build_hierarchical_trees};
  return algorithm;
}

}  // namespace espalier

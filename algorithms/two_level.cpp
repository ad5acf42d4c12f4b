// SPDX-License-Identifier: Apache-2.0
// Broadcast in a cluster of machines of many GPUs: one rank of each machine, its leader, gets the
// message over the network, and from there it goes along the machine's own ranks. This is how NCCL
// 1, which knows one machine only, was put into MPI_Bcast (Awan, Hamidouche, Venkatesh and Panda,
// "Efficient large message broadcast using NCCL and CUDA-aware MPI for deep learning", EuroMPI
// 2016), the baseline of "Optimized broadcast for deep learning" (OSU 2017), section V-C: MPI's
// k-nomial tree among leaders, NCCL's chain of slices inside. Pieces overlap the two levels.
#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// Which machine a rank is on; without one in particular, its host memory tells.
int machine_of(const BuildRequest& request, int rank) {
  if (request.placement == nullptr) return host_of(request, rank);
  return request.placement->machine_of_rank[static_cast<std::size_t>(rank)];
}

/// The ranks of each machine, leaders first: those of the root's machine begin with the root, and
/// the others stand in the order of their first ranks from the root on.
std::vector<std::vector<int>> machines(const BuildRequest& request) {
  std::vector<std::vector<int>> groups;
  std::map<int, std::size_t> group_of;
  for (int i = 0; i < request.ranks; ++i) {
    const int rank = real_rank(request, i);
    const auto [known, is_new] = group_of.try_emplace(machine_of(request, rank), groups.size());
    if (is_new) groups.emplace_back();
    groups[known->second].push_back(rank);
  }
  return groups;
}

/// From group to group in the order of sending: a k-nomial tree, or a chain for k = 1.
std::vector<KnomialEdge> leader_edges(int groups, int k) {
  if (k > 1) return knomial_edges(groups, k);
  std::vector<KnomialEdge> edges;
  for (int child = 1; child < groups; ++child) {
    edges.push_back({child - 1, child - 1, child, 0, groups - child});
  }
  return edges;
}

/// Lanes of a leader: 0 to k - 2 for other leaders (0 in a chain), the next one for its machine.
Program build_two_level(const BuildRequest& request) {
  const auto k = static_cast<int>(request.parameter("k"));
  const int inside_lane = std::max(k - 1, 1);
  Builder builder("two_level", request.contract(1));
  const std::vector<std::vector<int>> groups = machines(request);
  const auto held = [&](int rank) {
    return rank == request.root ? builder.input(rank, 0, 1) : builder.output(rank, 0, 1);
  };
  for (const KnomialEdge& edge : leader_edges(static_cast<int>(groups.size()), k)) {
    const int from = groups[static_cast<std::size_t>(edge.parent)].front();
    const int to = groups[static_cast<std::size_t>(edge.child)].front();
    builder.copy(builder.output(to, 0, 1), held(from), {.lane = edge.branch});
  }
  for (const std::vector<int>& ranks : groups) {
    relay(builder, ranks, held(ranks.front()), 0, inside_lane);
  }
  keep_own(builder, request.root, 0, 1, inside_lane + 1);
  return builder.finish();
}

}  // namespace

const Algorithm& two_level_algorithm() {
  static const Algorithm algorithm = {
      .name = "two_level",
      .summary = "to a leader on every machine, then along a chain of the machine's ranks",
      .constraints = "any number of ranks",
      .paper = "Awan et al., EuroMPI 2016; Optimized broadcast for deep learning, OSU 2017, V-C",
      .collectives = {Collective::broadcast},
      .parameters =
          {{"k",
            "degree of the tree of leaders: each round reaches k times as many; 1: a chain",
            2,
            1,
            1024,
            {1}}},
      .pipelined = true,
      .build = build_two_level};
  return algorithm;
}

}  // namespace espalier

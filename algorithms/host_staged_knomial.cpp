// SPDX-License-Identifier: Apache-2.0
// Broadcast through host memories: "Optimized broadcast for deep learning" (OSU 2017), section
// IV-C, equation 6. The root's message goes to its host memory once, along a k-nomial tree over the
// host memories, and from each to the GPUs of its ranks.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// A host memory and the ranks it serves.
struct HostGroup {
  int host;
  std::vector<int> ranks;  ///< all but the root
};

/// The root's host first, the others in the order of their first rank from the root on.
std::vector<HostGroup> host_groups(const BuildRequest& request) {
  std::vector<HostGroup> groups;
  std::vector<int> group_of(static_cast<std::size_t>(request.hosts), -1);
  for (int i = 0; i < request.ranks; ++i) {
    const int rank = real_rank(request, i);
    const int host = host_of(request, rank);
    int& group = group_of[static_cast<std::size_t>(host)];
    if (group < 0) {
      group = static_cast<int>(groups.size());
      groups.push_back({host, {}});
    }
    if (i > 0) groups[static_cast<std::size_t>(group)].ranks.push_back(rank);
  }
  return groups;
}

/// Copies that a host memory has under way to its own GPUs.
constexpr int kServedAtOnce = 64;

/// Lanes of a host memory: 0 to k - 2 forward along the tree, as for GPUs; the copies to its own
/// GPUs go beside them, one lane each.
Program build_host_staged_knomial(const BuildRequest& request) {
  const auto k = static_cast<int>(request.parameter("k"));
  Builder builder("host_staged_knomial", request.contract(1));
  const Slice message = builder.input(request.root, 0, 1);
  keep_own(builder, request.root, 0, 1, 1);
  if (request.ranks == 1) return builder.finish();

  std::vector<PlaceId> places;
  for (int host = 0; host < request.hosts; ++host) places.push_back(builder.add_host());
  const std::vector<HostGroup> groups = host_groups(request);
  const auto staged = [&](const HostGroup& group) {
    return builder.tmp(places[static_cast<std::size_t>(group.host)], 0, 1);
  };
  const std::vector<KnomialEdge> edges = knomial_edges(static_cast<int>(groups.size()), k);
  std::vector<bool> holds(groups.size(), false);  // whether the message is staged there
  holds[0] = true;
  for (const KnomialEdge& edge : edges) holds[static_cast<std::size_t>(edge.parent)] = true;

  builder.copy(staged(groups[0]), message);
  for (const KnomialEdge& edge : edges) {
    const HostGroup& child = groups[static_cast<std::size_t>(edge.child)];
    // A leaf with one rank writes its GPU at once: no second staging.
    if (child.ranks.size() > 1) holds[static_cast<std::size_t>(edge.child)] = true;
    builder.copy(holds[static_cast<std::size_t>(edge.child)] ? staged(child)
                                                             : builder.output(child.ranks[0], 0, 1),
                 staged(groups[static_cast<std::size_t>(edge.parent)]), {.lane = edge.branch});
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!holds[g]) continue;
    int served = 0;
    for (const int rank : groups[g].ranks) {
      builder.copy(builder.output(rank, 0, 1), staged(groups[g]),
                   {.lane = k - 1 + served++ % kServedAtOnce});
    }
  }
  return builder.finish();
}

}  // namespace

const Algorithm& host_staged_knomial_algorithm() {
  static const Algorithm algorithm = {
      .name = "host_staged_knomial",
      .summary =
          "from the root to its host memory, along a k-nomial tree of host memories, then to the "
          "GPUs",
      .constraints = "any number of ranks; needs host memory",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 6",
      .collectives = {Collective::broadcast},
      .parameters = {{"k",
                      "degree of the tree: each round reaches k times as many host memories",
                      2,
                      2,
                      1024,
                      {4, 8}}},
      .uses_hosts = true,
      .unsupported = missing_host,
      .build = build_host_staged_knomial};
  return algorithm;
}

}  // namespace espalier

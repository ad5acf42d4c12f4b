// SPDX-License-Identifier: Apache-2.0
// The k-nomial tree of "Optimized broadcast for deep learning" (OSU 2017), section III-A, eq. 3: a
// holder sends to k - 1 others at once, so k - 1 lanes; ceil(log_k n) rounds for any n.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

void build_broadcast(Builder& builder, const BuildRequest& request, int k) {
  for (const KnomialEdge& edge : knomial_edges(request.ranks, k)) {
    const int parent = real_rank(request, edge.parent);
    const Slice held =
        edge.parent == 0 ? builder.input(parent, 0, 1) : builder.output(parent, 0, 1);
    builder.copy(builder.output(real_rank(request, edge.child), 0, 1), held, {.lane = edge.branch});
  }
  keep_own(builder, request.root, 0, 1, k - 1);
}

/// The broadcast in reverse. A parent reads all children of a round in one op; what it has stands
/// first, so that contributions fold in the order root, root + 1, ...
void build_reduce(Builder& builder, const BuildRequest& request, int k) {
  const std::vector<KnomialEdge> edges = knomial_edges(request.ranks, k);
  std::vector<bool> started(static_cast<std::size_t>(request.ranks), false);
  const auto held = [&](int relative) {
    const int rank = real_rank(request, relative);
    return started[static_cast<std::size_t>(relative)] ? accumulator(builder, rank, 0, 1)
                                                       : builder.input(rank, 0, 1);
  };
  for (std::size_t end = edges.size(), begin; end > 0; end = begin) {
    const KnomialEdge& last = edges[end - 1];
    begin = end - 1;  // The children of one parent in one round stand together.
    while (begin > 0 && edges[begin - 1].round == last.round &&
           edges[begin - 1].parent == last.parent) {
      --begin;
    }
    std::vector<Slice> sources = {held(last.parent)};
    for (std::size_t i = begin; i < end; ++i) sources.push_back(held(edges[i].child));
    builder.combine(accumulator(builder, real_rank(request, last.parent), 0, 1), sources);
    started[static_cast<std::size_t>(last.parent)] = true;
  }
  if (request.ranks == 1) keep_own(builder, 0, 0, 1, 0);
}

Program build_knomial(const BuildRequest& request) {
  const auto k = static_cast<int>(request.parameter("k"));
  Builder builder("knomial", request.contract(1));
  if (request.collective == Collective::broadcast) {
    build_broadcast(builder, request, k);
  } else {
    build_reduce(builder, request, k);
  }
  return builder.finish();
}

}  // namespace

const Algorithm& knomial_algorithm() {
  static const Algorithm algorithm = {
      .name = "knomial",
      .summary =
          "a k-nomial tree: in each round, every rank that has the message sends it to k - 1 more",
      .constraints = "any number of ranks",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 3",
      .collectives = {Collective::broadcast, Collective::reduce},
      .parameters = {{"k",
                      "degree of the tree: each round reaches k times as many ranks",
                      2,
                      2,
                      1024,
                      {4, 8}}},
      .of_ranks_alone = true,
      .build = build_knomial};
  return algorithm;
}

}  // namespace espalier

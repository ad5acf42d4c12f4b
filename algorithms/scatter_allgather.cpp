// SPDX-License-Identifier: Apache-2.0
// Broadcast for large messages: binomial scatter, then a ring allgather (van de Geijn; Thakur,
// Rabenseifner and Gropp, IJHPCA 2005; equation 4 of "Optimized broadcast for deep learning", OSU
// 2017). A block that a rank already has, because its subtree of the scatter needed
// it or because it is the root, is not sent to it again (Zhou, Marjanovic, Niethammer and Gracia,
// ICPP workshops 2015). That saves bytes but no time: the root's one lane sends in every step
// either way, (n - 1)/n of the message in the scatter and again in the ring.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// Units are numbered from the root on, so that a subtree of the scatter is one slice: position p
/// of the ring holds unit p after the scatter.
Program build_scatter_allgather(const BuildRequest& request) {
  const int n = request.ranks;
  Builder builder("scatter_allgather", request.contract(n));
  const auto held = [&](int position, std::int64_t begin, std::int64_t length) {
    const int rank = real_rank(request, position);
    return position == 0 ? builder.input(rank, begin, length) : builder.output(rank, begin, length);
  };
  std::vector<int> spans(static_cast<std::size_t>(n), n);  // units held after the scatter
  for (const KnomialEdge& edge : knomial_edges(n, 2)) {
    builder.copy(held(edge.child, edge.child, edge.span), held(edge.parent, edge.child, edge.span));
    spans[static_cast<std::size_t>(edge.child)] = edge.span;
  }
  for (int step = 1; step < n; ++step) {
    for (int position = 0; position + 1 < n; ++position) {  // The last one would feed the root.
      const int next = position + 1;
      const int unit = wrap(next - step, n);
      const bool has_it = unit >= next && unit < next + spans[static_cast<std::size_t>(next)];
      if (!has_it) builder.copy(held(next, unit, 1), held(position, unit, 1));
    }
  }
  keep_own(builder, request.root, 0, n, 1);
  return builder.finish();
}

}  // namespace

const Algorithm& scatter_allgather_algorithm() {
  static const Algorithm algorithm = {
      .name = "scatter_allgather",
      .summary = "binomial scatter of n blocks, then a ring allgather",
      .constraints = "any number of ranks",
      .paper = "Thakur et al., IJHPCA 2005; Optimized broadcast for deep learning, OSU 2017, eq. 4",
      .collectives = {Collective::broadcast},
      .of_ranks_alone = true,
      .max_ranks = kMaxQuadraticRanks,
      .build = build_scatter_allgather};
  return algorithm;
}

}  // namespace espalier

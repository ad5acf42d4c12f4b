// SPDX-License-Identifier: Apache-2.0
// The chain of "Optimized broadcast for deep learning" (OSU 2017), section III-A, equation 2.
#include "algorithms/chain.h"

#include "algorithms/schedules.h"

namespace espalier {

Program build_chain(const BuildRequest& request, const std::string& name) {
  constexpr int kUpLane = 0;  // Lanes apart: chunks go down while later ones still come up.
  constexpr int kDownLane = 1;
  constexpr int kLocalLane = 2;
  const int n = request.ranks;
  Builder builder(name, request.contract(1));
  if (request.collective != Collective::broadcast) {
    for (int i = n - 2; i >= 0; --i) {
      const int rank = real_rank(request, i);
      const int next = real_rank(request, i + 1);
      builder.combine(accumulator(builder, rank, 0, 1),
                      {builder.input(rank, 0, 1),
                       i == n - 2 ? builder.input(next, 0, 1) : accumulator(builder, next, 0, 1)},
                      {.lane = kUpLane});
    }
  }
  std::vector<int> order;
  for (int i = 0; i < n; ++i) order.push_back(real_rank(request, i));
  if (request.collective == Collective::broadcast) {
    relay(builder, order, builder.input(request.root, 0, 1), 0, kDownLane);
  } else if (request.collective == Collective::allreduce) {
    relay(builder, order, builder.output(order[0], 0, 1), 0, kDownLane);
  }
  if (request.collective == Collective::broadcast || n == 1) {
    keep_own(builder, order[0], 0, 1, kLocalLane);
  }
  return builder.finish();
}

const Algorithm& chain_algorithm() {
  static const Algorithm algorithm = {
      .name = "chain",
      .summary = "the whole message hops from rank to rank",
      .constraints = "any rank count",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 2",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allreduce},
      .build = [](const BuildRequest& request) { return build_chain(request, "chain"); }};
  return algorithm;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The chain of "Optimized broadcast for deep learning" (OSU 2017), section III-A, equation 2.
#include "algorithms/chain.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "algorithms/schedules.h"

namespace espalier {

namespace {

constexpr int kUpLane = 0;  // Lanes apart: chunks go down while later ones still come up.
constexpr int kDownLane = 1;
constexpr int kLanes = 2;

/// The ranks from the last one to the first combine what they have of a unit.
void combine_up(Builder& builder, const std::vector<int>& order, std::int64_t unit, int lane) {
  for (std::size_t i = order.size() - 1; i-- > 0;) {
    const int next = order[i + 1];
    const bool is_last = i + 2 == order.size();
    builder.combine(accumulator(builder, order[i], unit, 1),
                    {builder.input(order[i], unit, 1),
                     is_last ? builder.input(next, unit, 1) : accumulator(builder, next, unit, 1)},
                    {.lane = lane});
  }
}

/// All rotations of the chain of an allreduce, an equal part of the message each.
Program build_rotated_chains(const BuildRequest& request) {
  Builder builder("chain", request.contract(request.ranks));
  for (int first = 0; first < request.ranks; ++first) {
    std::vector<int> order;
    for (int i = 0; i < request.ranks; ++i) order.push_back(wrap(first + i, request.ranks));
    combine_up(builder, order, first, kLanes * first + kUpLane);
    relay(builder, order, builder.output(first, first, 1), first, kLanes * first + kDownLane);
  }
  return builder.finish();
}

Program build_plain_or_rotated(const BuildRequest& request) {
  const bool rotated = request.parameter("rotated") == 1 && request.ranks > 1;
  return rotated ? build_rotated_chains(request) : build_chain(request, "chain");
}

std::optional<std::string> unsupported_rotation(const BuildRequest& request) {
  if (request.parameter("rotated") == 0) return std::nullopt;
  if (request.collective != Collective::allreduce) {
    return "rotated=1 is for allreduce only: a root is always the head of its chain";
  }
  if (request.ranks <= kMaxQuadraticRanks) return std::nullopt;
  return fmt::format("rotated=1 supports at most {} ranks", kMaxQuadraticRanks);
}

}  // namespace

Program build_chain(const BuildRequest& request, const std::string& name) {
  constexpr int kLocalLane = 2;
  Builder builder(name, request.contract(1));
  std::vector<int> order;
  for (int i = 0; i < request.ranks; ++i) order.push_back(real_rank(request, i));
  if (request.collective != Collective::broadcast) combine_up(builder, order, 0, kUpLane);
  if (request.collective == Collective::broadcast) {
    relay(builder, order, builder.input(request.root, 0, 1), 0, kDownLane);
  } else if (request.collective == Collective::allreduce) {
    relay(builder, order, builder.output(order[0], 0, 1), 0, kDownLane);
  }
  if (request.collective == Collective::broadcast || request.ranks == 1) {
    keep_own(builder, order[0], 0, 1, kLocalLane);
  }
  return builder.finish();
}

const Algorithm& chain_algorithm() {
  static const Algorithm algorithm = {
      .name = "chain",
      .summary = "the whole message is passed from rank to rank",
      .constraints = "any number of ranks",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 2",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allreduce},
      .parameters = {{"rotated",
                      "1: one part per rank, each along a chain that begins one rank later, "
                      "so that every link of the ring is used equally (allreduce)",
                      0, 0, 1}},
      .of_ranks_alone = true,
      .unsupported = unsupported_rotation,
      .build = build_plain_or_rotated};
  return algorithm;
}

}  // namespace espalier

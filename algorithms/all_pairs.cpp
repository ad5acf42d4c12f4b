// SPDX-License-Identifier: Apache-2.0
// One-stage allreduce for small messages: every rank reads everybody's message. n - 1 times the
// bytes of one message, but one start-up (the one-phase all-pairs of Shah et al., MSCCL++, 2025;
// "one-shot" in other GPU libraries). All ranks fold in the order 0, 1, ..., so they agree to the
// last bit.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

/// In place, messages that others still read must not be written over: the result waits in scratch.
Program build_all_pairs(const BuildRequest& request) {
  constexpr int kReadLane = 0;
  constexpr int kLocalLane = 1;
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  Builder builder("all_pairs", request.contract(1));
  const bool staged = request.in_place && request.ranks > 1;
  for (int rank = 0; rank < request.ranks; ++rank) {
    reduce_all(builder, staged ? builder.tmp(rank, 0, 1) : builder.output(rank, 0, 1), 0, 0,
               at_once, kReadLane);
  }
  for (int rank = 0; staged && rank < request.ranks; ++rank) {
    builder.copy(builder.output(rank, 0, 1), builder.tmp(rank, 0, 1), {.lane = kLocalLane});
  }
  return builder.finish();
}

}  // namespace

const Algorithm& all_pairs_algorithm() {
  static const Algorithm algorithm = {
      .name = "all_pairs",
      .summary = "every rank reads all messages and adds them up, in one stage",
      .constraints = "any number of ranks",
      .paper = "Shah et al., MSCCL++, 2025 (one-phase all-pairs)",
      .collectives = {Collective::allreduce},
      .parameters = {at_once_parameter()},
      .of_ranks_alone = true,
      .max_ranks = kMaxQuadraticRanks,
      .build = build_all_pairs};
  return algorithm;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The flat allreduce of "Interconnect-aware multi-path GPU communication with UCX", section "The
// flat intra-node GPU-based MPI allreduce", for fully connected GPUs: every rank reduces its share
// of the message, reading all others at once, then hands it to all others. Chunks overlap the two
// stages.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

Program build_flat_two_stage(const BuildRequest& request) {
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  Builder builder("flat_two_stage", request.contract(request.ranks));
  for (int rank = 0; rank < request.ranks; ++rank) reduce_and_hand_out(builder, rank, at_once);
  return builder.finish();
}

}  // namespace

const Algorithm& flat_two_stage_algorithm() {
  static const Algorithm algorithm = {
      .name = "flat_two_stage",
      .summary = "every rank reduces its share from all others, then hands it to all others",
      .constraints = "any rank count",
      .paper = "Interconnect-aware multi-path GPU communication with UCX",
      .collectives = {Collective::allreduce},
      .parameters = {at_once_parameter()},
      .pipelined = true,
      .max_ranks = kMaxQuadraticRanks,
      .build = build_flat_two_stage};
  return algorithm;
}

}  // namespace espalier

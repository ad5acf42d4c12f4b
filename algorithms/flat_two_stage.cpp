// SPDX-License-Identifier: Apache-2.0
// The flat allreduce of "Interconnect-aware multi-path GPU communication with UCX", section "The
// flat intra-node GPU-based MPI allreduce", for fully connected GPUs: every rank reduces its share
// of the message, reading all others at once, then hands it to all others. Chunks overlap the two
// stages; transfers within a socket may also pass through host memory.
#include "algorithms/schedules.h"

namespace espalier {

namespace {

Program build_flat_two_stage(const BuildRequest& request) {
  const auto at_once = static_cast<int>(request.parameter("at_once"));
  const auto streams = static_cast<int>(request.parameter("streams"));
  Builder builder("flat_two_stage", request.contract(std::int64_t{request.ranks} * streams));
  for (int rank = 0; rank < request.ranks; ++rank) {
    for (int stream = 0; stream < streams; ++stream) {
      reduce_and_hand_out(builder, rank, std::int64_t{rank} * streams + stream,
                          stream * (1 + at_once), at_once);
    }
  }
  return striped(builder.finish(), request);
}

}  // namespace

const Algorithm& flat_two_stage_algorithm() {
  static const Algorithm algorithm = {
      .name = "flat_two_stage",
      .summary = "every rank reduces its share from all others, then sends it to all others",
      .constraints = "any number of ranks",
      .paper = "Interconnect-aware multi-path GPU communication with UCX",
      .collectives = {Collective::allreduce},
      .parameters =
          {host_share_parameter(),
           {"streams",
            "parts of a share, each on its own stream: one is reduced while others arrive",
            1,
            1,
            8,
            {2}},
           at_once_parameter()},
      .pipelined = true,
      .staggered = true,
      .uses_hosts = true,
      .max_ranks = kMaxQuadraticRanks,
      .unsupported =
          [](const BuildRequest& request) {
            return cannot_stripe(request.ranks * request.parameter("streams"),
                                 striping_of(request));
          },
      .build = build_flat_two_stage};
  return algorithm;
}

}  // namespace espalier

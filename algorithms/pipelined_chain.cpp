// SPDX-License-Identifier: Apache-2.0
// The proposed design of "Optimized broadcast for deep learning" (OSU 2017), section IV-B, eq. 5:
// the chain's program, which the chunk pass cuts.
#include "algorithms/chain.h"

namespace espalier {

const Algorithm& pipelined_chain_algorithm() {
  static const Algorithm algorithm = {
      .name = "pipelined_chain",
      .summary = "chunks of the message are passed from rank to rank in a pipeline",
      .constraints = "any number of ranks",
      .paper = "Optimized broadcast for deep learning, OSU 2017, eq. 5",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allreduce},
      .pipelined = true,
      .of_ranks_alone = true,
      .build = [](const BuildRequest& request) { return build_chain(request, "pipelined_chain"); }};
  return algorithm;
}

}  // namespace espalier

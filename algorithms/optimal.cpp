// SPDX-License-Identifier: Apache-2.0
// The best trees for the machine at hand, planned before the program is built.
#include "algorithms/forest_program.h"
#include "algorithms/schedules.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"

namespace espalier {

namespace {

/// Data goes up and down a tree at the same time only when its strips are cut into many pieces, so
/// that strips should not be many, too.
constexpr std::int64_t kMostAllreduceOps = 2'000;

Forest plan_optimal(const BuildRequest& request) {
  if (request.ranks == 1) return nothing_to_send(request.collective);
  if (request.collective == Collective::allreduce) {
    return pack_allreduce(*request.router, *request.placement);
  }
  return pack_arborescences(request.collective, request.root, *request.router, *request.placement,
                            {.trees_per_root = request.parameter("k")});
}

Program write_optimal(const BuildRequest& request, const Forest& forest) {
  if (request.ranks == 1) {
    Builder builder("optimal", request.contract(1));
    keep_own(builder, 0, 0, 1, 0);
    return builder.finish();
  }
  Strips strips{.per_unit = request.parameter("streams")};
  if (request.collective != Collective::allreduce) {
    return forest_program("optimal", request, forest, strips);
  }
  strips.most_ops = kMostAllreduceOps;
  return allreduce_program("optimal", request, forest, strips);
}

}  // namespace

const Algorithm& optimal_algorithm() {
  static const Algorithm algorithm = {
      .name = "optimal",
      .summary = "trees packed for the machine at hand, at the rate of its bound",
      .constraints = "needs a machine; 512 ranks at most",
      .paper = "Edmonds 1973; Nash-Williams, Tutte 1961; ForestColl, arXiv 2402.06787",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allreduce,
                      Collective::allgather, Collective::reducescatter},
      .parameters = {{"k", "trees per root, except for allreduce; 0: as many as the optimum takes",
                      0, 0, 1024},
                     {"streams", "transfers side by side that share a tree's part of a link", 2, 1,
                      8}},
      .pipelined = true,
      .staggered = true,
      .uses_relays = true,
      .needs_machine = true,
      .max_ranks = 512,
      .plan = plan_optimal,
      .write = write_optimal};
  return algorithm;
}

}  // namespace espalier

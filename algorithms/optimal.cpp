// SPDX-License-Identifier: Apache-2.0
// The best trees and paths for the machine at hand, planned before the program is built.
#include <fmt/format.h>

#include "algorithms/forest_program.h"
#include "algorithms/path_program.h"
#include "algorithms/schedules.h"
#include "planner/alike_nodes.h"
#include "planner/inside_hosts.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "planner/pack_paths.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

/// Data goes up and down a tree at the same time only when its strips are cut into many pieces, so
/// that strips should not be many, too.
constexpr std::int64_t kMaxAllreduceOps = 4'000;
/// Paths that share a link need strips of about one weight, not of one unit: exact shares take
/// hundreds of units.
constexpr std::int64_t kMaxPathOps = 2'000;

Forest pack(const BuildRequest& request, const Router& router) {
  if (request.collective == Collective::allreduce) {
    return pack_allreduce(router, *request.placement,
                          request.parameter("trees") == 1 ? TreeCount::one : TreeCount::best);
  }
  if (has_paths(request.collective)) {
    return pack_paths(request.collective, request.root, router, *request.placement);
  }
  return pack_arborescences(request.collective, request.root, router, *request.placement,
                            {.trees_per_root = request.parameter("k")});
}

Forest plan_optimal(const BuildRequest& request) {
  if (request.ranks == 1) return nothing_to_send(request.collective);
  if (request.parameter("fabric") == 1) return pack(request, request.fabric_router());
  Forest forest = pack(request, *request.router);
  keep_inside_hosts(forest, *request.router, *request.placement);
  return forest;
}

/// The plan as its program follows it.
Forest rounded(const BuildRequest& request, const Forest& planned) {
  const std::int64_t wanted = request.parameter("strips");
  return wanted == 0 ? planned : round_weights(planned, wanted);
}

Strips strips_of(const BuildRequest& request) {
  Strips strips{.per_unit = request.parameter("streams")};
  if (has_paths(request.collective)) strips.max_ops = kMaxPathOps;
  if (request.collective == Collective::allreduce) strips.max_ops = kMaxAllreduceOps;
  return strips;
}

std::vector<Fold> fold_optimal(const BuildRequest& request, const Forest& planned) {
  if (request.ranks == 1 || has_paths(request.collective)) return {};
  const Forest forest = rounded(request, planned);
  return folds_of_trees(contract_of_trees(request, forest, strips_of(request)), forest);
}

Program write_optimal(const BuildRequest& request, const Forest& planned) {
  if (request.ranks == 1) {
    Builder builder("optimal", request.contract(1));
    keep_own(builder, 0, 0, 1, 0);
    return builder.finish();
  }
  const Forest forest = rounded(request, planned);
  const Strips strips = strips_of(request);
  if (has_paths(request.collective)) return path_program("optimal", request, forest, strips);
  if (request.collective != Collective::allreduce) {
    return forest_program("optimal", request, forest, strips);
  }
  return allreduce_program("optimal", request, forest, strips);
}

std::optional<std::string> unsupported_plan(const BuildRequest& request) {
  if (request.parameter("trees") == 1 && request.collective != Collective::allreduce) {
    return "trees=1 is for allreduce only; use k=1 for one tree per root";
  }
  if (request.ranks > 1 && request.parameter("fabric") == 1 &&
      unreachable_pair(request.fabric_router(), *request.placement)) {
    return "the GPU fabric does not connect all ranks";
  }
  if (!has_paths(request.collective)) {
    const bool is_free = request.parameter("trees") == 0 && request.parameter("k") == 0;
    if (is_free || request.ranks <= kMaxSearchedRanks) return std::nullopt;
    return fmt::format("trees and k are for at most {} ranks", kMaxSearchedRanks);
  }
  const std::int64_t demands = count_demands(request.collective, request.ranks);
  if (demands <= kMaxPathDemands) return std::nullopt;
  return fmt::format(
      "plans paths for at most {} pairs of ranks, but {} over {} ranks has {}; "
      "the algorithm direct has no such limit",
      kMaxPathDemands, to_string(request.collective), request.ranks, demands);
}

AlgorithmParameter strips_parameter() {
  return {.name = "strips",
          .meaning =
              "equal strips that the message is made of; trees that carry less than a strip "
              "are left out, as each costs blocks of the GPUs; 0: as many as the weights of "
              "the trees need",
          .default_value = 16,
          .minimum = 0,
          .maximum = 100'000,
          .tried = {0, 32},
          .weighed = true,
          .of_plan = false};
}

}  // namespace

const Algorithm& optimal_algorithm() {
  static const Algorithm algorithm = {
      .name = "optimal",
      .summary = "trees and paths planned for this machine, at the rate of its bound",
      .constraints = "at most 1024 ranks, 64 for alltoall; needs a machine",
      .paper =
          "Edmonds 1973; Nash-Williams, Tutte 1961; ForestColl, arXiv 2402.06787; "
          "Shahrokhi and Matula 1990",
      .collectives = {Collective::broadcast, Collective::reduce, Collective::allreduce,
                      Collective::allgather, Collective::reducescatter, Collective::gather,
                      Collective::scatter, Collective::alltoall, Collective::sendrecv},
      .parameters =
          {{"k",
            "number of trees per root, for broadcast, reduce, allgather and "
            "reducescatter; 0: as many as the optimum needs",
            0, 0, 1024},
           {"trees",
            "1: a good single tree, for comparison; 0: as many as the optimum needs (allreduce)", 0,
            0, 1},
           {.name = "streams",
            .meaning = "concurrent transfers that share a strip's part of a link",
            .default_value = 2,
            .minimum = 1,
            .maximum = 8,
            .of_plan = false},
           {.name = "fabric",
            .meaning = "1: plan for the GPU fabric alone, even if other links are allowed: the "
                       "little that they add can cost more in start-up than it gains",
            .default_value = 0,
            .minimum = 0,
            .maximum = 1,
            .tried = {1},
            .weighed = true},
           strips_parameter(),
           {.name = std::string(kPlanItself),
            .meaning = "1: these trees and paths, even where another algorithm of the catalogue is "
                       "faster; 0: the fastest, where a simulator can tell",
            .default_value = 0,
            .minimum = 0,
            .maximum = 1,
            .of_plan = false}},
      .pipelined = true,
      .staggered = true,
      .uses_relays = true,
      .needs_machine = true,
      .max_ranks = 1024,
      .unsupported = unsupported_plan,
      .folds_of_plan = fold_optimal,
      .plan = plan_optimal,
      .write = write_optimal};
  return algorithm;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "training/iteration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "algorithms/algorithm.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace espalier {
namespace {

std::shared_ptr<const Program> program_of(const std::string& algorithm, int ranks,
                                          Collective collective = Collective::allreduce,
                                          int root = 0) {
  BuildRequest request;
  request.collective = collective;
  request.ranks = ranks;
  request.root = root;
  request.in_place = true;
  request.host_of_rank.assign(ranks, 0);
  return std::make_shared<const Program>(build(parse_algorithm(algorithm), request));
}

/// Of `gradients` tensors, one millisecond each; a bucket after each of `ready_after`.
IterationPlan plan_of(int ranks, int gradients) {
  IterationPlan plan;
  plan.ranks = ranks;
  plan.forward_s = 0.002;
  for (int i = 0; i < gradients; ++i) {
    plan.gradients.push_back("t" + std::to_string(i));
    plan.backward_s.push_back(0.001);
  }
  return plan;
}

std::string problems_of(const Program& program) {
  std::string all;
  for (const Diagnostic& problem : verify(program).problems) all += render(problem) + "\n";
  return all;
}

/// By op: the ops that happen before it.
std::vector<std::vector<bool>> ancestors(const Program& program) {
  const std::size_t count = program.ops.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  std::map<std::pair<PlaceId, int>, OpId> newest;
  for (OpId id = 0; id < count; ++id) {
    const Op& op = program.ops[id];
    const auto inherit = [&](OpId earlier) {
      before[id][earlier] = true;
      for (OpId other = 0; other < earlier; ++other) {
        if (before[earlier][other]) before[id][other] = true;
      }
    };
    for (const OpId earlier : program.dependencies_of(op)) inherit(earlier);
    const auto lane = newest.find({op.at, op.lane});
    if (lane != newest.end()) inherit(lane->second);
    newest[{op.at, op.lane}] = id;
  }
  return before;
}

/// Every op of an exchange runs after the gradients it is about at every rank it touches, and (on
/// those ranks) after the exchange before.
void expect_order(const IterationPlan& plan, const Iteration& iteration) {
  const Program& program = iteration.program;
  const auto before = ancestors(program);
  const auto touches = [&](const Op& op, PlaceId place) {
    bool found = op.at == place || op.dst.place == place;
    for (const Operand& source : program.sources_of(op)) found = found || source.place == place;
    return found;
  };
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine) continue;
    const std::uint32_t part = iteration.part_of[id];
    const std::size_t exchange = part - iteration.first_part.front();
    const std::size_t gradient =
        plan.overlap ? plan.exchanges[exchange].ready_after : plan.gradients.size() - 1;
    for (PlaceId rank = 0; rank < plan.ranks; ++rank) {
      if (!touches(op, rank)) continue;
      const std::size_t made = plan.ranks * (1 + gradient) + rank;  // forward passes come first
      EXPECT_TRUE(before[id][made]) << to_string(program, id) << " before the gradient of " << rank;
      for (OpId earlier = 0; earlier < id; ++earlier) {
        const Op& other = program.ops[earlier];
        if (other.kind == OpKind::combine && iteration.part_of[earlier] + 1 == part &&
            touches(other, rank)) {
          EXPECT_TRUE(before[id][earlier]) << to_string(program, id) << " beside op " << earlier;
        }
      }
    }
  }
}

TEST(Iteration, IsComputeAndExchangesInOneProgram) {
  IterationPlan plan = plan_of(2, 1);
  plan.exchanges.push_back({0, 2, {{program_of("ring", 2)}}});
  const Iteration iteration = build_iteration(plan);
  EXPECT_EQ(problems_of(iteration.program), "");
  EXPECT_EQ(iteration.parts, (std::vector<std::string>{"forward", "backward t0", "bucket 0"}));
  EXPECT_EQ(print_program(iteration.program), R"(program training
collective allreduce
ranks 2
units 2
in_place
0: compute 0.002 at r0
1: compute 0.002 at r1
2: compute 0.001 at r0
3: compute 0.001 at r1
4: wait 0 at r0 lane 1 after 2
5: wait 0 at r1 lane 1 after 3
6: r0.out[0] <- r1.out[0] + r0.out[0] lane 2 after 4 5
7: r1.out[1] <- r0.out[1] + r1.out[1] lane 2 after 4 5
8: r1.out[0] <- r0.out[0] lane 2
9: r0.out[1] <- r1.out[1] lane 2
)");
}

TEST(Iteration, KeepsOrderWhereABucketHasFewerUnitsThanItsProgram) {
  // Two units among five ranks: three of the ring's five slices are empty.
  IterationPlan plan = plan_of(5, 2);
  plan.exchanges.push_back({0, 2, {{program_of("ring", 5)}}});
  plan.exchanges.push_back({1, 1, {{program_of("ring", 5)}}});
  const Iteration iteration = build_iteration(plan);
  EXPECT_EQ(problems_of(iteration.program), "");
  EXPECT_EQ(iteration.program.contract.units, 3);
  expect_order(plan, iteration);
}

TEST(Iteration, ReducesAndThenBroadcasts) {
  IterationPlan plan = plan_of(4, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    plan.exchanges.push_back({i,
                              7,
                              {{program_of("knomial", 4, Collective::reduce)},
                               {program_of("scatter_allgather", 4, Collective::broadcast)}}});
  }
  const Iteration iteration = build_iteration(plan);
  EXPECT_EQ(problems_of(iteration.program), "");
  expect_order(plan, iteration);
}

TEST(Iteration, EveryRankBroadcastsItsShare) {
  // Shares of 13 units among five ranks have two or three; those of two units, one or none.
  for (const char* scatter : {"direct", "ring", "ring:directions=2"}) {
    SCOPED_TRACE(scatter);
    IterationPlan plan = plan_of(5, 2);
    plan.call_s = 1e-5;
    for (const std::int64_t units : {13, 2}) {
      Exchange exchange{plan.exchanges.size(), units, {}};
      exchange.stages.push_back({program_of(scatter, 5, Collective::reducescatter)});
      for (int owner = 0; owner < 5; ++owner) {
        exchange.stages.push_back(
            {program_of("pipelined_chain", 5, Collective::broadcast, owner), owner, 5});
      }
      plan.exchanges.push_back(std::move(exchange));
    }
    const Iteration iteration = build_iteration(plan);
    EXPECT_EQ(problems_of(iteration.program), "");
    expect_order(plan, iteration);
    // A call is begun at each of five ranks in each of six stages, twice.
    const auto calls = std::ranges::count_if(iteration.program.ops, [&](const Op& op) {
      return op.kind == OpKind::wait && op.lane == kStartLane &&
             iteration.program.duration_s(op) == 1e-5;
    });
    EXPECT_EQ(calls, 5 * 6 * 2);
  }
}

TEST(Iteration, IsRightForRandomModels) {
  constexpr unsigned seed = 20261120;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto pick = [&](int minimum, int maximum) {
    return std::uniform_int_distribution<int>(minimum, maximum)(random);
  };
  const std::vector<std::string> algorithms = {"ring",
                                               "ring:directions=2",
                                               "chain",
                                               "parameter_server:host=1",
                                               "halving_doubling",
                                               "parameter_server",
                                               "double_binary_tree",
                                               "all_pairs"};
  for (int round = 0; round < 30; ++round) {
    const int gradients = pick(1, 6);
    IterationPlan plan = plan_of(pick(1, 6), gradients);
    plan.overlap = pick(0, 1) == 1;
    for (int next = 0; next < gradients;) {
      next += pick(1, gradients - next);
      const std::string algorithm = algorithms[pick(0, static_cast<int>(algorithms.size()) - 1)];
      SCOPED_TRACE(algorithm);
      plan.exchanges.push_back(
          {static_cast<std::size_t>(next - 1), pick(1, 40), {{program_of(algorithm, plan.ranks)}}});
    }
    const Iteration iteration = build_iteration(plan);
    EXPECT_EQ(problems_of(iteration.program), "");
    expect_order(plan, iteration);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace espalier

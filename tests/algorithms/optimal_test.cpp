// SPDX-License-Identifier: Apache-2.0
// The algorithm `optimal` by simulation: 99 % of what the machine's bound allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/bounds.h"
#include "run/routes.h"
#include "tests/algorithms/machines.h"

namespace espalier::programs {
namespace {

constexpr double kGibibyte = 1 << 30;
constexpr Collective kOneWay[] = {Collective::broadcast, Collective::reduce, Collective::allgather,
                                  Collective::reducescatter};
constexpr Collective kPaths[] = {Collective::gather, Collective::scatter, Collective::alltoall,
                                 Collective::sendrecv};
constexpr Collective kPlanned[] = {
    Collective::broadcast,     Collective::reduce,    Collective::allgather,
    Collective::reducescatter, Collective::allreduce, Collective::gather,
    Collective::scatter,       Collective::alltoall,  Collective::sendrecv};

double simulated_gbps(Machine& machine, const Program& program, double chunk_bytes) {
  const Chunking chunking =
      plan_chunking(program, kGibibyte, chunk_bytes, 4'000'000, /*stagger=*/true);
  RunOptions options;
  options.size_bytes = static_cast<std::int64_t>(kGibibyte);
  Simulator simulator;
  return simulator.run(chunk(program, chunking), {&machine.router, machine.placement}, options)
      .algbw_gbps();
}

void expect_near_bound(Machine& machine, Collective collective, int root, double fraction,
                       double chunk_bytes) {
  const Program program = machine.make("optimal:strips=0", collective, root);
  const Bound bound = bandwidth_bound(collective, root, machine.router, machine.placement);
  EXPECT_GE(simulated_gbps(machine, program, chunk_bytes), fraction * bound.algbw_gbps)
      << to_string(collective) << " of root " << root;
}

TEST(Optimal, ProgramsAreRight) {
  for (const char* spec : {"dgx1-v100", "dgx1-p100", "mist", "dgx-a100"}) {
    for (const LinkScope scope : {LinkScope::fabric, LinkScope::all}) {
      if (scope == LinkScope::fabric && std::string(spec) == "mist") continue;
      const Machine machine(spec, {}, scope);
      for (const Collective collective : kPlanned) {
        for (const bool in_place : {false, true}) {
          SCOPED_TRACE(std::string(spec) + " " + std::string(to_string(collective)));
          const Program program = machine.make("optimal:k=3", collective, 2, in_place);
          const Verification verification = verify(program);
          EXPECT_TRUE(verification.ok()) << verification.problems.front().message;
          EXPECT_TRUE(
              check_routes(program, {const_cast<Router*>(&machine.router), machine.placement})
                  .empty());
        }
      }
    }
  }
}

TEST(Optimal, FewStripsAreRight) {
  const Machine machine("dgx1-v100");
  for (const Collective collective : kPlanned) {
    const Program all = machine.make("optimal:fabric=0,strips=0", collective, 2);
    const Program few = machine.make("optimal:fabric=0,strips=5", collective, 2);
    EXPECT_LE(few.ops.size(), all.ops.size()) << to_string(collective);
    EXPECT_TRUE(verify(few).ok()) << to_string(collective);
  }
  const auto ops = [&](const char* spec) {
    return machine.make(spec, Collective::allreduce).ops.size();
  };
  EXPECT_LT(ops("optimal:strips=5"), ops("optimal:strips=0") * 2 / 3);
}

TEST(Optimal, OneAndTwoRanks) {
  for (const std::vector<int>& gpus : {std::vector<int>{4}, std::vector<int>{4, 7}}) {
    const Machine machine("dgx1-v100", gpus);
    for (const Collective collective : kPlanned) {
      EXPECT_TRUE(verify(machine.make("optimal:strips=0", collective)).ok());
    }
  }
}

TEST(Optimal, BroadcastFromEveryRootReachesTheBound) {
  for (const char* spec : {"dgx1-p100", "dgx1-v100"}) {
    Machine machine(spec);
    for (int root = 0; root < 8; ++root) {
      expect_near_bound(machine, Collective::broadcast, root, 0.99, 128 << 10);
    }
    expect_near_bound(machine, Collective::reduce, 3, 0.99, 128 << 10);
  }
}

TEST(Optimal, AllgatherAndReducescatterReachTheBound) {
  for (const char* spec : {"dgx1-p100", "dgx1-v100"}) {
    Machine machine(spec);
    expect_near_bound(machine, Collective::allgather, 0, 0.99, 96 << 10);
    expect_near_bound(machine, Collective::reducescatter, 0, 0.99, 96 << 10);
  }
}

TEST(Optimal, SubsetsReachTheBound) {
  int tried = 0;
  for (const char* spec : {"dgx1-p100", "dgx1-v100"}) {
    const std::vector<std::vector<int>> subsets = connected_subsets(spec);
    for (std::size_t i = 0; i < subsets.size(); i += subsets.size() / 12) {
      SCOPED_TRACE(testing::PrintToString(subsets[i]) + " of " + spec);
      Machine machine(spec, subsets[i]);
      const int root = static_cast<int>(i % subsets[i].size());
      expect_near_bound(machine, Collective::broadcast, root, 0.99, 128 << 10);
      expect_near_bound(machine, Collective::allgather, 0, 0.99, 96 << 10);
      ++tried;
    }
  }
  EXPECT_GE(tried, 20);
}

TEST(Optimal, SwitchedMachinesReachTheBoundWithinTwoPerCent) {
  Machine a100("dgx-a100");
  expect_near_bound(a100, Collective::allgather, 0, 0.98, 1 << 20);
  expect_near_bound(a100, Collective::broadcast, 5, 0.98, 256 << 10);
  Machine mi250("mi250");
  expect_near_bound(mi250, Collective::allgather, 0, 0.98, 64 << 10);
}

/// Ranks that NVLink does not join, ones that it joins thinly, and relays that are some or all of
/// the idle GPUs. Without relays the first two have no NVLink program at all, and gpu1, gpu4 and
/// gpu0 share 25 GB/s; with them every bound is reached within two per cent.
TEST(Optimal, RelaysReachTheBound) {
  struct Case {
    std::vector<int> gpus, relays;
  };
  for (const auto& [gpus, relays] :
       {Case{{0, 5}, {1, 2, 3, 4, 6, 7}}, Case{{1, 4, 6}, {0, 5}}, Case{{0, 1, 4}, {2, 3, 5, 6, 7}},
        Case{{2, 7, 1, 4}, {3, 5}}}) {
    SCOPED_TRACE(testing::PrintToString(gpus) + " with " + testing::PrintToString(relays));
    Machine machine("dgx1-v100", gpus, LinkScope::fabric, "ideal", relays);
    for (const Collective collective : kOneWay) {
      expect_right_on(machine, machine.make("optimal:strips=0", collective), true);
      expect_near_bound(machine, collective, 0, 0.98, 96 << 10);
    }
    expect_right_on(machine, machine.make("optimal:strips=0", Collective::allreduce), true);
    expect_near_bound(machine, Collective::allreduce, 0, 0.98, 64 << 10);
  }
}

TEST(Optimal, OthersSayThatTheyUseNoRelays) {
  const Machine machine("dgx1-v100", {0, 5}, LinkScope::fabric, "ideal", {1});
  EXPECT_EQ(machine.refusal("ring", Collective::allreduce),
            "only relays connect ranks 0 (gpu0) and 1 (gpu5), and ring does not use relays");
  EXPECT_EQ(machine.refusal("nccl_rings", Collective::allreduce),
            "only relays connect ranks 0 (gpu0) and 1 (gpu5), and nccl_rings does not use relays");
  EXPECT_EQ(machine.refusal("optimal", Collective::allreduce), "");
  // Where ranks are joined without relays, these change nothing for others.
  const Machine joined("dgx1-v100", {0, 1}, LinkScope::fabric, "ideal", {2});
  EXPECT_EQ(joined.make("ring", Collective::allreduce).relays, 0);
}

TEST(Optimal, PathsReachTheBound) {
  for (const char* spec : {"dgx1-p100", "dgx1-v100", "p3.8xlarge", "ring:n=6,gbps=25",
                           "torus:x=3,y=3,gbps=25", "switch:n=8,gbps=25"}) {
    SCOPED_TRACE(spec);
    Machine machine(spec);
    for (const Collective collective : kPaths) {
      expect_near_bound(machine, collective, machine.ranks() / 2, 0.99, 128 << 10);
    }
  }
}

TEST(Optimal, PathsOfSubsetsReachTheBound) {
  int tried = 0;
  for (const char* spec : {"dgx1-p100", "dgx1-v100"}) {
    const std::vector<std::vector<int>> subsets = connected_subsets(spec);
    for (std::size_t i = 0; i < subsets.size(); i += subsets.size() / 12) {
      SCOPED_TRACE(testing::PrintToString(subsets[i]) + " of " + spec);
      Machine machine(spec, subsets[i]);
      const int root = static_cast<int>(i % subsets[i].size());
      for (const Collective collective : kPaths) {
        expect_near_bound(machine, collective, root, 0.98, 128 << 10);
      }
      ++tried;
    }
  }
  EXPECT_GE(tried, 20);
}

TEST(Optimal, PathsInPlaceAreAsFast) {
  // Saving what is written over costs no time on links.
  Machine machine("dgx1-v100");
  for (const Collective collective : {Collective::alltoall, Collective::sendrecv}) {
    const Program out = machine.make("optimal:strips=0", collective, 0, false);
    const Program in = machine.make("optimal:strips=0", collective, 0, true);
    EXPECT_GE(simulated_gbps(machine, in, 128 << 10),
              0.98 * simulated_gbps(machine, out, 128 << 10))
        << to_string(collective);
  }
}

/// GPUs of a host that no NVLink joins, and one in another host: a plan by links alone would send
/// part of what they exchange through NICs.
TEST(Optimal, DataStaysInsideItsHost) {
  for (const LinkScope scope : {LinkScope::all, LinkScope::detours}) {
    Machine machine("dgx1-v100:nodes=2", {0, 3, 5, 6, 9}, scope, "kernel");
    int left = 0;
    for (const Collective collective : kPlanned) {
      const BuildRequest request = machine.request(collective);
      const Forest forest = plan(parse_algorithm("optimal"), request);
      EXPECT_THAT(check_forest(forest, machine.router, machine.placement), testing::IsEmpty());
      for (const PlannedTree& tree : forest.trees) {
        for (const TreeEdge& edge : tree.edges) {
          const bool is_inside = edge.parent < 4 && edge.child < 4;
          left += is_inside && std::ranges::any_of(edge.path, [&](NodeId node) {
                    return machine.topology.node(node).kind == NodeKind::fabric;
                  });
        }
      }
      expect_right_on(machine, machine.make("optimal:plan=1", collective), false);
    }
    EXPECT_EQ(left > 0, scope == LinkScope::detours);
  }
}

TEST(Optimal, RefusesMorePairsThanItPlans) {
  EXPECT_EQ(Machine("switch:n=64").refusal("optimal", Collective::alltoall), "");
  EXPECT_EQ(Machine("switch:n=65").refusal("optimal", Collective::alltoall),
            "plans paths for at most 4096 pairs of ranks, but alltoall over 65 ranks has 4160; "
            "the algorithm direct has no such limit");
  EXPECT_EQ(Machine("switch:n=65").refusal("optimal", Collective::sendrecv), "");
}

TEST(Optimal, OneTreeIsForAllreduce) {
  const Machine machine("p3.8xlarge", {});
  EXPECT_EQ(machine.refusal("optimal:trees=1", Collective::broadcast),
            "trees=1 is for allreduce only; use k=1 for one tree per root");
  EXPECT_EQ(machine.refusal("optimal:trees=1", Collective::allreduce), "");
}

}  // namespace
}  // namespace espalier::programs

// SPDX-License-Identifier: Apache-2.0
// Blink's protocols: right on every subset of both DGX-1s, planned rates that no link exceeds, and
// the times that the paper's arithmetic gives for symmetrical groups.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/blink_plan.h"
#include "planner/bounds.h"
#include "tests/algorithms/machines.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using programs::Machine;

constexpr double kSize = 1 << 30;

struct Case {
  const char* machine;
  Collective collective;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* machine : {"dgx1-p100", "dgx1-v100"}) {
    for (const Collective collective : find_algorithm("blink")->collectives) {
      cases.push_back({machine, collective});
    }
  }
  return cases;
}

class BlinkOnADgx1 : public testing::TestWithParam<Case> {};

TEST_P(BlinkOnADgx1, IsRightOnEveryConnectedSubset) {
  const auto& [name, collective] = GetParam();
  for (const std::vector<int>& gpus : connected_subsets(name)) {
    SCOPED_TRACE(fmt::format("GPUs {}", fmt::join(gpus, ",")));
    Machine machine(name, gpus);
    ASSERT_EQ(machine.refusal("blink", collective), "");
    for (int root = 0; root < (info(collective).rooted ? machine.ranks() : 1); ++root) {
      SCOPED_TRACE(fmt::format("root {}", root));
      expect_right_on(machine, machine.make("blink", collective, root), root == 0);
    }
    SCOPED_TRACE("in place");
    const int last = info(collective).rooted ? machine.ranks() - 1 : 0;
    expect_right_on(machine, machine.make("blink", collective, last, true), true);
  }
}

TEST_P(BlinkOnADgx1, PlansWhatItsLinksCarry) {
  const auto& [name, collective] = GetParam();
  for (const std::vector<int>& gpus : connected_subsets(name)) {
    SCOPED_TRACE(fmt::format("GPUs {}", fmt::join(gpus, ",")));
    const Machine machine(name, gpus);
    const Forest plan = plan_blink(collective, 0, machine.router, machine.placement);
    const Bound bound = bandwidth_bound(collective, 0, machine.router, machine.placement);
    EXPECT_LE(plan.algbw_gbps, bound.algbw_gbps * (1 + 1e-9));
    EXPECT_THAT(check_forest(plan, machine.router, machine.placement), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, BlinkOnADgx1, testing::ValuesIn(all_cases()),
                         [](const auto& tested) {
                           return fmt::format("{}_{}", std::string(tested.param.machine).substr(5),
                                              to_string(tested.param.collective));
                         });

TEST(Blink, BroadcastOnAQuadIsThreeForwardingTrees) {
  // n / 3b (figure 1b): a third of the message to each of the others, who forwards it; p pieces
  // take p + 1 steps, and the last one two hops. Two rings take n / 2b.
  Machine machine("dgx1-p100", {0, 1, 2, 3});
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Program program = machine.make("blink", collective, 1);
    for (const int pieces : {1, 8, 256}) {
      const double step_s = kSize / 3 / pieces / 20e9;
      EXPECT_NEAR(machine.time_s(program, kSize, pieces), (pieces + 1) * step_s + 2 * 0.3e-6,
                  1e-9 * pieces * step_s);
    }
  }
}

TEST(Blink, AllreduceOnAQuadIsReduceScatterAndBroadcast) {
  // Section 3.1: chunk r is combined at rank r, three quarters arriving over three links, and
  // handed out: two steps of n / 4b.
  Machine machine("dgx1-p100", {0, 1, 2, 3});
  const double step_s = kSize / 4 / 20e9 + 0.3e-6;
  const Program program = machine.make("blink", Collective::allreduce);
  EXPECT_NEAR(machine.time_s(program, kSize), 2 * step_s, 2e-9 * step_s);
  // Allgather and reduce-scatter: one step of a block.
  for (const Collective half : {Collective::allgather, Collective::reducescatter}) {
    EXPECT_NEAR(machine.time_s(machine.make("blink", half), kSize), step_s, 1e-9 * step_s);
  }
}

TEST(Blink, AllreduceOnTwoQuadsExchangesAcross) {
  // Figure 2 alone, in pieces: a link of a quad carries a quarter of the message to be combined and
  // a quarter of the result, 2b = 40 GB/s, while the cross links are half idle. With parts that
  // cross before they are combined, all 16 links are full: the bound, 16/7 x 20.
  Machine machine("dgx1-p100");
  const Forest plan = plan_blink(Collective::allreduce, 0, machine.router, machine.placement);
  EXPECT_EQ(plan.exact_algbw, "320/7");
  // Parts that figure 2 describes are among them: combined at both ends of a cross link.
  EXPECT_TRUE(std::any_of(plan.trees.begin(), plan.trees.end(),
                          [](const PlannedTree& tree) { return tree.partner >= 0; }));
  const Program program = machine.make("blink", Collective::allreduce);
  EXPECT_NEAR(kSize / machine.time_s(program, kSize, 128) * 1e-9, 320.0 / 7, 0.04 * 320 / 7);
}

/// Rates of allreduce on P100 in links of 20 GB/s, from the loads of a link that binds. Let p be
/// the parts that are combined in both groups and exchanged, s those that cross before.
TEST(Blink, AllreduceOnUnevenGroups) {
  const auto links = [](const std::vector<int>& gpus) {
    const Machine machine("dgx1-p100", gpus);
    return plan_blink(Collective::allreduce, 0, machine.router, machine.placement).algbw_gbps / 20;
  };
  EXPECT_DOUBLE_EQ(links({0, 1}), 1);
  EXPECT_DOUBLE_EQ(links({0, 1, 2}), 1.5);
  // 4 + 1 and 3 + 1 on one cross link: everything crosses it.
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4}), 1);
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 4}), 1);
  // 4 + 2: the pair's own link carries p <= t, its cross links 2 s + p <= 2 t: p = t, s = t / 2.
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4, 5}), 1.5);
  // 4 + 3: the bound, 12 links / 6.
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4, 5, 6}), 2);
  // A square is two pairs: 4 links / 3.
  EXPECT_NEAR(links({0, 1, 4, 5}), 4.0 / 3, 1e-12);
}

/// The protocols as printed, in links of 20 GB/s. With m pairs of counterparts (one group of m
/// GPUs: m owners), a link between owners carries a part to be combined and a part of the result in
/// each direction, 2 / m of the message; other links, and those across, half of that.
TEST(Blink, AsPrintedHasEqualParts) {
  const auto links = [](const std::vector<int>& gpus) {
    Machine machine("dgx1-p100", gpus);
    const Program program = machine.make("blink:printed=1", Collective::allreduce);
    EXPECT_TRUE(verify(program).ok());
    return plan_blink(Collective::allreduce, 0, machine.router, machine.placement,
                      BlinkShares::printed)
               .algbw_gbps /
           20;
  };
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3}), 2);
  EXPECT_DOUBLE_EQ(links({0, 1, 2}), 1.5);
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4, 5, 6, 7}), 2);
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4, 5, 6}), 1.5);
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4, 5}), 1);
  EXPECT_DOUBLE_EQ(links({0, 1, 2, 3, 4}), 1);  // one part, over the link across

  Machine quad("dgx1-p100", {0, 1, 2, 3});
  const Forest trees =
      plan_blink(Collective::broadcast, 2, quad.router, quad.placement, BlinkShares::printed);
  EXPECT_EQ(trees.trees.size(), 3U);
  EXPECT_EQ(trees.exact_algbw, "60");
  EXPECT_TRUE(verify(quad.make("blink:printed=1", Collective::broadcast, 2)).ok());
  EXPECT_NE(quad.refusal("blink:printed=1", Collective::gather), "");
  EXPECT_NE(Machine("dgx1-p100").refusal("blink:printed=1", Collective::broadcast), "");
}

TEST(Blink, GainsOverOneRingOnFourToSevenP100s) {
  // The paper measures up to twice the throughput of NCCL with 4 to 7 GPUs. Against one ring both
  // ways: 4 GPUs 2 / (4/3) = 1.5, 6 GPUs 1.5 / (6/5) = 1.25, 7 GPUs 2 / (7/6) = 1.71; with 5 there
  // is no ring of NVLinks and NCCL's relayed one reaches 5/8: 1 / (5/8) = 1.6.
  for (const auto& [gpus, gain] : {std::pair(4, 1.5), {5, 1.6}, {6, 1.25}, {7, 12.0 / 7}}) {
    std::vector<int> first;
    for (int gpu = 0; gpu < gpus; ++gpu) first.push_back(gpu);
    Machine machine("dgx1-p100", first);
    const auto time_s = [&](const char* spec) {
      return machine.time_s(machine.make(spec, Collective::allreduce), kSize, 256);
    };
    EXPECT_NEAR(time_s("nccl_rings") / time_s("blink"), gain, 0.02 * gain) << gpus;
  }
}

TEST(Blink, BroadcastToBothQuadsUsesTheRootsFourLinks) {
  // What the root sends across comes back over the three other cross links: 4 x 20 GB/s.
  Machine machine("dgx1-p100");
  for (int root = 0; root < 8; ++root) {
    const Forest plan = plan_blink(Collective::broadcast, root, machine.router, machine.placement);
    EXPECT_EQ(plan.exact_algbw, "80");
  }
}

TEST(Blink, GatherFillsEveryLinkIntoTheRoot) {
  // Seven eighths of the message over four links of 20 GB/s: 640/7 GB/s.
  Machine machine("dgx1-p100");
  const Forest plan = plan_blink(Collective::gather, 3, machine.router, machine.placement);
  EXPECT_EQ(plan.exact_algbw, "640/7");
  const Program program = machine.make("blink", Collective::gather, 3);
  const double ideal_s = kSize * 7 / 8 / 80e9;
  EXPECT_NEAR(machine.time_s(program, kSize, 64), ideal_s, 0.02 * ideal_s);
}

TEST(Blink, WiderLinksCarryMore) {
  // V100: both groups of {0, 4} and {1, 5} are pairs; {0, 4} has a double link, as has {1, 5}; so
  // the groups are these and not {0, 1} and {4, 5}, which single links join. A part that is
  // exchanged over a single cross link loads the pairs' links once each way: two cross links of 25
  // carry 50 together.
  Machine machine("dgx1-v100", {0, 1, 4, 5});
  const Forest plan = plan_blink(Collective::allreduce, 0, machine.router, machine.placement);
  EXPECT_EQ(plan.exact_algbw, "50");
}

TEST(Blink, SwitchedMachinesAreOneGroup) {
  // Every GPU sends and receives the message once per direction of its port, less its own share:
  // reduce-scatter and broadcast of 8 parts, 300 x 8 / (2 x 7).
  Machine machine("dgx-a100");
  const Program program = machine.make("blink", Collective::allreduce);
  expect_right_on(machine, program, true);
  const Forest plan = plan_blink(Collective::allreduce, 0, machine.router, machine.placement);
  EXPECT_EQ(plan.exact_algbw, "1200/7");
}

TEST(Blink, RefusesWithTheReason) {
  const auto refusal = [](const char* spec, const std::vector<int>& gpus) {
    return Machine(spec, gpus).refusal("blink", Collective::allreduce);
  };
  const std::string needs = "blink needs one or two groups of fully connected GPUs: ";
  EXPECT_EQ(unsupported(parse_algorithm("blink"), programs::request(Collective::allreduce, 4)),
            "needs a machine");
  EXPECT_EQ(refusal("ring:n=8", {}),
            needs + "these GPUs form more than two groups that the GPU fabric connects fully");
  EXPECT_EQ(refusal("dgx1-p100", {0, 1, 6}),
            needs + "the GPU fabric does not connect {gpu0, gpu1} and {gpu6}");
  EXPECT_EQ(refusal("p2.8xlarge", {0, 1}),
            needs + "the GPU fabric does not connect {gpu0} and {gpu1}");
  EXPECT_EQ(refusal("switch:n=17", {}),
            "supports at most 16 ranks; for more, its program would be too large");
}

}  // namespace
}  // namespace espalier

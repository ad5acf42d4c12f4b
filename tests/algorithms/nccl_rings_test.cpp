// SPDX-License-Identifier: Apache-2.0
// The rings of a machine as programs: right everywhere, and as fast as their closed forms.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/algorithms/machines.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using programs::Machine;

constexpr double kSize = 1 << 30;

const std::vector<Collective>& ring_collectives() {
  return find_algorithm("nccl_rings")->collectives;
}

class RingsOnADgx1 : public testing::TestWithParam<const char*> {};

TEST_P(RingsOnADgx1, AreRightOnEveryConnectedSubset) {
  int relayed = 0;
  for (const std::vector<int>& gpus : connected_subsets(GetParam())) {
    SCOPED_TRACE(fmt::format("GPUs {}", fmt::join(gpus, ",")));
    Machine machine(GetParam(), gpus);
    for (const Collective collective : ring_collectives()) {
      ASSERT_EQ(machine.refusal("nccl_rings", collective), "");
      for (int root = 0; root < (info(collective).rooted ? machine.ranks() : 1); ++root) {
        for (const bool in_place : {false, true}) {
          SCOPED_TRACE(
              fmt::format("{} root {} in place {}", to_string(collective), root, in_place));
          const Program program = machine.make("nccl_rings", collective, root, in_place);
          expect_right_on(machine, program, root == 0);
          relayed += std::any_of(program.ops.begin(), program.ops.end(), [](const Op& op) {
            return op.dst.buffer == Buffer::tmp && op.src_count == 1;
          });
        }
      }
    }
  }
  EXPECT_GT(relayed, 0) << "some subsets have relayed rings only";
}

INSTANTIATE_TEST_SUITE_P(Machines, RingsOnADgx1, testing::Values("dgx1-p100", "dgx1-v100"),
                         [](const auto& tested) { return std::string(tested.param).substr(5); });

TEST(NcclRings, AllreduceOnAWholeDgx1) {
  // k cycles both ways: 2k channels, each with 8 chunks; 14 steps of a 16k-th of the message at a
  // link's rate, 0.3 us of wire each. Algbw 8 x 2k / 14 links: 24/7 and 16/7.
  for (const auto& [name, cycles, gbps] :
       {std::tuple("dgx1-v100", 3, 25.0), {"dgx1-p100", 2, 20.0}}) {
    Machine machine(name);
    const double step_s = kSize / (16.0 * cycles) / (gbps * 1e9) + 0.3e-6;
    const Program program = machine.make("nccl_rings", Collective::allreduce);
    EXPECT_NEAR(machine.time_s(program, kSize), 14 * step_s, 1e-9 * 14 * step_s) << name;
    // Reduce-scatter and allgather are half of it each.
    for (const Collective half : {Collective::allgather, Collective::reducescatter}) {
      const double time_s = machine.time_s(machine.make("nccl_rings", half), kSize);
      EXPECT_NEAR(time_s, 7 * step_s, 1e-9 * 7 * step_s) << name;
    }
  }
}

TEST(NcclRings, BroadcastOnAQuadGoesRoundTwoRings) {
  // n / 2b (Blink, figure 1a): half of the message each way round, 3 hops; p pieces take p + 2
  // steps, and the last one three hops.
  Machine machine("dgx1-p100", {0, 1, 2, 3});
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Program program = machine.make("nccl_rings", collective, 2);
    for (const int pieces : {1, 4, 256}) {
      const double step_s = kSize / 2 / pieces / 20e9;
      EXPECT_NEAR(machine.time_s(program, kSize, pieces), (pieces + 2) * step_s + 3 * 0.3e-6,
                  1e-9 * pieces * step_s);
    }
  }
}

TEST(NcclRings, RingsThatShareADoubleLinkEachGetOneOfItsLinks) {
  // V100 quad: two cycles both ways over 8 of its 9 units; 4 channels, 4 chunks: 6 steps.
  Machine machine("dgx1-v100", {0, 1, 2, 3});
  const double step_s = kSize / 16 / 25e9 + 0.3e-6;
  const Program program = machine.make("nccl_rings", Collective::allreduce);
  EXPECT_NEAR(machine.time_s(program, kSize), 6 * step_s, 1e-9 * 6 * step_s);
}

TEST(NcclRings, SixGpusOfAP100UseSixLinks) {
  Machine machine("dgx1-p100", {0, 1, 2, 3, 4, 5});
  const Program program = machine.make("nccl_rings", Collective::allreduce);
  EXPECT_EQ(programs::traffic(program).size(), 12U);  // both directions of six links
}

TEST(NcclRings, ARelayCarriesWhatItsNeighbourHasNoLinkFor) {
  // GPU 4 of a P100 has a link to 0 only. One channel; 0 sends what its ring brings it and what it
  // relays: every other GPU sends and receives each of 5 chunks 8 times in 5, 0 twice that.
  Machine machine("dgx1-p100", {0, 1, 2, 3, 4});
  const Program program = machine.make("nccl_rings", Collective::allreduce);
  const programs::Load load = programs::load(program);
  EXPECT_NEAR(load.sent[0], 2 * 8.0 / 5, 1e-12);
  EXPECT_NEAR(load.received[0], 2 * 8.0 / 5, 1e-12);
  for (const std::size_t rank : {1U, 2U, 3U, 4U}) EXPECT_NEAR(load.sent[rank], 8.0 / 5, 1e-12);
}

TEST(NcclRings, PerLinkBandwidthIsThatOfTheProfile) {
  // 21.3 of 25 GB/s per NVLink 2 is the profile's efficiency; nothing else is taken off.
  Machine machine("dgx1-v100", {}, LinkScope::fabric, "kernel");
  const Program program = machine.make("nccl_rings", Collective::allreduce);
  // Steps of a 48th of the message at 21.3 GB/s; 0.3 us of wire and 3.1 us of start-up.
  const double step_s = kSize / 48 / 21.325e9 + 3.4e-6;
  EXPECT_NEAR(machine.time_s(program, kSize), 14 * step_s, 0.01 * 14 * step_s);
}

TEST(NcclRings, RightOnOtherKindsOfMachines) {
  for (const char* spec : {"cedar", "mist", "summit", "mi300x", "mi250", "dgx2", "dgx-a100",
                           "p2.16xlarge", "dgx1-v100:nodes=2", "dgx-a100:nodes=2", "kesch:nodes=2",
                           "ring:n=5", "line:n=2", "torus"}) {
    Machine machine(spec, {}, LinkScope::all);
    for (const Collective collective : ring_collectives()) {
      for (const int root : {0, machine.ranks() - 1}) {
        if (root > 0 && !info(collective).rooted) continue;
        SCOPED_TRACE(fmt::format("{} {} root {}", spec, to_string(collective), root));
        ASSERT_EQ(machine.refusal("nccl_rings", collective), "");
        expect_right_on(machine, machine.make("nccl_rings", collective, root), false);
      }
    }
  }
}

TEST(NcclRings, RefusesWithTheReason) {
  EXPECT_EQ(unsupported(parse_algorithm("nccl_rings"), programs::request(Collective::allreduce, 4)),
            "needs a machine");
  EXPECT_EQ(Machine("dgx1-p100", {0, 5}).refusal("nccl_rings", Collective::allreduce),
            "no ring through all ranks: no route joins gpu0 and gpu5");
  EXPECT_EQ(
      Machine("dgx1-p100", {0, 1, 2, 3, 4}).refusal("nccl_rings:relays=0", Collective::allreduce),
      "no ring through all ranks: no route joins gpu1 and gpu4");
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What a benchmark prints of NCCL's chain broadcast, in place, on 8 GPUs behind NVSwitches:
//
//     by itself     T = call + (m + n - 2) x + (n - 1) w
//     back to back  T = call + m x,    x = o - w + max(c / R, c C / B)
//
// for n ranks, C channels of one block each and m chunks of c bytes per channel; constants as in
// nccl_ring_test.cpp. Of an op, w passes on wires, while its block goes on. The last GPU's own
// receive, one o, is counted in neither.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/builder.h"
#include "ir/verify.h"
#include "run/launch.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr int kRanks = 8;

Program chain_program(int channels, int chunks) {
  Builder builder("nccl chain",
                  {Collective::broadcast, kRanks, 0, std::int64_t{channels} * chunks, true});
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int channel = 0; channel < channels; ++channel) {
      const std::int64_t unit = std::int64_t{channel} * chunks + chunk;
      for (int rank = 1; rank < kRanks; ++rank) {
        const Slice source =
            rank == 1 ? builder.input(0, unit, 1) : builder.output(rank - 1, unit, 1);
        builder.copy(builder.output(rank, unit, 1), source,
                     {.lane = channel, .at = rank - 1, .via = {}});
      }
    }
  }
  return builder.finish();
}

TEST(ChainBroadcast, OverlapsFromCallToCall) {
  const Topology machine = load_topology("dgx-a100");
  Profile profile = machine.profile("nccl:ll");
  profile.splits_lanes = false;  // channels are written out
  const Router router(machine, profile);
  const Target target{&router, place_ranks(router, {})};
  Simulator simulator;
  constexpr double kCallUs = 5.5 + 6.6;
  constexpr double kOUs = 0.6;
  constexpr double kWireUs = 0.5;  // two links of 0.25
  for (const int chunks : {1, 4, 32}) {
    constexpr int kChannels = 16;
    constexpr double kChunkBytes = 32 * 1024;
    const Program program = chain_program(kChannels, chunks);
    ASSERT_TRUE(verify(program).ok());
    RunOptions options;
    options.size_bytes = static_cast<std::int64_t>(kChunkBytes) * kChannels * chunks;
    const RunReport report = simulator.run(program, target, options);
    // 32 KiB at 7.2 GB/s of a block: 4.55 us; 16 of them at 112 GB/s of a GPU: 4.68 us.
    const double x_us =
        kOUs - kWireUs + std::max(kChunkBytes / 7.2, kChunkBytes * kChannels / 112) * 1e-3;
    EXPECT_NEAR(
        report.time_s * 1e6 / (kCallUs + (chunks + kRanks - 2) * x_us + (kRanks - 1) * kWireUs), 1,
        0.03)
        << chunks;
    EXPECT_NEAR(report.simulated->back_to_back_s * 1e6 / (kCallUs + chunks * x_us), 1, 0.03)
        << chunks;
    EXPECT_EQ(report.simulated->blocks, kChannels);
  }
}

}  // namespace
}  // namespace espalier

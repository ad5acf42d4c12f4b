// SPDX-License-Identifier: Apache-2.0
// The block program of NCCL's ring allreduce on 8 GPUs behind NVSwitches against its closed form:
//
//     T = call + sum over loops of 2 (n - 1) x(c)
//     LL, LL128:  x = o + max(c / R, c C / B)
//     Simple:     x = max(3.4 us, k o + max(c / R, c C / B)), k = 1 if c <= 32 KiB, else 2;
//                 from the 15th op on, when blocks have drifted apart, max(k o + c / R, c C / B)
//
// with n ranks, C channels of one block each, chunks of c bytes, o the cost of an op (of a slice of
// it), R what a block moves and B what a GPU sends: the constants of profile nccl, which says where
// they come from. All blocks run in step, so that each hop of each block waits for the one before.
// What stays in a GPU (BlockUse::ops_per_local) is left out: tests/nccl/program_test.cpp has it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "ir/builder.h"
#include "ir/verify.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr int kRanks = 8;

/// `loops` times around with one chunk per rank and channel; the last one may be shorter.
Program ring_program(int channels, int loops) {
  Builder builder("nccl ring", {Collective::allreduce, kRanks, 0,
                                std::int64_t{kRanks} * channels * loops, false});
  for (int loop = 0; loop < loops; ++loop) {
    for (int step = 1; step < 2 * kRanks - 1; ++step) {
      for (int channel = 0; channel < channels; ++channel) {
        for (int rank = 0; rank < kRanks; ++rank) {
          const int before = (rank + kRanks - 1) % kRanks;
          const int chunk = (rank + 2 * kRanks - step) % kRanks;
          const std::int64_t unit = (std::int64_t{loop} * channels + channel) * kRanks + chunk;
          const OpOptions block{.lane = channel, .at = rank, .via = {}};
          if (step < kRanks) {
            const Slice partial =
                step == 1 ? builder.input(before, unit, 1) : builder.output(before, unit, 1);
            builder.combine(builder.output(rank, unit, 1), {partial, builder.input(rank, unit, 1)},
                            block);
          } else {
            builder.copy(builder.output(rank, unit, 1), builder.output(before, unit, 1), block);
          }
        }
      }
    }
  }
  return builder.finish();
}

struct Constants {
  const char* protocol;
  double call_us;
  double o_us;
  double min_op_us;
  double block_gbps;  ///< R
  double gpu_gbps;    ///< B
  double chunk_bytes;
  bool is_sliced;
};

/// 300 GB/s of NVLink, of which 231 (0.77) pass: all of it as data under Simple, 15/16 under LL128;
/// LL is held up by the blocks at 112 before its links are full.
constexpr Constants kProtocols[] = {
    {"ll", 5.5 + 6.6, 0.6, 0, 7.2, 112, 32 * 1024, false},
    {"ll128", 5.5 + 14, 1.9, 0, 7.6, 231 * 15.0 / 16, 562.5 * 1024, false},
    {"simple", 5.5 + 8.4, 3.2, 3.4, 20, 231, 2048 * 1024, true},
};

class NcclRing : public testing::TestWithParam<Constants> {};

TEST_P(NcclRing, TakesWhatItsClosedFormSays) {
  const Constants& known = GetParam();
  const Topology machine = load_topology("dgx-a100");
  Profile profile = machine.profile(fmt::format("nccl:{}", known.protocol));
  profile.splits_lanes = false;  // channels are written out
  const Router router(machine, profile);
  const Target target{&router, place_ranks(router, {})};
  Simulator simulator;
  int compared = 0;
  for (double bytes = 8; bytes <= 4e9 * 1.1; bytes *= 4) {
    // A channel for every 32 KiB, as NCCL has it under LL.
    const int channels = static_cast<int>(std::clamp(bytes / (32 * 1024), 1.0, 24.0));
    const double loops = std::ceil(bytes / (channels * kRanks * known.chunk_bytes));
    if (loops > 16) continue;  // the same again and again
    const double c = bytes / (channels * kRanks * loops);
    const double bulk_us = std::max(c / known.block_gbps, c * channels / known.gpu_gbps) * 1e-3;
    const double slices = known.is_sliced && c > 32 * 1024 ? 2 : 1;
    const double x_us = std::max(known.min_op_us, slices * known.o_us + bulk_us);
    const double alone_us = slices * known.o_us + c / known.block_gbps * 1e-3;
    const double adrift_us =
        std::max({known.min_op_us, alone_us, c * channels / known.gpu_gbps * 1e-3});
    const double later_us = known.is_sliced ? adrift_us : x_us;
    const double expected_us = known.call_us + 2 * (kRanks - 1) * (x_us + (loops - 1) * later_us);

    const Program program = ring_program(channels, static_cast<int>(loops));
    ASSERT_TRUE(verify(program).ok());
    RunOptions options;
    options.size_bytes = static_cast<std::int64_t>(bytes);
    const double time_us = simulator.run(program, target, options).time_s * 1e6;
    EXPECT_NEAR(time_us / expected_us, 1, 0.05)
        << fmt::format("{} bytes, {} channels, {} loops: {} us instead of {}", bytes, channels,
                       loops, time_us, expected_us);
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

INSTANTIATE_TEST_SUITE_P(Protocols, NcclRing, testing::ValuesIn(kProtocols),
                         [](const auto& one) { return std::string(one.param.protocol); });

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The NVLS allreduce against its closed form. n heads with C blocks each pass on their shares slice
// by slice, n C slices in a round:
//
//     T = call + rounds o + w (1 + 1/n) S / B
//
// since each port carries the whole message, either way, and the share of its own GPU once more:
// B is the port's rate for kernels, w what ops in switches keep it busy for. With the constants of
// profile nccl (8 H100: n = 8, C = 16, call = 5.5 + 8.4 + 77.3 us and 0.8 on wires, o = 3.5 us, w =
// 1.139, B = 0.82 x 450 GB/s) this is also what was measured: NVIDIA/nccl-tests issue 290.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "planner/bounds.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr double kMiB = 1024.0 * 1024;

class NvlsOn {
 public:
  NvlsOn(const std::string& machine, const std::string& profile, const std::vector<int>& gpus = {},
         LinkScope links = LinkScope::all)
      : topology_(load_topology(machine)),
        router_(topology_, topology_.profile(profile), links),
        target_{&router_, place_ranks(router_, gpus)} {}

  /// Nothing where the GPUs are on switches that no op joins.
  std::optional<Program> possible(Collective collective) const {
    const AlgorithmChoice choice = parse_algorithm("nvls");
    const BuildRequest request = request_for(collective, 0, false, router_, target_.placement);
    if (unsupported(choice, request)) return std::nullopt;
    return build(choice, request);
  }
  double ops() const {
    const auto request = request_for(Collective::allreduce, 0, false, router_, target_.placement);
    return espalier::ops(parse_algorithm("nvls"), request).value();
  }
  double time_us(const Program& program, double bytes) {
    RunOptions options;
    options.size_bytes = static_cast<std::int64_t>(bytes);
    return simulator_.run(program, target_, options).time_s * 1e6;
  }
  double time_us(Collective collective, double bytes) {
    return time_us(possible(collective).value(), bytes);
  }
  double bound_gbps(Collective collective) const {
    return bandwidth_bound(collective, 0, router_, target_.placement).algbw_gbps;
  }

 private:
  Topology topology_;
  Router router_;
  Target target_;
  Simulator simulator_;
};

TEST(Nvls, TakesOnHopperWhatItsClosedFormSaysAndWhatWasMeasured) {
  struct Point {
    double mib;
    double slice_kib;
    double measured_us;
  };
  constexpr Point kPoints[] = {{128, 64, 613.3},    {256, 64, 1139.2},   {512, 64, 2175.8},
                               {1024, 128, 4038.8}, {2048, 128, 8020.3}, {4096, 128, 15870}};
  NvlsOn hopper("dgx-h100", "nccl");
  for (const auto& [mib, slice_kib, measured_us] : kPoints) {
    const double bytes = mib * kMiB;
    const double rounds = bytes / (8 * 16 * slice_kib * 1024);
    const double bulk_us = 1.139 * (1 + 1.0 / 8) * bytes / (0.82 * 450e3);
    const double expected_us = 5.5 + 25 + 62.4 + 0.8 + rounds * 3.5 + bulk_us;
    const double time_us = hopper.time_us(Collective::allreduce, bytes);
    EXPECT_NEAR(time_us / expected_us, 1, 0.001) << mib << " MiB";
    EXPECT_NEAR(time_us / measured_us, 1, 0.01) << mib << " MiB";
  }
}

/// 8 B200, public notes. Below 64 KiB slices are moved at a lower rate.
TEST(Nvls, TakesOnBlackwellWhatWasMeasured) {
  constexpr std::pair<double, double> kPoints[] = {{8, 80.3},     {16, 110.5},   {32, 172.6},
                                                   {64, 280},     {128, 396.9},  {256, 714.7},
                                                   {512, 1335.6}, {1024, 2576.7}};
  NvlsOn blackwell("gb200-nvl72", "nccl", {0, 1, 2, 3, 4, 5, 6, 7});
  for (const auto& [mib, measured_us] : kPoints) {
    const double time_us = blackwell.time_us(Collective::allreduce, mib * kMiB);
    EXPECT_NEAR(time_us / measured_us, 1, 0.08) << mib << " MiB";
  }
}

/// Under `ideal`, of a message S over ports of B = 450 GB/s and with the 0.2 us of a link: data
/// goes up and down to be read, up and down to be stored.
TEST(Nvls, CarriesWhatEachCollectiveNeeds) {
  NvlsOn ideal("dgx-h100", "ideal");
  const double bytes = 900e6;
  const auto carried_us = [&](double messages) { return messages * bytes / 450e3; };
  const double way_us = 2 * 0.2;
  EXPECT_NEAR(ideal.time_us(Collective::allreduce, bytes), carried_us(9.0 / 8) + 2 * way_us, 1e-3);
  // A head's share comes down to it, and goes up from everybody.
  EXPECT_NEAR(ideal.time_us(Collective::reducescatter, bytes), carried_us(1) + way_us, 1e-3);
  EXPECT_NEAR(ideal.time_us(Collective::allgather, bytes), carried_us(1) + way_us, 1e-3);
  EXPECT_NEAR(ideal.time_us(Collective::broadcast, bytes), carried_us(1) + way_us, 1e-3);
  EXPECT_NEAR(ideal.time_us(Collective::reduce, bytes), carried_us(1) + way_us, 1e-3);
}

/// The message must leave every GPU, combined with others' or not: M / B. Without the switches'
/// help it would have to twice, but for an eighth: 2 (n-1) / n M / B.
TEST(Nvls, IsNotBoundByRings) {
  const auto bound_gbps = [](const char* machine, const char* profile, Collective collective) {
    return NvlsOn(machine, profile, {}, LinkScope::fabric).bound_gbps(collective);
  };
  EXPECT_DOUBLE_EQ(bound_gbps("dgx-h100", "ideal", Collective::allreduce), 450);
  EXPECT_DOUBLE_EQ(bound_gbps("dgx-h100", "ideal", Collective::allgather), 450.0 * 8 / 7);
  EXPECT_DOUBLE_EQ(bound_gbps("dgx-h100:nvswitch.combines=0", "ideal", Collective::allreduce),
                   450.0 * 8 / 14);
  EXPECT_DOUBLE_EQ(bound_gbps("dgx-h100", "copy_engine", Collective::allreduce), 374.0 * 8 / 14);
  EXPECT_DOUBLE_EQ(bound_gbps("dgx-h100", "kernel:ll", Collective::allreduce),
                   0.82 * 450 / 2 * 8 / 14);
}

/// Within machines their NVSwitches add up, whatever the network could do; across them the heads'
/// results go around a ring, or are added up in a switch of the network.
TEST(Nvls, HeadsMeetInASwitchOfTheNetworkWhereThereIsOne) {
  NvlsOn without("dgx-h100:nodes=2", "kernel");
  NvlsOn with("dgx-h100:nodes=2,ibswitch.combines=1", "kernel");
  const Program ring = without.possible(Collective::allreduce).value();
  const Program sharp = with.possible(Collective::allreduce).value();
  EXPECT_FALSE(std::ranges::all_of(ring.ops, &Op::in_switch));
  EXPECT_TRUE(std::ranges::all_of(sharp.ops, &Op::in_switch));
  for (const Program* program : {&ring, &sharp}) EXPECT_TRUE(verify(*program).ok());
  // Each NIC carries a share of the message once instead of twice, less half of it in a ring of
  // two.
  const double bytes = 1024 * kMiB;
  EXPECT_NEAR(with.time_us(sharp, bytes) / without.time_us(ring, bytes), 1, 0.3);
}

TEST(Nvls, SaysHowManyOpsItHas) {
  for (const char* machine : {"dgx-h100", "dgx-h100:nodes=3", "dgx-h100:nodes=5",
                              "dgx-h100:nodes=5,ibswitch.combines=1"}) {
    NvlsOn nvls(machine, "kernel");
    EXPECT_EQ(nvls.ops(), nvls.possible(Collective::allreduce).value().ops.size()) << machine;
  }
}

/// Pieces on their way to 72 GPUs at once are found without looking through all of them.
TEST(Nvls, ManyDestinationsAreSimulatedInTime) {
  NvlsOn rack("gb200-nvl72", "kernel");
  const Program whole = rack.possible(Collective::allreduce).value();
  const double whole_us = rack.time_us(whole, 256 * kMiB);
  EXPECT_NEAR(rack.time_us(chunk(whole, {4, 1}), 256 * kMiB) / whole_us, 1, 0.1);
}

TEST(Nvls, IsWithinItsBoundOnAnyGpus) {
  for (const char* profile : {"ideal", "kernel", "nccl"}) {
    for (const char* machine : {"dgx-h100", "dgx-h100:nodes=2", "dgx-h100:nodes=3", "gb200-nvl72",
                                "dgx-a100:nvswitch.combines=1"}) {
      for (const std::vector<int>& gpus :
           {std::vector{0, 1}, {5, 2, 7}, {0, 1, 2, 3, 8, 9, 10, 11}, {3, 15, 20}}) {
        SCOPED_TRACE(fmt::format("{} {} GPUs on {}", profile, gpus.size(), machine));
        const Topology topology = load_topology(machine);
        const auto there = static_cast<int>(topology.gpus().size());
        if (std::ranges::any_of(gpus, [&](int gpu) { return gpu >= there; })) continue;
        NvlsOn some(machine, profile, gpus);
        for (const Collective collective :
             {Collective::allreduce, Collective::reducescatter, Collective::allgather,
              Collective::broadcast, Collective::reduce}) {
          const auto program = some.possible(collective);
          if (!program) continue;
          EXPECT_TRUE(verify(*program).ok());
          const double bytes = 64 * kMiB;
          const double least_us = bytes / some.bound_gbps(collective) * 1e-3;
          EXPECT_GE(some.time_us(*program, bytes), least_us * (1 - 1e-9)) << to_string(collective);
        }
      }
    }
  }
}

}  // namespace
}  // namespace espalier

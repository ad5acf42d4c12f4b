// SPDX-License-Identifier: Apache-2.0
#include "run/launch.h"

#include <gtest/gtest.h>

#include "topologies/load.h"

namespace espalier {
namespace {

const LaunchCosts& nccl() { return built_in_profiles().profiles.at("nccl").launch; }

TEST(Launched, OneProcessPassesSmoothlyFromItsHostToItsGpus) {
  // 8 A100, 24 channels, NCCL 2.10: T_host = 8 (4.0 + 24 x 0.22) = 74.24 us, and of 30 us and
  // these the fourth root of 30^4 + 74.24^4.
  LaunchedCalls calls{30e-6, 8, 24, 201000};
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 74.7300e-6, 1e-10);
  // Of 4 GPUs half of the host's time, 37.12 us.
  calls.gpus_per_process = 4;
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 40.5682e-6, 1e-10);
  // 2.5 has launched groups: 8 (4.9 + 24 x 0.12) = 62.24 us.
  calls.gpus_per_process = 8;
  calls.library_version = 200500;
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 63.0634e-6, 1e-10);
  calls.gpu_s = 0;
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 62.24e-6, 1e-15);
}

TEST(Launched, HowSharplyIsTheProfiles) {
  // 30 us of the GPUs and 8 x 5 = 40 of the host: the longer one, the root of the squares, the sum.
  LaunchCosts costs;
  costs.single = {{.call_s = 5e-6}};
  const LaunchedCalls calls{30e-6, 8, 24, 0};
  EXPECT_NEAR(launched_s(costs, LaunchMode::single, calls), 40e-6, 1e-15);
  costs.sharpness = 2;
  EXPECT_NEAR(launched_s(costs, LaunchMode::single, calls), 50e-6, 1e-15);
  costs.sharpness = 1;
  EXPECT_NEAR(launched_s(costs, LaunchMode::single, calls), 70e-6, 1e-15);
}

TEST(Launched, OneProcessWaitsForTheFirstOfAllCalls) {
  // 90 us of the first call and 19 x 50 of the others are 52 us each; without a host's time these
  // are printed. Processes per GPU each end their own.
  LaunchedCalls calls{50e-6, 0, 24, 0};
  calls.isolated_s = 90e-6;
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 52e-6, 1e-15);
  EXPECT_EQ(launched_s(nccl(), LaunchMode::per_gpu, calls), 50e-6);
  // Of two calls, as with nccl-tests -n 2, half: (90 + 50) / 2.
  calls.timed = 2;
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::single, calls), 70e-6, 1e-15);
  calls.isolated_s = 0;
  EXPECT_EQ(launched_s(nccl(), LaunchMode::single, calls), 50e-6);
}

TEST(Launched, AProcessPerGpuIsAsSlowAsTheSlowerOfHostAndGpu) {
  // 4 + 0.06 x 24 = 5.44 us.
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::per_gpu, {3e-6, 8, 24, 0}), 5.44e-6, 1e-15);
  EXPECT_EQ(launched_s(nccl(), LaunchMode::per_gpu, {30e-6, 8, 24, 0}), 30e-6);
}

TEST(Launched, GraphsSaveWhatALaunchCostsGpus) {
  // 1.7 us of 30; but a link that is busy for 29 us in every call stays so.
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::graph, {30e-6, 8, 24, 0}), 28.3e-6, 1e-12);
  EXPECT_NEAR(launched_s(nccl(), LaunchMode::graph, {30e-6, 8, 24, 0, 29e-6}), 29e-6, 1e-12);
}

TEST(Launched, RuntimesWithoutCostsAddNothing) {
  for (const LaunchMode mode : all_launch_modes()) {
    EXPECT_EQ(launched_s({}, mode, {3e-6, 8, 24, 0}), 3e-6);
  }
}

TEST(Launched, CountsRanksAndRelaysOfTheFullestHost) {
  const Topology cluster = load_topology("dgx-a100:nodes=2");
  Placement placement;
  const std::vector<NodeId> gpus = cluster.gpus();
  placement.ranks = {gpus[0], gpus[1], gpus[8], gpus[9]};
  placement.relays = {gpus[15]};
  EXPECT_EQ(most_gpus_of_a_host(cluster, placement), 3);
}

}  // namespace
}  // namespace espalier

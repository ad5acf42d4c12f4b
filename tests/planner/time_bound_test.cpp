// SPDX-License-Identifier: Apache-2.0
#include "planner/time_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr double kMicro = 1e-6;

TimeBound bound_of(const std::string& machine, Collective collective,
                   const std::string& profile = "ideal", LinkScope links = LinkScope::all) {
  const Topology topology = load_topology(machine);
  const Router router(topology, topology.profile(profile), links);
  return time_bound(collective, 0, router, place_ranks(router, {}));
}

TEST(TimeBound, NeighboursPayOneStartUpAndOneWire) {
  const TimeBound bound = bound_of("full:n=4,latency_us=2,startup_us=3", Collective::allreduce);
  EXPECT_DOUBLE_EQ(bound.way_s, 5 * kMicro);
  EXPECT_DOUBLE_EQ(bound.ends_s, 5 * kMicro);
  EXPECT_EQ(bound.call_s, 0);
  EXPECT_THAT(bound.certificate,
              testing::HasSubstr("what gpu0 has is at gpu1 after 1 op at the earliest (gpu0 > "
                                 "gpu1): 3 us of start-up and 2 us on wires"));
}

TEST(TimeBound, AnOpCrossesUpToTwoRoutes) {
  // Four GPUs in a line: one op fetches over the first link and puts over the second, another takes
  // the third. Two start-ups of 4 us and three wires of 1 us.
  const TimeBound line = bound_of("line:n=4,latency_us=1,startup_us=4", Collective::broadcast);
  EXPECT_DOUBLE_EQ(line.way_s, 11 * kMicro);
  EXPECT_THAT(line.certificate, testing::HasSubstr("2 ops"));
  // From leaf to leaf, past the middle: one op.
  const std::string star = "star:n=5,latency_us=1,startup_us=4";
  EXPECT_DOUBLE_EQ(bound_of(star, Collective::allgather).way_s, 6 * kMicro);
  EXPECT_DOUBLE_EQ(bound_of(star, Collective::broadcast).way_s, 5 * kMicro);  // the middle is root
  EXPECT_DOUBLE_EQ(bound_of(star, Collective::reduce).way_s, 5 * kMicro);
}

TEST(TimeBound, ASlowWireIsGoneAround) {
  // Seven quick links lead from GPU 0 to GPU 1.
  const std::string ring = "ring:n=8,latency_us=1,gpu0-gpu1.latency_us=100";
  EXPECT_DOUBLE_EQ(bound_of(ring, Collective::allreduce).way_s, 7 * kMicro);
  EXPECT_DOUBLE_EQ(bound_of("ring:n=8,latency_us=1", Collective::allreduce).way_s, 4 * kMicro);
}

TEST(TimeBound, AnOpThatNamesGpusPassesThem) {
  const Topology line = load_topology("line:n=4,latency_us=1,startup_us=4");
  const Router router(line, line.profile("ideal"));
  const TimeBound bound =
      time_bound(Collective::broadcast, 0, router, place_ranks(router, {}), {.through_gpus = true});
  EXPECT_DOUBLE_EQ(bound.way_s, 7 * kMicro);  // one start-up
  EXPECT_DOUBLE_EQ(
      bound_of("line:n=4,latency_us=1,startup_us=4,forward=1", Collective::broadcast).way_s,
      7 * kMicro);
}

TEST(TimeBound, SwitchesAreNoPlaces) {
  EXPECT_DOUBLE_EQ(bound_of("switch:n=6,latency_us=1,startup_us=4", Collective::alltoall).way_s,
                   6 * kMicro);
}

TEST(TimeBound, CallsComeFirst) {
  // 8.5 us for the launch of a kernel on a K80.
  const TimeBound bound = bound_of("p2.8xlarge", Collective::allreduce, "kernel");
  EXPECT_DOUBLE_EQ(bound.call_s, 8.5 * kMicro);
  EXPECT_GT(bound.least_s(0, {}), 8.5 * kMicro);
}

TEST(TimeBound, BytesComeBetweenTheEnds) {
  const TimeBound bound = bound_of("line:n=4,latency_us=1,startup_us=4", Collective::broadcast);
  Bound links;
  links.algbw_gbps = 25;
  EXPECT_DOUBLE_EQ(bound.least_s(4, links), 11 * kMicro);
  EXPECT_DOUBLE_EQ(bound.least_s(25e6, links), 5 * kMicro + 1e-3);
  links.algbw_gbps = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(bound.least_s(25e6, links), 11 * kMicro);
}

TEST(TimeBound, GetsThatWaitMayKeepLinksBusyUntilTheEnd) {
  // Under `copy_engine` gets have their latency before their bytes, so that a put and then a get
  // leave nothing idle but the first start-up.
  EXPECT_DOUBLE_EQ(
      bound_of("full:n=2,latency_us=100,startup_us=4", Collective::broadcast, "copy_engine").ends_s,
      4 * kMicro);
  EXPECT_DOUBLE_EQ(bound_of("full:n=2,latency_us=100,startup_us=4", Collective::broadcast).ends_s,
                   104 * kMicro);
}

TEST(TimeBound, LargeMachinesHaveOneToo) {
  // 1024 ranks: at least an op from the first to the farthest of a ring.
  const TimeBound ring = bound_of("ring:n=1024,latency_us=1,startup_us=4", Collective::allreduce);
  EXPECT_NEAR(ring.way_s, (512 + 4) * kMicro, 1e-12);
  EXPECT_DOUBLE_EQ(ring.ends_s, 5 * kMicro);
  // Hosts without ranks do not count: five GPUs of a large cluster are as many places as of one.
  const Topology cluster = load_topology("dgx1-v100:nodes=64");
  const Router router(cluster, cluster.profile("kernel"));
  const TimeBound five =
      time_bound(Collective::allreduce, 0, router, place_ranks(router, {0, 1, 2, 3, 4}));
  EXPECT_NEAR(five.way_s, 3.4 * kMicro, 1e-12);  // a hop, latency included
}

TEST(TimeBound, OneRankNeedsNothing) {
  const TimeBound bound = bound_of("ring:n=1,latency_us=1", Collective::allreduce);
  EXPECT_EQ(bound.way_s, 0);
  EXPECT_EQ(bound.ends_s, 0);
  EXPECT_EQ(bound.certificate, "");
}

}  // namespace
}  // namespace espalier

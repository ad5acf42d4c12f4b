// SPDX-License-Identifier: Apache-2.0
#include "planner/link_loads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// Units and share used of every link direction by name.
using Loads = std::map<std::string, std::pair<std::int64_t, double>>;

Loads loads_of(const Topology& topology, const Forest& forest, const std::vector<int>& gpus = {},
               LinkScope scope = LinkScope::all) {
  const Router router(topology, topology.profile("ideal"), scope);
  const Placement placement = place_ranks(router, gpus);
  EXPECT_THAT(check_forest(forest, router, placement), testing::IsEmpty());
  Loads loads;
  for (const LinkLoad& load : link_loads(forest, router, placement)) {
    loads[link_name(topology, load.hop.link, load.hop.forward)] = {load.units,
                                                                   share_used(load, forest)};
  }
  return loads;
}

TEST(LinkLoads, DirectionsFollowTheCollective) {
  // A line 0 - 1 - 2 rooted at its end, the whole message at 5 of 10 GB/s.
  const Topology line = load_topology("line:n=3,gbps=10");
  const std::vector<PlannedTree> trees = {{0, 1, {{0, 1, {}}, {1, 2, {}}}}};
  const auto loads = [&](Collective collective) {
    return loads_of(line, {collective, 1, trees, 5, "5"});
  };
  const std::pair<std::int64_t, double> half(1, 0.5), idle(0, 0);
  const Loads outward = {{"gpu0->gpu1 link", half},
                         {"gpu1->gpu0 link", idle},
                         {"gpu1->gpu2 link", half},
                         {"gpu2->gpu1 link", idle}};
  EXPECT_EQ(loads(Collective::broadcast), outward);
  const Loads inward = {{"gpu0->gpu1 link", idle},
                        {"gpu1->gpu0 link", half},
                        {"gpu1->gpu2 link", idle},
                        {"gpu2->gpu1 link", half}};
  EXPECT_EQ(loads(Collective::reduce), inward);
  const Loads both = {{"gpu0->gpu1 link", half},
                      {"gpu1->gpu0 link", half},
                      {"gpu1->gpu2 link", half},
                      {"gpu2->gpu1 link", half}};
  EXPECT_EQ(loads(Collective::allreduce), both);
}

TEST(LinkLoads, SharedDirectionsAddUp) {
  // Allreduce crosses the link once each way: 2 units of 1, at 5 of 10 GB/s all of it.
  const Forest forest = {Collective::allreduce, 1, {{0, 1, {{0, 1, {}}}}}, 5, "5"};
  const Loads expected = {{"gpu0<->gpu1 link", {2, 1.0}}};
  EXPECT_EQ(loads_of(load_topology("line:n=2,gbps=10,half=1"), forest), expected);
}

TEST(LinkLoads, AMediumHearsATransferOnce) {
  const Topology bus = parse_topology(R"(
schema: espalier.topology/1
name: bus
sources: ["made up"]
nodes:
  - {name: "gpu[0-2]", kind: gpu}
  - {name: hub, kind: nvswitch}
links:
  - {a: "gpu[0-2]", b: hub, kind: nvlink2, gbps: 12, duplex: shared, medium: wire}
)",
                                      "bus.yaml");
  const NodeId hub = bus.find("hub").value();
  // Three units: two trees from gpu0, of one unit and of two, with two edges each: 6 units on the
  // medium. At 6 GB/s of message that is 12 GB/s, all of it.
  const Forest forest = {
      Collective::broadcast,
      3,
      {{0, 1, {{0, 1, {hub}}, {0, 2, {hub}}}}, {0, 2, {{0, 2, {hub}}, {2, 1, {hub}}}}},
      6,
      "6"};
  const Loads expected = {{"wire nvlink2", {6, 1.0}}};
  EXPECT_EQ(loads_of(bus, forest), expected);
}

TEST(LinkLoads, LeaveOutWhatTheRanksCanNotUse) {
  // Of a line of four GPUs the first two: the other links end at GPUs that take no part.
  const Forest forest = {Collective::broadcast, 1, {{0, 1, {{0, 1, {}}}}}, 10, "10"};
  const Loads expected = {{"gpu0->gpu1 link", {1, 1.0}}, {"gpu1->gpu0 link", {0, 0.0}}};
  EXPECT_EQ(loads_of(load_topology("line:n=4,gbps=10"), forest, {0, 1}), expected);
  // Links of the host are there, and idle, unless only the fabric is asked for.
  const Topology hosted = load_topology("line:n=2,gbps=10,host_gbps=3");
  EXPECT_EQ(loads_of(hosted, forest, {}, LinkScope::all).size(), 6U);
  EXPECT_EQ(loads_of(hosted, forest, {}, LinkScope::fabric), expected);
}

TEST(LinkLoads, NothingIsUsedAtAnUnlimitedRate) {
  EXPECT_EQ(share_used({{0, true}, 1, 10}, nothing_to_send(Collective::reduce)), 0);
}

}  // namespace
}  // namespace espalier

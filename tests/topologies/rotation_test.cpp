// SPDX-License-Identifier: Apache-2.0
// Machines that look the same from one group of ranks to the next.
#include "topologies/rotation.h"

#include <gtest/gtest.h>

#include "topologies/load.h"

namespace espalier {
namespace {

struct Turned {
  explicit Turned(const std::string& name, int groups)
      : topology(load_topology(name)),
        router(topology, topology.profile("kernel")),
        placement(place_ranks(router, {})),
        rotation(Rotation::find(topology, placement, groups)) {}

  NodeId node(const std::string& name) const { return *topology.find(name); }
  Hop hop(const std::string& from, const std::string& to) const {
    return *router.hop(node(from), node(to));
  }

  Topology topology;
  Router router;
  Placement placement;
  std::optional<Rotation> rotation;
};

TEST(Rotation, MovesEveryMachineToTheNext) {
  const Turned turned("dgx-a100:nodes=3", 3);
  ASSERT_TRUE(turned.rotation);
  const Rotation& rotation = *turned.rotation;
  for (const std::string name : {"gpu5", "nvswitch", "nic2", "cpu0"}) {
    EXPECT_EQ(rotation.next(turned.node("n0." + name)), turned.node("n1." + name));
    EXPECT_EQ(rotation.next(turned.node("n2." + name)), turned.node("n0." + name));
    EXPECT_EQ(rotation.first(turned.node("n2." + name)), turned.node("n0." + name));
    EXPECT_EQ(rotation.per_group(turned.node("n1." + name)), 1);
  }
  // The switch of the network stays where it is; each machine has a third of it.
  EXPECT_EQ(rotation.next(turned.node("ibswitch")), turned.node("ibswitch"));
  EXPECT_DOUBLE_EQ(rotation.per_group(turned.node("ibswitch")), 1.0 / 3);
  EXPECT_EQ(rotation.next(turned.hop("n1.gpu0", "n1.nvswitch")),
            turned.hop("n2.gpu0", "n2.nvswitch"));
  EXPECT_EQ(rotation.first(turned.hop("n1.nvswitch", "n1.gpu0")),
            turned.hop("n0.nvswitch", "n0.gpu0"));
  EXPECT_TRUE(rotation.keeps_route(turned.router, turned.node("n0.gpu1"), turned.node("n1.gpu6")));
}

TEST(Rotation, MovesSingleGpus) {
  const Turned ring("ring:n=6", 6);
  ASSERT_TRUE(ring.rotation);
  EXPECT_EQ(ring.rotation->next(ring.node("gpu5")), ring.node("gpu0"));
  EXPECT_EQ(ring.rotation->next(ring.hop("gpu4", "gpu5")), ring.hop("gpu5", "gpu0"));
  EXPECT_EQ(ring.rotation->next(ring.hop("gpu5", "gpu4")), ring.hop("gpu0", "gpu5"));
  EXPECT_TRUE(Turned("switch:n=6", 6).rotation);
  EXPECT_TRUE(Turned("full:n=6", 3).rotation);
}

TEST(Rotation, NeedsEqualParts) {
  EXPECT_FALSE(Turned("dgx-a100:nodes=3,n1.gpu2.speed=x0.9", 3).rotation);
  EXPECT_FALSE(Turned("dgx-a100:nodes=3,n1.gpu2-n1.nvswitch.gbps=x0.9", 3).rotation);
  EXPECT_FALSE(Turned("ring:n=6,gpu0-gpu1.gbps=x2", 6).rotation);
  EXPECT_TRUE(Turned("ring:n=6,gpu0-gpu1.gbps=x2,gpu3-gpu4.gbps=x2", 2).rotation);
  // Groups that are no machines: a GPU of one would move into another.
  EXPECT_FALSE(Turned("dgx-a100:nodes=3", 6).rotation);
  // A hybrid cube mesh looks different from every GPU, as NVLinks are numbered here.
  EXPECT_FALSE(Turned("dgx1-v100", 8).rotation);
}

TEST(Rotation, LeavesSharedMediaAlone) {
  Topology topology = load_topology("ring:n=4");
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  ASSERT_TRUE(Rotation::find(topology, placement, 4));
  for (Link& link : topology.links) {
    link.duplex = Duplex::shared;
    link.medium = "bus";
  }
  EXPECT_FALSE(Rotation::find(topology, placement, 4));
}

}  // namespace
}  // namespace espalier

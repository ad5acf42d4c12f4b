// SPDX-License-Identifier: Apache-2.0
// Machines that look the same from one group of ranks to the next.
#include "topologies/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "topologies/load.h"
#include "topologies/turning_order.h"

namespace espalier {
namespace {

/// That many groups of ranks that follow each other, each moved to the next one.
std::vector<int> next_group(const Placement& placement, int groups) {
  const int ranks = static_cast<int>(placement.ranks.size());
  std::vector<int> next;
  for (int rank = 0; rank < ranks; ++rank) next.push_back((rank + ranks / groups) % ranks);
  return next;
}

struct Turned {
  explicit Turned(const std::string& name, int groups)
      : topology(load_topology(name)),
        router(topology, topology.profile("kernel")),
        placement(place_ranks(router, {})),
        rotation(Rotation::find(topology, placement, next_group(placement, groups), groups)) {}

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

/// Where every GPU of a host is moved: to the one that follows it in the order.
std::vector<int> next_in(const std::vector<int>& order, int hosts) {
  const auto n = order.size();
  std::vector<int> next(n * static_cast<std::size_t>(hosts));
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    const auto at = std::ranges::find(order, static_cast<int>(rank % n)) - order.begin();
    const int to = order[(static_cast<std::size_t>(at) + 1) % n];
    next[rank] = static_cast<int>(rank / n * n) + to;
  }
  return next;
}

/// Sockets take turns, and in each of them its GPUs: all GPUs of a host come round.
TEST(Rotation, MovesGpusInsideTheirHosts) {
  const Topology topology = load_topology("dgx-h100:nodes=2");
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  const std::vector<NodeId> host(placement.ranks.begin(), placement.ranks.begin() + 8);
  const std::vector<int> order = turning_order(topology, host);
  EXPECT_EQ(order, (std::vector{0, 4, 1, 5, 2, 6, 3, 7}));
  const auto rotation = Rotation::find(topology, placement, next_in(order, 2), 8);
  ASSERT_TRUE(rotation);
  const auto node = [&](const std::string& name) { return *topology.find(name); };
  EXPECT_EQ(rotation->next(node("n1.gpu4")), node("n1.gpu1"));
  EXPECT_EQ(rotation->next(node("n1.nic7")), node("n1.nic0"));
  EXPECT_EQ(rotation->next(node("n0.cpu0")), node("n0.cpu1"));
  EXPECT_EQ(rotation->next(node("n0.nvswitch")), node("n0.nvswitch"));
  EXPECT_DOUBLE_EQ(rotation->per_group(node("n0.cpu1")), 2.0 / 8);
  // Eight groups of GPUs, each twice: everything that they share is shared by twice as many.
  const auto twice = Rotation::find(topology, placement, next_in(order, 2), 16);
  ASSERT_TRUE(twice);
  EXPECT_DOUBLE_EQ(twice->per_group(node("n1.gpu3")), 0.5);
  // In their own order GPUs would change their sockets one by one.
  EXPECT_FALSE(Rotation::find(topology, placement, next_in({0, 1, 2, 3, 4, 5, 6, 7}, 2), 8));
  EXPECT_FALSE(Rotation::find(load_topology("dgx-h100:nodes=2,n1.nic3-ibswitch.gbps=x0.5"),
                              placement, next_in(order, 2), 8));
}

TEST(TurningOrder, FollowsTheTreeOfSwitches) {
  const auto order_of = [](const std::string& name) {
    const Topology topology = load_topology(name);
    return turning_order(topology, topology.gpus());
  };
  // Pairs of GPUs on a switch, two switches on a socket: sockets turn fastest, then switches.
  EXPECT_EQ(order_of("dgx1-v100"), (std::vector{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(order_of("switch:n=4"), (std::vector{0, 1, 2, 3}));
}

TEST(Rotation, LeavesSharedMediaAlone) {
  Topology topology = load_topology("ring:n=4");
  const Router router(topology, topology.profile("kernel"));
  const Placement placement = place_ranks(router, {});
  ASSERT_TRUE(Rotation::find(topology, placement, next_group(placement, 4), 4));
  for (Link& link : topology.links) {
    link.duplex = Duplex::shared;
    link.medium = "bus";
  }
  EXPECT_FALSE(Rotation::find(topology, placement, next_group(placement, 4), 4));
}

}  // namespace
}  // namespace espalier

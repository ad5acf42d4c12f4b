// SPDX-License-Identifier: Apache-2.0
// Routes that spell out their path.
#include <gtest/gtest.h>

#include <string>

#include "tests/topologies/machine_fixture.h"

namespace espalier {
namespace {

using testing::Builder;
using testing::Machine;

const Route* along(const Machine& machine, const char* from, const char* to, const char* path) {
  return machine.router().route(machine.node(from), machine.node(to), std::string_view(path));
}

TEST(RoutePath, ThroughTheNetworkInsideAHost) {
  const Machine machine("dgx-a100");
  const Route* route = along(machine, "gpu0", "gpu2", "pex0>nic0>ibswitch>nic2>pex1");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::network);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 pex0 nic0 ibswitch nic2 pex1 gpu2");
  // Four PCIe links of 0.25 us, two of InfiniBand of 1.3 us.
  EXPECT_NEAR(route->latency_s, 3.6e-6, 1e-15);
  EXPECT_EQ(along(machine, "gpu0", "gpu2", "pex0>nic0>ibswitch>nic2>pex1"), route);
}

TEST(RoutePath, OneNameJoinsTwoRoutes) {
  const Machine machine("dgx1-v100");
  EXPECT_EQ(along(machine, "gpu0", "gpu5", "gpu1"), machine.route("gpu0", "gpu5", "gpu1"));
}

TEST(RoutePath, NamesThatAreNoNeighboursAreJoinedByTheirRoute) {
  const Machine machine("dgx1-v100");
  EXPECT_EQ(machine.path("gpu0", along(machine, "gpu0", "gpu7", "cpu0>cpu1")),
            "gpu0 plx0 root0 cpu0 cpu1 root3 plx3 gpu7");
}

TEST(RoutePath, WithoutPeerAccessHostLinksNeedACpu) {
  const Machine machine("dgx1-v100", "kernel");
  // Up to the root port and down again would be a direct copy between GPUs that may not.
  EXPECT_EQ(along(machine, "gpu0", "gpu1", "plx0>root0>plx0"), nullptr);
  EXPECT_EQ(along(machine, "gpu0", "gpu1", "plx0"), nullptr);
  const Route* staged = along(machine, "gpu0", "gpu1", "plx0>root0>cpu0>root0>plx0");
  ASSERT_NE(staged, nullptr);
  EXPECT_EQ(staged->kind, RouteKind::staged);
  EXPECT_DOUBLE_EQ(staged->start_up.s, machine.route("gpu0", "gpu1", "cpu0")->start_up.s);
}

TEST(RoutePath, NicsPassNothingBackToWhereItCameFrom) {
  const Machine machine("mist");
  EXPECT_EQ(along(machine, "gpu0", "gpu2", "cpu0>nic0>cpu1"), nullptr);
  EXPECT_EQ(along(machine, "gpu0", "gpu2", "nic0"), nullptr);
  EXPECT_EQ(machine.path("gpu0", along(machine, "gpu0", "gpu2", "cpu0>nic0>ibswitch>nic0>cpu1")),
            "gpu0 cpu0 nic0 ibswitch nic0 cpu1 gpu2");
  const Machine two("mist:nodes=2");
  EXPECT_EQ(along(two, "n0.gpu0", "n0.gpu2", "n0.nic0>ibswitch>n1.nic0>ibswitch>n0.nic0"), nullptr);
}

TEST(RoutePath, OnlyLinksInScope) {
  const Machine machine("dgx1-v100", "ideal", LinkScope::fabric);
  EXPECT_EQ(along(machine, "gpu0", "gpu7", "plx0>cpu0>cpu1"), nullptr);
  EXPECT_NE(along(machine, "gpu0", "gpu6", "gpu1>gpu5"), nullptr);
}

TEST(RoutePath, NeighboursAreOneHopApartInScope) {
  Builder build;
  const NodeId gpu = build.add("gpu", NodeKind::gpu), cpu = build.add("cpu", NodeKind::cpu);
  const NodeId other = build.add("other", NodeKind::gpu);
  const LinkId host = build.link(cpu, gpu, LinkClass::host, 12);
  const LinkId fabric = build.link(gpu, other, LinkClass::gpu_fabric, 50);
  const Machine all(build.done());
  EXPECT_EQ(all.router().hop(cpu, gpu), (Hop{host, true}));
  EXPECT_EQ(all.router().hop(gpu, cpu), (Hop{host, false}));
  EXPECT_EQ(all.router().hop(other, gpu), (Hop{fabric, false}));
  EXPECT_EQ(all.router().hop(other, cpu), std::nullopt);
  EXPECT_EQ(all.router().hop(gpu, gpu), std::nullopt);
}

TEST(RoutePath, TextAndNodes) {
  const Machine machine("dgx1-v100");
  const std::vector<NodeId> nodes = {machine.node("plx0"), machine.node("cpu0")};
  EXPECT_EQ(path_text(machine.topology(), nodes), "plx0>cpu0");
  EXPECT_EQ(path_names("plx0>cpu0"), (std::vector<std::string>{"plx0", "cpu0"}));
}

TEST(RoutePath, NodesMayNotBeNamedLikeAPath) {
  Topology topology = load_topology("line:n=2");
  topology.nodes[1].name = "a>b";
  const auto problems = check_topology(topology);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message, "the name 'a>b' contains '>'");
}

}  // namespace
}  // namespace espalier

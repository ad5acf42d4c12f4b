// SPDX-License-Identifier: Apache-2.0
#include "topologies/route.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/topologies/machine_fixture.h"

namespace espalier {
namespace {

using testing::Builder;
using testing::Machine;
using testing::numbered;

// ------------------------------------------------------------------ DGX-1: NVLink, staging

TEST(RouteDgx1V100, NeighboursUseTheirNvlink) {
  const Machine machine("dgx1-v100", "copy_engine");
  const Route* route = machine.route("gpu0", "gpu3");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::gpu_fabric);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 gpu3");
  EXPECT_DOUBLE_EQ(route->latency_s, 0.3e-6);
  EXPECT_DOUBLE_EQ(route->start_up.s, 8.7e-6);
  EXPECT_DOUBLE_EQ(machine.alone_gbps(*route), 47.9);  // measured, two links
}

TEST(RouteDgx1V100, CapacityDependsOnTheProfile) {
  const auto gbps = [](const std::string& profile, const std::string& to) {
    const Machine machine("dgx1-v100", profile);
    return machine.alone_gbps(*machine.route("gpu0", to));
  };
  EXPECT_DOUBLE_EQ(gbps("ideal", "gpu3"), 50);           // 2 x 25
  EXPECT_DOUBLE_EQ(gbps("kernel", "gpu3"), 42.65);       // 2 x 25 x 0.853
  EXPECT_DOUBLE_EQ(gbps("kernel", "gpu1"), 21.325);      // 1 x 25 x 0.853
  EXPECT_DOUBLE_EQ(gbps("copy_engine", "gpu1"), 23.95);  // measured
}

// Under `kernel`, PCIe attains 76 % of its bandwidth and NVLink 80 %: a bus of 10 GB/s has 7.6.
TEST(Routes, AMediumHasTheRateOfItsLeastEfficientKind) {
  const Machine machine(parse_topology(R"(
schema: espalier.topology/1
name: bus
nodes:
  - {name: "gpu[0-2]", kind: gpu}
links:
  - {a: gpu0, b: gpu1, kind: nvlink2, gbps: 10, duplex: shared, medium: bus}
  - {a: gpu1, b: gpu2, kind: pcie3x16, gbps: 10, duplex: shared, medium: bus}
)",
                                       "bus.yaml"),
                        "kernel:simple");
  for (const LinkId link : {0, 1}) EXPECT_DOUBLE_EQ(machine.router().capacity_gbps(link), 7.6);
}

TEST(RouteDgx1V100, OthersAreStagedThroughHostMemory) {
  const Machine machine("dgx1-v100", "kernel");
  const Route* route = machine.route("gpu0", "gpu7");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::staged);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 plx0 root0 cpu0 cpu1 root3 plx3 gpu7");
  // GPU-switch and switch-root 0.25 us each and root-CPU 0.1 us, twice; QPI 0.3 us.
  EXPECT_NEAR(route->latency_s, (2 * 0.6 + 0.3) * 1e-6, 1e-15);
  // A hop over PCIe, of which the latency is part, and staging.
  EXPECT_NEAR(route->start_up.s, (5.7 - 1.5 + 5.0) * 1e-6, 1e-15);
}

TEST(RouteDgx1V100, HostMemoryIsReachedOverPcie) {
  const Machine machine("dgx1-v100");
  EXPECT_EQ(machine.path("gpu2", "cpu0"), "gpu2 plx1 root1 cpu0");
  EXPECT_EQ(machine.path("cpu0", "gpu5"), "cpu0 cpu1 root2 plx2 gpu5");
  EXPECT_EQ(machine.path("cpu1", "cpu0"), "cpu1 cpu0");
  EXPECT_EQ(machine.route("gpu2", "cpu0")->kind, RouteKind::peer);
}

TEST(RouteDgx1V100, ANodeReachesItselfForNothing) {
  const Machine machine("dgx1-v100", "copy_engine");
  const Route* route = machine.route("gpu5", "gpu5");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::local);
  EXPECT_TRUE(route->hops.empty());
  EXPECT_EQ(route->latency_s + route->start_up.s, 0);
}

// Measured on a DGX-1 with P100, Li et al. TPDS 2020 and its raw data (Tartan).
TEST(RouteDgx1P100, CopyOfANeighbourMatchesTheMeasurement) {
  const Machine machine("dgx1-p100", "copy_engine");
  const Route* route = machine.route("gpu0", "gpu4");
  ASSERT_NE(route, nullptr);
  const double start_s = route->latency_s + route->start_up.s;
  EXPECT_GE(start_s, 9.0e-6);
  EXPECT_LE(start_s, 10.3e-6);
  const double gbps = machine.alone_gbps(*route);
  EXPECT_DOUBLE_EQ(gbps, 18.41);
  // 1 MiB took 66.1 us: 9.8 us + 1048576 B / 18.41 GB/s = 66.8 us, 1 % more.
  EXPECT_NEAR(start_s + 1048576 / (gbps * 1e9), 66.1e-6, 0.02 * 66.1e-6);
  // 256 MiB took 14527 us.
  EXPECT_NEAR(start_s + 268435456 / (gbps * 1e9), 14527e-6, 0.02 * 14527e-6);
}

TEST(RouteDgx1P100, StagedCopiesMatchTheMeasurement) {
  const Machine machine("dgx1-p100", "copy_engine");
  for (const char* to : {"gpu5", "gpu6", "gpu7"}) {
    const Route* route = machine.route("gpu0", to);
    ASSERT_NE(route, nullptr);
    EXPECT_EQ(route->kind, RouteKind::staged) << to;
    const double start_s = route->latency_s + route->start_up.s;
    EXPECT_GE(start_s, 18.6e-6) << to;
    EXPECT_LE(start_s, 19.9e-6) << to;
    EXPECT_GE(machine.alone_gbps(*route), 10.0) << to;
    EXPECT_LE(machine.alone_gbps(*route), 10.8) << to;
  }
}

TEST(RouteDgx1P100, StagedCopiesBelowOneSwitchGoUpAndDown) {
  // Pairs below one switch are neighbours; their staged copies were measured with peer access off.
  Topology topology = load_topology("dgx1-p100");
  std::erase_if(topology.links, [](const Link& link) { return link.kind == "nvlink1"; });
  const Machine machine(topology, "copy_engine");
  const Route* near = machine.route("gpu0", "gpu1");
  ASSERT_NE(near, nullptr);
  EXPECT_EQ(machine.path("gpu0", near), "gpu0 plx0 root0 cpu0 root0 plx0 gpu1");
  EXPECT_EQ(near->kind, RouteKind::staged);
  // Anti-locality: the port passes the bytes twice, 18.5 / 2 = 9.25 GB/s; measured 9.2-9.85.
  EXPECT_DOUBLE_EQ(machine.alone_gbps(*near), 9.25);
  const Route* far = machine.route("gpu0", "gpu2");
  EXPECT_EQ(machine.path("gpu0", far), "gpu0 plx0 root0 cpu0 root1 plx1 gpu2");
  EXPECT_DOUBLE_EQ(machine.alone_gbps(*far), 10.6);  // measured 10.0-10.8
}

// ------------------------------------------------------------------ through a named node

TEST(RouteVia, JoinsTwoRoutes) {
  const Machine machine("dgx1-v100", "kernel");
  const Route* route = machine.route("gpu0", "gpu7", "gpu4");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 gpu4 gpu7");
  EXPECT_EQ(route->kind, RouteKind::gpu_fabric);
  EXPECT_DOUBLE_EQ(route->latency_s, 0.6e-6);
  EXPECT_DOUBLE_EQ(route->start_up.s, 2.8e-6);  // one hop of 3.4 us, not two
}

TEST(RouteVia, ACpuBetweenTwoGpusIsAStagedCopy) {
  const Machine machine("cedar", "kernel");
  const Route* direct = machine.route("gpu0", "gpu1");
  EXPECT_EQ(direct->kind, RouteKind::gpu_fabric);
  const Route* route = machine.route("gpu0", "gpu1", "cpu0");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 cpu0 gpu1");
  EXPECT_EQ(route->kind, RouteKind::staged);
  EXPECT_DOUBLE_EQ(route->start_up.s, 9.7e-6);  // PCIe 5 + staging 5
}

TEST(RouteVia, MayBeASwitchOrAnAdapter) {
  const Machine a100("dgx-a100:nodes=2");
  EXPECT_EQ(a100.path("n0.gpu0", a100.route("n0.gpu0", "n0.gpu7", "n0.nvswitch")),
            "n0.gpu0 n0.nvswitch n0.gpu7");
  EXPECT_EQ(a100.path("n0.gpu0", a100.route("n0.gpu0", "n1.gpu0", "n0.nic1")),
            "n0.gpu0 n0.pex0 n0.nic1 ibswitch n1.nic0 n1.pex0 n1.gpu0");
  EXPECT_EQ(a100.path("n0.gpu0", a100.route("n0.gpu0", "n1.gpu0", "ibswitch")),
            "n0.gpu0 n0.pex0 n0.nic0 ibswitch n1.nic0 n1.pex0 n1.gpu0");
}

TEST(RouteVia, AnEndAsViaChangesNothing) {
  const Machine machine("dgx1-v100", "kernel");
  const Route* plain = machine.route("gpu0", "gpu7");
  for (const char* via : {"gpu0", "gpu7"}) {
    const Route* route = machine.route("gpu0", "gpu7", via);
    ASSERT_NE(route, nullptr);
    EXPECT_EQ(route->kind, plain->kind);
    EXPECT_EQ(route->hops, plain->hops);
    EXPECT_EQ(route->start_up.s, plain->start_up.s);
  }
}

TEST(RouteVia, NothingWhenAHalfIsMissing) {
  const Machine machine("dgx1-v100", "kernel", LinkScope::fabric);
  EXPECT_EQ(machine.route("gpu0", "gpu7", "cpu0"), nullptr);
  EXPECT_NE(machine.route("gpu0", "gpu7", "gpu3"), nullptr);
}

// ------------------------------------------------------------------ PCIe trees

TEST(RouteP2, PeersUseTheNearestSwitch) {
  const Machine machine("p2.16xlarge");
  EXPECT_EQ(machine.path("gpu0", "gpu1"), "gpu0 card0 gpu1");
  EXPECT_EQ(machine.path("gpu0", "gpu7"), "gpu0 card0 central0 card3 gpu7");
  EXPECT_EQ(machine.path("gpu3", "gpu12"), "gpu3 card1 central0 central1 card6 gpu12");
  EXPECT_EQ(machine.route("gpu3", "gpu12")->kind, RouteKind::peer);
  EXPECT_EQ(machine.path("gpu12", "cpu0"), "gpu12 card6 central1 cpu0");
}

// ------------------------------------------------------------------ POWER9: NVLink to the CPUs

TEST(RouteMist, CrossesSocketsThroughTheCpus) {
  const Machine machine("mist", "copy_engine");
  EXPECT_EQ(machine.path("gpu0", "gpu1"), "gpu0 gpu1");
  const Route* route = machine.route("gpu0", "gpu2");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::peer);
  EXPECT_EQ(machine.path("gpu0", route), "gpu0 cpu0 cpu1 gpu2");
  EXPECT_DOUBLE_EQ(machine.alone_gbps(*route), 34);  // the X-bus, both directions together
}

TEST(RouteMist, NvlinkToTheCpuIsNoGpuFabric) {
  const Machine machine("mist", "kernel", LinkScope::fabric);
  EXPECT_NE(machine.route("gpu0", "gpu1"), nullptr);
  EXPECT_EQ(machine.route("gpu0", "gpu2"), nullptr);
  EXPECT_EQ(machine.route("gpu0", "cpu0"), nullptr);
}

TEST(RouteMist, CrossesNodesThroughTheSharedAdapter) {
  const Machine machine("mist:nodes=2");
  const Route* route = machine.route("n0.gpu0", "n1.gpu2");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::network);
  EXPECT_EQ(machine.path("n0.gpu0", route),
            "n0.gpu0 n0.cpu0 n0.nic0 ibswitch n1.nic0 n1.cpu1 n1.gpu2");
  EXPECT_NEAR(route->latency_s, 2 * (0.3 + 0.5 + 1.3) * 1e-6, 1e-15);
}

// ------------------------------------------------------------------ clusters

TEST(RouteKesch, PeersWithinASocketOnly) {
  const Machine machine("kesch");
  EXPECT_EQ(machine.route("gpu0", "gpu7")->kind, RouteKind::peer);
  EXPECT_EQ(machine.path("gpu0", "gpu7"), "gpu0 card0 plx0 card3 gpu7");
  EXPECT_EQ(machine.route("gpu0", "gpu8")->kind, RouteKind::staged);
  EXPECT_EQ(machine.path("gpu0", "gpu8"), "gpu0 card0 plx0 cpu0 cpu1 plx1 card4 gpu8");
}

TEST(RouteKesch, CrossesNodesThroughTheAdapterOfTheSocket) {
  const Machine machine("kesch:nodes=12");
  EXPECT_EQ(machine.path("n0.gpu0", "n11.gpu8"),
            "n0.gpu0 n0.card0 n0.plx0 n0.cpu0 n0.hca0 ibswitch "
            "n11.hca1 n11.cpu1 n11.plx1 n11.card4 n11.gpu8");
  EXPECT_EQ(machine.route("n0.gpu0", "n11.gpu8")->kind, RouteKind::network);
  EXPECT_EQ(machine.path("n0.cpu1", "n1.cpu0"), "n0.cpu1 n0.hca1 ibswitch n1.hca0 n1.cpu0");
}

TEST(RouteDgxA100, GpusOfOneSwitchTakeTurnsAtItsAdapters) {
  const Machine machine("dgx-a100:nodes=2");
  EXPECT_EQ(machine.path("n0.gpu0", "n0.gpu7"), "n0.gpu0 n0.nvswitch n0.gpu7");
  for (int gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(machine.path(fmt::format("n0.gpu{}", gpu), fmt::format("n1.gpu{}", gpu)),
              fmt::format("n0.gpu{0} n0.pex{1} n0.nic{0} ibswitch n1.nic{0} n1.pex{1} n1.gpu{0}",
                          gpu, gpu / 2));
  }
}

TEST(RouteGb200, TraysShareTheGpuFabric) {
  const Machine machine("gb200-nvl72");
  const Route* route = machine.route("n0.gpu0", "n17.gpu3");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::gpu_fabric);
  EXPECT_EQ(machine.path("n0.gpu0", route), "n0.gpu0 nvswitch n17.gpu3");
  // The two Grace CPUs of a tray have no link: their memories meet over the network.
  EXPECT_EQ(machine.path("n0.cpu0", "n0.cpu1"), "n0.cpu0 n0.nic0 ibswitch n0.nic2 n0.cpu1");
}

TEST(RouteScope, FabricStaysWithinTheGpuFabric) {
  const Machine dgx1("dgx1-v100", "ideal", LinkScope::fabric);
  EXPECT_EQ(dgx1.path("gpu0", "gpu4"), "gpu0 gpu4");
  EXPECT_EQ(dgx1.route("gpu0", "gpu7"), nullptr);
  const Machine cluster("dgx-a100:nodes=2", "ideal", LinkScope::fabric);
  EXPECT_EQ(cluster.path("n0.gpu0", "n0.gpu7"), "n0.gpu0 n0.nvswitch n0.gpu7");
  EXPECT_EQ(cluster.route("n0.gpu0", "n1.gpu0"), nullptr);
  EXPECT_EQ(Machine("p2.8xlarge", "ideal", LinkScope::fabric).route("gpu0", "gpu1"), nullptr);
}

// ------------------------------------------------------------------ generic machines

TEST(RouteGeneric, SwitchAndRing) {
  const Machine crossbar("switch:n=4,gbps=50");
  const Route* route = crossbar.route("gpu0", "gpu3");
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->kind, RouteKind::gpu_fabric);
  EXPECT_EQ(route->hops.size(), 2U);
  EXPECT_DOUBLE_EQ(crossbar.alone_gbps(*route), 50);
  for (const char* profile : {"ideal", "kernel", "copy_engine"}) {
    const Machine ring("ring:n=1024,gbps=25,latency_us=0.5", profile);
    EXPECT_EQ(ring.path("gpu1023", "gpu0"), "gpu1023 gpu0") << profile;
    EXPECT_DOUBLE_EQ(ring.alone_gbps(*ring.route("gpu5", "gpu6")), 25) << profile;
    EXPECT_EQ(ring.route("gpu5", "gpu6")->start_up.s, 0) << profile;
    EXPECT_DOUBLE_EQ(ring.route("gpu5", "gpu6")->latency_s, 0.5e-6) << profile;
  }
}

// ------------------------------------------------------------------ choice among paths

TEST(RouteChoice, ShorterBeatsWider) {
  Builder build;
  const NodeId a = build.add("a", NodeKind::gpu);
  const NodeId b = build.add("b", NodeKind::gpu);
  const NodeId s = build.add("s", NodeKind::nvswitch);
  const NodeId t = build.add("t", NodeKind::nvswitch);
  const NodeId u = build.add("u", NodeKind::nvswitch);
  build.link(a, t, LinkClass::gpu_fabric, 100);
  build.link(t, u, LinkClass::gpu_fabric, 100);
  build.link(u, b, LinkClass::gpu_fabric, 100);
  build.link(a, s, LinkClass::gpu_fabric, 1);
  build.link(s, b, LinkClass::gpu_fabric, 1);
  const Machine machine(build.done());
  EXPECT_EQ(machine.path("a", "b"), "a s b");
}

TEST(RouteChoice, ThenTheWidestBottleneckThenTheLowestLinks) {
  for (const double first : {10.0, 20.0, 30.0}) {
    Builder build;
    const NodeId a = build.add("a", NodeKind::gpu);
    const NodeId b = build.add("b", NodeKind::gpu);
    const NodeId s = build.add("s", NodeKind::nvswitch);
    const NodeId t = build.add("t", NodeKind::nvswitch);
    build.link(a, s, LinkClass::gpu_fabric, 50);
    build.link(a, t, LinkClass::gpu_fabric, 40);
    build.link(s, b, LinkClass::gpu_fabric, first);
    build.link(t, b, LinkClass::gpu_fabric, 20);
    const Machine machine(build.done());
    // Bottlenecks: min(50, first) over s, min(40, 20) = 20 over t; a tie goes to the lower links.
    EXPECT_EQ(machine.path("a", "b"), first >= 20 ? "a s b" : "a t b") << first;
  }
}

TEST(RouteChoice, GpusForwardOnlyWhenTheMachineSaysSo) {
  for (const bool forward : {false, true}) {
    Builder build;
    std::vector<NodeId> gpus;
    for (int i = 0; i < 5; ++i) gpus.push_back(build.add(numbered("g", i), NodeKind::gpu));
    for (std::size_t i = 1; i < gpus.size(); ++i) {
      build.link(gpus[i - 1], gpus[i], LinkClass::gpu_fabric);
    }
    build.topology().gpus_forward = forward;
    const Machine machine(build.done());
    EXPECT_EQ(machine.path("g0", "g4"), forward ? "g0 g1 g2 g3 g4" : "no route");
    EXPECT_EQ(machine.path("g3", "g2"), "g3 g2");
  }
}

TEST(RouteChoice, AdaptersNeverForwardWithinAHost) {
  Builder build;
  const NodeId a = build.add("a", NodeKind::gpu);
  const NodeId b = build.add("b", NodeKind::gpu);
  const NodeId nic = build.add("nic", NodeKind::nic);
  build.link(a, nic, LinkClass::host);
  build.link(nic, b, LinkClass::host);
  const Machine machine(build.done());
  EXPECT_EQ(machine.route("a", "b"), nullptr);
}

// Two hosts of two GPUs; every GPU has its own NIC, and the NICs of a number share a switch.
Topology two_planes() {
  Builder build;
  const NodeId planes[] = {build.add("plane0", NodeKind::fabric, -1),
                           build.add("plane1", NodeKind::fabric, -1)};
  for (int host = 0; host < 2; ++host) {
    const std::string h = numbered("h", host) + ".";
    const NodeId pcie = build.add(h + "pcie", NodeKind::pcie_switch, host);
    for (int i = 0; i < 2; ++i) {
      const NodeId gpu = build.add(h + numbered("gpu", i), NodeKind::gpu, host);
      const NodeId own = build.add(h + numbered("pex", i), NodeKind::pcie_switch, host);
      const NodeId nic = build.add(h + numbered("nic", i), NodeKind::nic, host);
      build.link(gpu, own, LinkClass::host);
      build.link(nic, own, LinkClass::host);
      build.link(own, pcie, LinkClass::host);
      build.link(nic, planes[i], LinkClass::network);
    }
  }
  return build.done();
}

TEST(RouteNetwork, FallsBackToAnAdapterOfTheSamePlane) {
  const Machine machine(two_planes());
  EXPECT_EQ(machine.path("h0.gpu1", "h1.gpu1"),
            "h0.gpu1 h0.pex1 h0.nic1 plane1 h1.nic1 h1.pex1 h1.gpu1");
  EXPECT_EQ(machine.path("h0.gpu0", "h1.gpu1"),
            "h0.gpu0 h0.pex0 h0.nic0 plane0 h1.nic0 h1.pex0 h1.pcie h1.pex1 h1.gpu1");
}

TEST(RouteNetwork, GpusMayBeWiredToTheNetworkThemselves) {
  Builder build;
  const NodeId a = build.add("a", NodeKind::gpu, 0);
  const NodeId b = build.add("b", NodeKind::gpu, 1);
  const NodeId leaf = build.add("leaf", NodeKind::fabric, -1);
  const NodeId spine = build.add("spine", NodeKind::fabric, -1);
  const NodeId far = build.add("far", NodeKind::fabric, -1);
  build.link(a, leaf, LinkClass::network);
  build.link(leaf, spine, LinkClass::network);
  build.link(spine, far, LinkClass::network);
  build.link(far, b, LinkClass::network);
  const Machine machine(build.done());
  EXPECT_EQ(machine.path("a", "b"), "a leaf spine far b");
  EXPECT_EQ(machine.route("a", "b")->kind, RouteKind::network);
}

TEST(RouteNetwork, ThreeGpusSpreadOverTwoAdapters) {
  Builder build;
  const NodeId net = build.add("net", NodeKind::fabric, -1);
  const NodeId far = build.add("far", NodeKind::gpu, 1);
  build.link(far, net, LinkClass::network);
  const NodeId pcie = build.add("pcie", NodeKind::pcie_switch);
  for (int i = 0; i < 2; ++i) {
    const NodeId nic = build.add(numbered("nic", i), NodeKind::nic);
    build.link(nic, pcie, LinkClass::host);
    build.link(nic, net, LinkClass::network);
  }
  for (int i = 0; i < 3; ++i) {
    build.link(build.add(numbered("gpu", i), NodeKind::gpu), pcie, LinkClass::host);
  }
  const Machine machine(build.done());
  EXPECT_EQ(machine.path("gpu0", "far"), "gpu0 pcie nic0 net far");
  EXPECT_EQ(machine.path("gpu1", "far"), "gpu1 pcie nic1 net far");
  EXPECT_EQ(machine.path("gpu2", "far"), "gpu2 pcie nic0 net far");
}

TEST(Router, AnswersStayWhereTheyAre) {
  const Machine machine("kesch:nodes=4");
  const Route* first = machine.route("n0.gpu0", "n3.gpu15");
  const Route before = *first;
  for (const NodeId from : machine.topology().gpus()) {
    for (const NodeId to : machine.topology().gpus()) machine.router().route(from, to);
  }
  EXPECT_EQ(machine.route("n0.gpu0", "n3.gpu15"), first);
  EXPECT_EQ(first->hops, before.hops);
}

/// Where links are in the same order by rate, every route takes the same way.
TEST(Router, GoesAsAnotherWhereLinksAreInTheSameOrder) {
  int same = 0;
  for (const char* name : {"dgx1-v100", "kesch:nodes=2", "p2.16xlarge", "dgx-a100:nodes=2"}) {
    const Topology topology = load_topology(name);
    const Router under_kernel(topology, topology.profile("kernel"));
    for (const auto& [profile, unused] : topology.profiles) {
      const Router other(topology, topology.profile(profile));
      if (!other.goes_as(under_kernel)) continue;
      ++same;
      for (const NodeId from : topology.gpus()) {
        for (const NodeId to : topology.gpus()) {
          const Route* const route = other.route(from, to);
          const Route* const known = under_kernel.route(from, to);
          ASSERT_EQ(route == nullptr, known == nullptr);
          if (route == nullptr) continue;
          EXPECT_EQ(route->hops, known->hops) << name << ", " << profile;
        }
      }
    }
    const Router under_ll(topology, topology.profile("kernel:ll"));
    EXPECT_TRUE(under_ll.goes_as(under_kernel)) << name;
    EXPECT_FALSE(Router(topology, topology.profile("kernel"), LinkScope::fabric).goes_as(under_ll));
  }
  EXPECT_GE(same, 8);
}

/// Whether two routers have the same routes between all nodes, and at the same costs.
void expect_same_routes(const Router& one, const Router& other) {
  const auto nodes = static_cast<NodeId>(one.topology().nodes.size());
  for (NodeId from = 0; from < nodes; ++from) {
    for (NodeId to = 0; to < nodes; ++to) {
      const Route* const route = one.route(from, to);
      const Route* const expected = other.route(from, to);
      ASSERT_EQ(route == nullptr, expected == nullptr);
      if (route == nullptr) continue;
      EXPECT_EQ(route->kind, expected->kind);
      EXPECT_EQ(route->hops, expected->hops);
      EXPECT_EQ(route->latency_s, expected->latency_s);
      EXPECT_EQ(route->start_up.s, expected->start_up.s);
      EXPECT_EQ(route->slice_s, expected->slice_s);
    }
  }
}

TEST(Router, SharesWaysWithThoseOfMachinesOfOtherRates) {
  const std::vector<std::pair<std::string, std::string>> alike = {
      {"dgx1-v100", "dgx1-v100:nvlink2.gbps=30"},
      {"p2.16xlarge", "p2.16xlarge:gpu0.memory_gbps=200"},
      {"kesch:nodes=2", "kesch:nodes=2,ib_fdr.gbps=x0.9"},
      {"dgx-a100:nodes=2", "dgx-a100:nodes=2,nvlink3.gbps=x1.1"},
      {"mi300x", "mi300x:xgmi3.latency_us=x3"}};
  for (const auto& [name, what_if] : alike) {
    SCOPED_TRACE(what_if);
    const Topology before = load_topology(name);
    const Topology after = load_topology(what_if);
    const Router known(before, before.profile("kernel"));
    Router router(after, after.profile("kernel"));
    EXPECT_FALSE(router.shares_ways(known));
    ASSERT_TRUE(router.goes_as(known));
    router.share_ways(known);
    EXPECT_TRUE(router.shares_ways(known));
    // Some of the ways are found by one, some by the other.
    const std::vector<NodeId> gpus = before.gpus();
    for (const NodeId to : gpus) (void)known.route(gpus.front(), to);
    expect_same_routes(router, Router(after, after.profile("kernel")));
    expect_same_routes(known, Router(before, before.profile("kernel")));
  }
}

TEST(Router, GoesElsewhereOnMachinesOfOtherLinks) {
  const Topology machine = load_topology("dgx1-v100");
  const Router known(machine, machine.profile("kernel"));
  const Topology copy = machine;
  EXPECT_TRUE(Router(copy, copy.profile("kernel")).goes_as(known));
  for (const char* other : {"dgx1-v100:without=gpu0-gpu3", "dgx1-v100:nodes=2", "dgx1-p100",
                            "dgx1-v100:nvlink2.gbps=1"}) {
    const Topology changed = load_topology(other);
    EXPECT_FALSE(Router(changed, changed.profile("kernel")).goes_as(known)) << other;
  }
  ASSERT_NE(machine.peer_access, Topology::PeerAccess::all);
  const auto change = [&](const char* what, const std::function<void(Topology&)>& make) {
    Topology changed = machine;
    make(changed);
    EXPECT_FALSE(Router(changed, changed.profile("kernel")).goes_as(known)) << what;
  };
  change("access", [](Topology& of) { of.peer_access = Topology::PeerAccess::all; });
  change("forwarding", [](Topology& of) { of.gpus_forward = true; });
  change("kind", [](Topology& of) { of.nodes.front().kind = NodeKind::cpu; });
  change("host", [](Topology& of) { ++of.nodes.front().host; });
  change("socket", [](Topology& of) { ++of.nodes.front().numa; });
  change("class", [](Topology& of) { of.links.front().link_class = LinkClass::host; });
  change("ends", [](Topology& of) { std::swap(of.links.front().a, of.links.front().b); });
  change("other end", [](Topology& of) { of.links.front().b = of.links.front().b == 5 ? 6 : 5; });
  change("nodes", [](Topology& of) { of.nodes.push_back(of.nodes.back()); });
}

/// Of two ways of two hops, the one that is wider.
TEST(Router, GoesElsewhereWhereAnotherLinkIsFaster) {
  Builder build;
  const NodeId a = build.add("a", NodeKind::gpu);
  const NodeId b = build.add("b", NodeKind::gpu);
  for (const char* kind : {"slow", "fast"}) {
    const NodeId pcie = build.add(kind, NodeKind::pcie_switch);
    for (const NodeId gpu : {a, b}) build.link(gpu, pcie, LinkClass::host);
  }
  Topology topology = build.done();
  for (std::size_t link = 0; link < 4; ++link) topology.links[link].kind = link < 2 ? "x" : "y";
  Profile first = topology.profile("ideal");
  Profile second = first;
  first.links["x"].efficiency = 0.5;
  second.links["y"].efficiency = 0.5;
  const Router over_y(topology, first);
  const Router over_x(topology, second);
  EXPECT_FALSE(over_x.goes_as(over_y));
  const Router over_first(topology, topology.profile("ideal"));  // all are as fast
  for (const Router* router : {&over_x, &over_y}) {
    EXPECT_FALSE(router->goes_as(over_first));
    EXPECT_FALSE(over_first.goes_as(*router));
  }
  EXPECT_EQ(over_y.route(a, b)->hops.front().link, 2);
  EXPECT_EQ(over_x.route(a, b)->hops.front().link, 0);
}

}  // namespace
}  // namespace espalier

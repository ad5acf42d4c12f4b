// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// The neighbours of every GPU among the GPUs.
std::vector<std::set<NodeId>> neighbours(const Topology& topology) {
  std::vector<std::set<NodeId>> result(topology.nodes.size());
  for (const Link& link : topology.links) {
    EXPECT_TRUE(result[static_cast<std::size_t>(link.a)].insert(link.b).second) << "two links";
    EXPECT_TRUE(result[static_cast<std::size_t>(link.b)].insert(link.a).second) << "two links";
  }
  return result;
}

std::string error_of(const std::string& spec) {
  try {
    load_topology(spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "nothing thrown";
}

TEST(Generic, HasAsManyLinksAsItsShape) {
  // line n-1; ring n from three on, one between two; star n-1; full n(n-1)/2; switch n; hosts n
  // and between them n(n-1)/2.
  for (int n = 1; n <= 9; ++n) {
    const auto links = [n](const std::string& shape) {
      const Topology topology = load_topology(shape + ":n=" + std::to_string(n));
      EXPECT_EQ(topology.gpus().size(), static_cast<std::size_t>(n)) << shape;
      EXPECT_TRUE(check_topology(topology).empty()) << shape;
      return static_cast<int>(topology.links.size());
    };
    EXPECT_EQ(links("line"), n - 1);
    EXPECT_EQ(links("ring"), n > 2 ? n : n - 1);
    EXPECT_EQ(links("star"), n - 1);
    EXPECT_EQ(links("full"), n * (n - 1) / 2);
    EXPECT_EQ(links("switch"), n);
    EXPECT_EQ(links("hosts"), n + n * (n - 1) / 2);
  }
}

TEST(Generic, RingAndLineJoinNeighbours) {
  const auto ring = neighbours(load_topology("ring:n=5"));
  EXPECT_EQ(ring[0], (std::set<NodeId>{1, 4}));
  EXPECT_EQ(ring[3], (std::set<NodeId>{2, 4}));
  const auto line = neighbours(load_topology("line:n=5"));
  EXPECT_EQ(line[0], (std::set<NodeId>{1}));
  EXPECT_EQ(line[3], (std::set<NodeId>{2, 4}));
  const auto star = neighbours(load_topology("star:n=4"));
  EXPECT_EQ(star[0], (std::set<NodeId>{1, 2, 3}));
  EXPECT_EQ(star[2], (std::set<NodeId>{0}));
}

TEST(Generic, SwitchHasOneNvswitch) {
  const Topology topology = load_topology("switch:n=4");
  EXPECT_EQ(topology.nodes.back().kind, NodeKind::nvswitch);
  EXPECT_EQ(neighbours(topology)[4], (std::set<NodeId>{0, 1, 2, 3}));
}

TEST(Generic, HostsHaveACpuEach) {
  const Topology topology = load_topology("hosts:n=3,gbps=10,latency_us=4,host_gbps=32");
  const auto near = neighbours(topology);
  EXPECT_EQ(topology.nodes[4].name, "cpu1");
  EXPECT_EQ(near[1], (std::set<NodeId>{4}));
  EXPECT_EQ(near[4], (std::set<NodeId>{1, 3, 5}));
  // From memory to memory, and from there into the GPU: 10 GB/s and 4 us either way.
  Router router(topology, topology.profile("ideal"));
  const Placement placement = place_ranks(router, {});
  EXPECT_EQ(placement.host_of_rank, (std::vector<int>{0, 1, 2}));
  const Route* route = router.route(placement.hosts[0], placement.ranks[2]);
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->hops.size(), 2U);
  EXPECT_DOUBLE_EQ(route->latency_s, 4e-6);
  EXPECT_EQ(error_of("hosts:host_gbps=0"),
            "error: 'host_gbps' of hosts is 0, but must be positive (in GB/s, 1e-6 to 1e6)");
}

TEST(Generic, TorusClosesEveryAxis) {
  // GPU x + 4 (y + 3 z) of a 4 x 3 x 2 torus: both ways round along x and y, one link along z.
  const Topology topology = load_topology("torus:x=4,y=3,z=2");
  const auto near = neighbours(topology);
  EXPECT_EQ(near[0], (std::set<NodeId>{1, 3, 4, 8, 12}));
  EXPECT_EQ(near[23], (std::set<NodeId>{22, 20, 19, 15, 11}));
  EXPECT_EQ(topology.links.size(), 24u + 24u + 12u);
  EXPECT_EQ(load_topology("torus:x=1,y=1,z=1").links.size(), 0u);
  EXPECT_EQ(load_topology("torus:x=2,y=1").links.size(), 1u);
  EXPECT_EQ(load_topology("torus:x=8,y=1").links.size(), load_topology("ring:n=8").links.size());
}

TEST(Generic, TakesParameters) {
  const Topology topology = load_topology(
      "ring:n=4,gbps=50,latency_us=0.5,half=1,forward=1,host_gbps=12,host_latency_us=2");
  EXPECT_EQ(topology.name,
            "ring:n=4,gbps=50,latency_us=0.5,half=1,forward=1,host_gbps=12,host_latency_us=2");
  EXPECT_TRUE(topology.gpus_forward);
  ASSERT_EQ(topology.links.size(), 8u);
  EXPECT_EQ(topology.links[0].gbps, 50);
  EXPECT_DOUBLE_EQ(topology.links[0].latency_s, 0.5e-6);
  EXPECT_EQ(topology.links[0].duplex, Duplex::half);
  EXPECT_EQ(topology.links[0].link_class, LinkClass::gpu_fabric);
  EXPECT_EQ(topology.links[0].kind, "link");
  EXPECT_EQ(topology.nodes[4].kind, NodeKind::cpu);
  EXPECT_EQ(topology.links[7].a, 3);
  EXPECT_EQ(topology.links[7].b, 4);
  EXPECT_EQ(topology.links[7].gbps, 12);
  EXPECT_DOUBLE_EQ(topology.links[7].latency_s, 2e-6);
  EXPECT_EQ(topology.links[7].link_class, LinkClass::host);
}

TEST(Generic, HasDefaults) {
  const Topology topology = load_topology("ring");
  EXPECT_EQ(topology.name, "ring");
  EXPECT_EQ(topology.gpus().size(), 8u);
  EXPECT_EQ(topology.links[0].gbps, 25);
  EXPECT_EQ(topology.links[0].latency_s, 0);
  EXPECT_EQ(topology.links[0].duplex, Duplex::full);
  EXPECT_FALSE(topology.gpus_forward);
  EXPECT_EQ(topology.profiles.size(), built_in_profiles().profiles.size());
}

TEST(Generic, CanBeMadeWithoutText) {
  const Topology topology = generic_topology("line", {{"n", 3}, {"gbps", 0.5}});
  EXPECT_EQ(topology.name, "line:gbps=0.5,n=3");
  EXPECT_EQ(topology.links.size(), 2u);
  EXPECT_THROW(generic_topology("circle", {}), Error);
}

TEST(Generic, DiagnosesParameters) {
  EXPECT_EQ(
      error_of("ring:m=4,gpbs=3,n=0"),
      "error: 'n' of ring is 0, but must be a whole number from 1 to 65536\n"
      "error: ring has no parameter 'gpbs'\n  help: did you mean 'gbps'?\n"
      "error: ring has no parameter 'm'\n"
      "  help: one of: n, gbps, latency_us, startup_us, half, forward, host_gbps, host_latency_us");
  EXPECT_EQ(error_of("line:n=2.5,gbps=0,latency_us=-1"),
            "error: 'n' of line is 2.5, but must be a whole number from 1 to 65536\n"
            "error: 'gbps' of line is 0, but must be positive (in GB/s, 1e-6 to 1e6)\n"
            "error: 'latency_us' of line is -1, but must be 0 or more (in us, at most 1e9)");
  EXPECT_EQ(error_of("star:n=65537"),
            "error: 'n' of star is 65537, but must be a whole number from 1 to 65536");
  EXPECT_EQ(error_of("full:n=2049"),
            "error: 'n' of full is 2049, but must be a whole number from 1 to 2048");
  EXPECT_EQ(error_of("torus:x=256,y=256,z=2"),
            "error: torus has 131072 GPUs, but at most 65536 are possible");
  EXPECT_EQ(error_of("torus:n=8").substr(0, 35), "error: torus has no parameter 'n'\n ");
  EXPECT_EQ(error_of("switch:half=2,forward=0.5,host_gbps=1e-9"),
            "error: 'half' of switch is 2, but must be 0 or 1\n"
            "error: 'forward' of switch is 0.5, but must be 0 or 1\n"
            "error: 'host_gbps' of switch is 1e-09, but must be 0 (no host) or positive (in GB/s, "
            "1e-6 to 1e6)");
}

TEST(Generic, ReachesItsLimits) {
  EXPECT_EQ(load_topology("ring:n=65536").links.size(), 65536u);
  EXPECT_EQ(load_topology("full:n=2048").links.size(), 2048u * 2047u / 2u);
}

TEST(Generic, DescribesItself) {
  std::vector<std::string> names;
  for (const GenericMachine& machine : generic_machines()) {
    names.push_back(machine.name);
    EXPECT_FALSE(machine.title.empty());
    std::map<std::string, double> defaults;
    for (const GenericParameter& parameter : machine.parameters) {
      EXPECT_FALSE(parameter.meaning.empty()) << parameter.name;
      defaults[parameter.name] = parameter.default_value;
    }
    EXPECT_EQ(generic_topology(machine.name, defaults).links.size(),
              generic_topology(machine.name, {}).links.size());
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"ring", "line", "full", "star", "switch", "torus", "hosts"}));
}

}  // namespace
}  // namespace espalier

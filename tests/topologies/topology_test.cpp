// SPDX-License-Identifier: Apache-2.0
// Machines built in code: what check_topology says about them.
#include "topologies/topology.h"

#include <gtest/gtest.h>

#include <limits>

#include "topologies/load.h"
#include "topologies/name_pattern.h"

namespace espalier {
namespace {

using Lines = std::vector<std::string>;

/// What is said about a line of three GPUs after `change`.
template <class Change>
Lines said_about(const Change& change) {
  Topology topology = load_topology("line:n=3");
  EXPECT_TRUE(check_topology(topology).empty());
  change(topology);
  Lines lines;
  for (const Diagnostic& problem : check_topology(topology)) lines.push_back(problem.message);
  return lines;
}

TEST(CheckTopology, Nodes) {
  EXPECT_EQ(said_about([](Topology& t) { t.nodes[1].name = "gpu0"; }),
            Lines{"the name 'gpu0' is used by two nodes"});
  EXPECT_EQ(said_about([](Topology& t) { t.nodes[1].name.clear(); }),
            Lines{"node number 1 has no name"});
  EXPECT_EQ(said_about([](Topology& t) { t.nodes[1].host = 1; }),
            Lines{"node gpu1 is in host 1, but the machine has 1"});
  EXPECT_EQ(said_about([](Topology& t) {
              for (Node& node : t.nodes) node.kind = NodeKind::cpu;
            }),
            Lines{"the machine has no GPU"});
  EXPECT_EQ(said_about([](Topology& t) {
              t.nodes[0].memory_gbps = -1;
              t.nodes[1].reduce_gbps = std::numeric_limits<double>::quiet_NaN();
              t.nodes[2].peer_limit = -1;
              t.nodes[2].copy_engines = -2;
            }),
            (Lines{"'memory_gbps' of gpu0 is -1, but must be positive (in GB/s, 1e-6 to 1e6)",
                   "'reduce_gbps' of gpu1 is nan, but must be positive (in GB/s, 1e-6 to 1e6)",
                   "'peer_limit' of gpu2 is -1, but must be 0 or more (at most 1e6)",
                   "'copy_engines' of gpu2 is -2, but must be 0 or more (at most 1e6)"}));
}

TEST(CheckTopology, SharedMemories) {
  EXPECT_EQ(said_about([](Topology& t) {
              t.memories["ram"] = {40, 9};
              t.memories["slow"] = {0, -1};
              t.nodes[0].memory = "ram";
              t.nodes[1].memory = "rom";
              t.nodes[2].access_gbps = -1;
            }),
            (Lines{"gpu1 uses memory 'rom', which does not exist",
                   "'access_gbps' of gpu2 is -1, but must be positive (in GB/s, 1e-6 to 1e6)",
                   "'gbps' of memory 'slow' is 0, but must be positive (in GB/s, 1e-6 to 1e6)",
                   "'reduce_gbps' of memory 'slow' is -1, but must be positive (in GB/s, 1e-6 to "
                   "1e6)"}));
}

TEST(CheckTopology, Links) {
  EXPECT_EQ(said_about([](Topology& t) {
              t.links[0].a = 3;
              t.links[1].b = -1;
            }),
            (Lines{"link number 0 ends at a node that does not exist",
                   "link number 1 ends at a node that does not exist"}));
  EXPECT_EQ(said_about([](Topology& t) { t.links[0].b = 0; }), Lines{"a link from gpu0 to itself"});
  EXPECT_EQ(said_about([](Topology& t) { t.links[1] = t.links[0]; }),
            Lines{"gpu0 and gpu1 are joined by two links of kind 'link'"});
  EXPECT_EQ(said_about([](Topology& t) {
              t.links[1] = t.links[0];
              t.links[1].kind = "wire";
              std::swap(t.links[1].a, t.links[1].b);
            }),
            Lines{"gpu1 and gpu0 are joined by links of kinds 'link' and 'wire'"});
  EXPECT_EQ(
      said_about([](Topology& t) { t.links[0].count = 40'001; }),
      Lines{"link gpu0-gpu1 has 40001 x 25 GB/s, but a bundle may have at most 1000000 GB/s"});
  // 101 links of 1e6 GB/s.
  EXPECT_EQ(said_about([](Topology& t) {
              const Link link = t.links[0];
              t.links.clear();
              t.nodes.resize(1);
              for (NodeId end = 1; end <= 101; ++end) {
                t.nodes.push_back(t.nodes[0]);
                t.nodes.back().name = "other" + std::to_string(end);
                t.links.push_back(link);
                t.links.back().b = end;
                t.links.back().gbps = 1e6;
              }
            }),
            Lines{"all links together have 1.01e+08 GB/s, but may have at most 1e+08"});
  EXPECT_EQ(
      said_about([](Topology& t) {
        t.links[0].gbps = 0;
        t.links[0].count = 0;
        t.links[1].latency_s = std::numeric_limits<double>::infinity();
      }),
      (Lines{"'count' of link gpu0-gpu1 is 0, but must be 1 or more (at most 1e6)",
             "'gbps' of link gpu0-gpu1 is 0, but must be positive (in GB/s, 1e-6 to 1e6)",
             "'latency_s' of link gpu1-gpu2 is inf, but must be 0 or more (in s, at most 1e4)"}));
  EXPECT_EQ(
      said_about([](Topology& t) { t.links[0].measured_gbps = 26; }),
      Lines{"'measured_gbps' of link gpu0-gpu1 is 26, but its links carry at most 1 x 25 GB/s"});
}

TEST(CheckTopology, Media) {
  EXPECT_EQ(said_about([](Topology& t) { t.links[0].duplex = Duplex::shared; }),
            Lines{"link gpu0-gpu1 is shared, but has no medium"});
  EXPECT_EQ(said_about([](Topology& t) { t.links[0].medium = "bus"; }),
            Lines{"link gpu0-gpu1 has a medium, but is not shared"});
  EXPECT_EQ(said_about([](Topology& t) {
              for (Link& link : t.links) {
                link.duplex = Duplex::shared;
                link.medium = "bus";
              }
              t.links[1].gbps = 10;
            }),
            Lines{"medium 'bus' has 10 GB/s here and 25 GB/s elsewhere"});
}

TEST(CheckTopology, Profiles) {
  EXPECT_EQ(
      said_about([](Topology& t) {
        t.profiles["mine"].call_overhead_s = -2;
        t.profiles["mine"].local_overhead_s = -1;
        t.profiles["mine"].links["link"] = {1.5, -1};
      }),
      (Lines{"'call_overhead_s' of profile 'mine' is -2, but must be 0 or more (in s, at most 1e4)",
             "'local_overhead_s' of profile 'mine' is -1, but must be 0 or more (in s, at most "
             "1e4)",
             "'efficiency' of link of profile 'mine' is 1.5, but must be above 0 and at most 1",
             "'overhead_s' of link of profile 'mine' is -1, but must be 0 or more (in s, at "
             "most 1e4)"}));
}

TEST(ExpandNames, RunsThroughBrackets) {
  std::string problem;
  EXPECT_EQ(expand_names("gpu0", 10, problem), Lines{"gpu0"});
  EXPECT_EQ(expand_names("gpu[0-2,5]", 10, problem), (Lines{"gpu0", "gpu1", "gpu2", "gpu5"}));
  EXPECT_EQ(expand_names("n[1-2]g[7-8]x", 10, problem),
            (Lines{"n1g7x", "n1g8x", "n2g7x", "n2g8x"}));
  EXPECT_EQ(expand_names("[3]", 10, problem), Lines{"3"});
  EXPECT_TRUE(problem.empty());
  EXPECT_EQ(expand_names("a[0-3][0-3]", 15, problem), std::nullopt);
  EXPECT_EQ(problem, "'a[0-3][0-3]' stands for more than 15 names");
}

TEST(Names, OfEnumerators) {
  EXPECT_EQ(to_string(NodeKind::pcie_switch), "pcie_switch");
  EXPECT_EQ(to_string(LinkClass::gpu_fabric), "gpu_fabric");
  EXPECT_EQ(to_string(Duplex::half), "half");
}

TEST(ProfileSet, IsSharedUntilItIsChanged) {
  const ProfileSet& built_in = built_in_profiles().profiles;
  Topology machine = generic_topology("ring", {{"n", 4}});
  const Topology copy = machine;
  EXPECT_EQ(&machine.profiles.find("nccl")->second, &copy.profiles.at("nccl"));
  const double before_s = built_in.at("nccl").call_overhead_s;
  machine.profiles["nccl"].call_overhead_s = before_s + 1;
  EXPECT_EQ(machine.profiles.find("nccl")->second.call_overhead_s, before_s + 1);
  EXPECT_EQ(copy.profiles.at("nccl").call_overhead_s, before_s);
  EXPECT_EQ(built_in.at("nccl").call_overhead_s, before_s);
  EXPECT_EQ(machine.profiles.size(), built_in.size());
}

TEST(ProfileSet, SharesWhatIsInUseUntilItIsChanged) {
  Topology machine = load_topology("dgx1-v100");
  const Topology copy = machine;
  for (const std::string spec : {"nccl", "nccl:ll", "ideal"}) {
    EXPECT_EQ(machine.shared_profile(spec), copy.shared_profile(spec));
    EXPECT_EQ(machine.shared_profile(spec)->name, spec);
  }
  EXPECT_NE(machine.shared_profile("nccl:ll"), machine.shared_profile("nccl"));
  const auto before = machine.shared_profile("nccl:ll");
  machine.profiles["nccl"].call_overhead_s += 1;
  EXPECT_DOUBLE_EQ(machine.profile("nccl:ll").call_overhead_s, before->call_overhead_s + 1);
  machine.profiles["nccl"].call_overhead_s += 1;
  EXPECT_DOUBLE_EQ(machine.profile("nccl:ll").call_overhead_s, before->call_overhead_s + 2);
  EXPECT_EQ(copy.shared_profile("nccl:ll"), before);
}

TEST(ProfileSet, OfGenericMachinesHasTheirStartUp) {
  for (const double startup_us : {0.0, 2.0, 3.0, 2.0}) {
    const Topology machine = generic_topology("ring", {{"n", 4}, {"startup_us", startup_us}});
    EXPECT_DOUBLE_EQ(machine.profiles.at("kernel").links.at("link").overhead_s, startup_us * 1e-6);
  }
}

}  // namespace
}  // namespace espalier

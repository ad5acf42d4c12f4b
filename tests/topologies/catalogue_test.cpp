// SPDX-License-Identifier: Apache-2.0
// What is known of the machines, checked against the files that describe them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/topologies/machine_fixture.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

using testing::Machine;
using testing::numbered;

class Catalogue : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Catalogue, ::testing::ValuesIn(catalogue_names()),
                         [](const auto& name) {
                           std::string plain = name.param;
                           for (char& c : plain) c = c == '.' || c == '-' ? '_' : c;
                           return plain;
                         });

TEST_P(Catalogue, IsSound) {
  const Topology topology = load_topology(GetParam());
  for (const Diagnostic& problem : check_topology(topology)) ADD_FAILURE() << render(problem);
  EXPECT_FALSE(topology.title.empty());
  EXPECT_FALSE(topology.sources.empty());
}

/// A route starts and ends where it should, goes through no GPU, and through adapters and fabrics
/// only between hosts.
void check_route(const Machine& machine, const Route& route, NodeId from, NodeId to) {
  const Topology& topology = machine.topology();
  const std::string name = topology.node(from).name;
  const std::string path = machine.path(name, &route);
  ASSERT_EQ(path.find("broken"), std::string::npos) << path;
  NodeId at = from;
  for (const Hop& hop : route.hops) {
    const Link& link = topology.link(hop.link);
    at = hop.forward ? link.b : link.a;
    if (at == to) break;
    const NodeKind kind = topology.node(at).kind;
    EXPECT_NE(kind, NodeKind::gpu) << path;
    if (kind == NodeKind::nic || kind == NodeKind::fabric) {
      EXPECT_EQ(route.kind, RouteKind::network) << path;
    }
    if (kind == NodeKind::nvswitch) {
      EXPECT_EQ(route.kind, RouteKind::gpu_fabric) << path;
    }
  }
  EXPECT_EQ(at, to) << path;
}

TEST_P(Catalogue, JoinsAllGpusWhateverTheNumberOfHosts) {
  for (const std::string& spec : {GetParam(), GetParam() + ":nodes=2"}) {
    const Machine machine(spec, "kernel");
    const std::vector<NodeId> gpus = machine.topology().gpus();
    for (const NodeId from : gpus) {
      for (const NodeId to : gpus) {
        const Route* route = machine.router().route(from, to);
        ASSERT_NE(route, nullptr) << spec << " " << from << " " << to;
        check_route(machine, *route, from, to);
        const Route* back = machine.router().route(to, from);
        EXPECT_EQ(route->kind, back->kind) << spec << " " << from << " " << to;
        EXPECT_EQ(route->hops.size(), back->hops.size()) << spec << " " << from << " " << to;
        EXPECT_EQ(route->start_up.s, back->start_up.s) << spec << " " << from << " " << to;
      }
    }
    const Placement placement = place_ranks(machine.router(), {});
    for (const int host : placement.host_of_rank) EXPECT_GE(host, 0) << spec;
  }
}

TEST_P(Catalogue, EveryProfileKnowsEveryLinkKind) {
  const Topology topology = load_topology(GetParam());
  // Those of the machine's own file, too.
  for (const auto& [name, profile] : topology.profiles) {
    if (name == "ideal" || name == "host") continue;  // which know no machine's links
    for (const Link& link : topology.links) {
      EXPECT_TRUE(profile.links.contains(link.kind)) << name << " " << link.kind;
    }
  }
  for (const auto& [kind, row] : topology.profile("ideal").links) {
    EXPECT_EQ(row.efficiency, 1) << kind;
    EXPECT_EQ(row.overhead_s, 0) << kind;
  }
  for (const auto& [name, built_in] : built_in_profiles().profiles) {
    const Profile& profile = topology.profile(name);
    ASSERT_TRUE(profile.links.contains("link")) << name;
    EXPECT_EQ(profile.links.at("link").efficiency, 1) << name;
    EXPECT_EQ(profile.links.at("link").overhead_s, 0) << name;
  }
}

// ------------------------------------------------------------------ the GPU fabrics

struct Fabric {
  std::string machine;
  int gpus;
  int bundles;          ///< links of the fabric, as the file counts them
  int links_per_gpu;    ///< single links
  double gbps_per_gpu;  ///< theory, one direction
};

class GpuFabric : public ::testing::TestWithParam<Fabric> {};

INSTANTIATE_TEST_SUITE_P(
    Machines, GpuFabric,
    ::testing::Values(Fabric{"dgx1-p100", 8, 16, 4, 80}, Fabric{"dgx1-v100", 8, 16, 6, 150},
                      Fabric{"p3.16xlarge", 8, 16, 6, 150}, Fabric{"p3dn.24xlarge", 8, 16, 6, 150},
                      Fabric{"cedar", 4, 6, 6, 150}, Fabric{"mist", 4, 2, 3, 75},
                      Fabric{"summit", 6, 6, 4, 100}, Fabric{"dgx2", 16, 17, 6, 150},
                      Fabric{"dgx-a100", 8, 8, 12, 300}, Fabric{"dgx-h100", 8, 8, 18, 450},
                      Fabric{"dgx-h200", 8, 8, 18, 450}, Fabric{"mi250", 16, 28, 7, 350},
                      Fabric{"mi300x", 8, 28, 7, 448}, Fabric{"gb200-nvl72", 72, 72, 18, 900}),
    [](const auto& fabric) {
      std::string plain = fabric.param.machine;
      for (char& c : plain) c = c == '.' || c == '-' ? '_' : c;
      return plain;
    });

bool joins_gpu_side(const Topology& topology, const Link& link) {
  for (const NodeId end : {link.a, link.b}) {
    const NodeKind kind = topology.node(end).kind;
    if (kind != NodeKind::gpu && kind != NodeKind::nvswitch) return false;
  }
  return link.link_class == LinkClass::gpu_fabric;
}

TEST_P(GpuFabric, HasTheLinksOfTheMachine) {
  const Fabric& known = GetParam();
  const Topology topology = load_topology(known.machine);
  std::map<NodeId, int> links;
  std::map<NodeId, double> gbps;
  int bundles = 0;
  for (const Link& link : topology.links) {
    if (!joins_gpu_side(topology, link)) continue;
    ++bundles;
    for (const NodeId end : {link.a, link.b}) {
      links[end] += link.count;
      gbps[end] += link.count * link.gbps;
    }
  }
  EXPECT_EQ(bundles, known.bundles);
  const std::vector<NodeId> gpus = topology.gpus();
  EXPECT_EQ(static_cast<int>(gpus.size()), known.gpus);
  for (const NodeId gpu : gpus) {
    EXPECT_EQ(links[gpu], known.links_per_gpu) << gpu;
    EXPECT_DOUBLE_EQ(gbps[gpu], known.gbps_per_gpu) << gpu;
  }
}

/// Single links between GPUs, as {lower, higher}: count, by GPU number.
std::map<std::pair<int, int>, int> gpu_links(const std::string& spec) {
  const Topology topology = load_topology(spec);
  const std::vector<NodeId> gpus = topology.gpus();
  std::map<NodeId, int> number;
  for (std::size_t i = 0; i < gpus.size(); ++i) number[gpus[i]] = static_cast<int>(i);
  std::map<std::pair<int, int>, int> links;
  for (const Link& link : topology.links) {
    if (!number.contains(link.a) || !number.contains(link.b)) continue;
    links[std::minmax(number[link.a], number[link.b])] += link.count;
  }
  return links;
}

TEST(GpuFabricDgx1, IsTwoRingsOnV100) {
  std::map<std::pair<int, int>, int> expected;
  const auto add_ring = [&](const std::vector<int>& ring, int count) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      expected[std::minmax(ring[i], ring[(i + 1) % ring.size()])] += count;
    }
  };
  add_ring({0, 3, 2, 1, 5, 6, 7, 4}, 2);
  add_ring({0, 1, 3, 7, 5, 4, 6, 2}, 1);
  EXPECT_EQ(gpu_links("dgx1-v100"), expected);
  EXPECT_EQ(gpu_links("p3.16xlarge"), expected);
  EXPECT_EQ(gpu_links("p3dn.24xlarge"), expected);
  std::erase_if(expected, [](const auto& link) { return link.first.second > 3; });
  EXPECT_EQ(gpu_links("p3.8xlarge"), expected);  // the first quad: three double, three single
  int links = 0;
  for (const auto& [pair, count] : expected) links += count;
  EXPECT_EQ(links, 9);
}

TEST(GpuFabricDgx1, IsTwoQuadsAndFourCrossLinksOnP100) {
  std::map<std::pair<int, int>, int> expected;
  for (int i = 0; i < 4; ++i) {
    expected[{i, i + 4}] = 1;
    for (int j = i + 1; j < 4; ++j) expected[{i, j}] = expected[{i + 4, j + 4}] = 1;
  }
  EXPECT_EQ(gpu_links("dgx1-p100"), expected);
}

TEST(GpuFabricAmd, Mi300xIsCompleteAndMi250HasThreeSizesOfBundle) {
  EXPECT_EQ(gpu_links("mi300x").size(), 8U * 7 / 2);
  std::map<int, int> sizes;
  for (const auto& [pair, count] : gpu_links("mi250")) ++sizes[count];
  EXPECT_EQ(sizes, (std::map<int, int>{{4, 8}, {2, 4}, {1, 16}}));
}

TEST(GpuFabricDgx2, HasTheBisectionOfItsTrunk) {
  const Machine machine("dgx2");
  const Route* across = machine.route("gpu0", "gpu15");
  EXPECT_EQ(machine.path("gpu0", across), "gpu0 nvswitch0 nvswitch1 gpu15");
  EXPECT_DOUBLE_EQ(machine.router().capacity_gbps(across->hops[1].link), 1200);
}

// ------------------------------------------------------------------ PCIe trees and clusters

TEST(PcieTreeP2, LoadsLinksAsThePaperCounts) {
  // Reduce to every root in turn, each with its share of the data, along a natural tree: pairs in a
  // card, cards of a half, halves. Per direction a link then carries (spanning tree polytope
  // paper): GPU 15/16, card uplink 14/16, central link 8/16 of the gradient; with 8 GPUs 7/8 and
  // 6/8.
  for (const int gpus : {8, 16}) {
    const Machine machine("p2." + std::to_string(gpus) + "xlarge");
    std::map<std::pair<LinkId, bool>, int> load;
    for (int root = 0; root < gpus; ++root) {
      // Rank i's parent clears, from the lowest level up, the part in which it differs from the
      // root.
      for (int i = 0; i < gpus; ++i) {
        if (i == root) continue;
        int parent = i;
        for (const int level : {1, 2, 4, 8}) {
          const int differs = (i ^ root) & level;
          if (differs != 0) {
            parent = i ^ level;
            break;
          }
        }
        const Route* route = machine.route(numbered("gpu", i), numbered("gpu", parent));
        ASSERT_NE(route, nullptr);
        for (const Hop& hop : route->hops) ++load[{hop.link, hop.forward}];
      }
    }
    std::map<std::string, std::set<int>> seen;
    for (const auto& [hop, count] : load) {
      const Link& link = machine.topology().link(hop.first);
      const std::string& a = machine.topology().node(link.a).name;
      seen[a.substr(0, 3)].insert(count);
    }
    EXPECT_EQ(seen["gpu"], std::set<int>{gpus - 1});
    EXPECT_EQ(seen["car"], std::set<int>{gpus - 2});
    EXPECT_EQ(seen["cen"], gpus == 16 ? std::set<int>{8} : std::set<int>{});
  }
}

TEST(Cluster, HasTheGpusOfThePapers) {
  EXPECT_EQ(load_topology("baidu40").gpus().size(), 40U);
  EXPECT_EQ(load_topology("kesch:nodes=12").gpus().size(), 192U);
  EXPECT_EQ(load_topology("mist:nodes=4").gpus().size(), 16U);
  EXPECT_EQ(load_topology("gb200-nvl72").gpus().size(), 72U);
  EXPECT_THROW(load_topology("kesch:nodes=13"), Error);
}

}  // namespace
}  // namespace espalier

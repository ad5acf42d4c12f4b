// SPDX-License-Identifier: Apache-2.0
#include "topologies/load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/file.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

std::string load_error(const std::string& spec) {
  return error_of([&] { load_topology(spec); }, ErrorKind::usage);
}

/// "gpu0-gpu1 nvlink2 2x25" of every link, in order.
std::vector<std::string> link_list(const Topology& topology) {
  std::vector<std::string> list;
  for (const Link& link : topology.links) {
    const auto name = [&](NodeId id) { return topology.node(id).name; };
    list.push_back(name(link.a) + "-" + name(link.b) + " " + link.kind);
  }
  return list;
}

std::vector<std::string> node_list(const Topology& topology) {
  std::vector<std::string> list;
  for (const Node& node : topology.nodes) list.push_back(node.name);
  return list;
}

using Names = std::vector<std::string>;

constexpr const char* kSmall = R"(
schema: espalier.topology/1
name: small
title: "Two GPUs and a host"
sources: [a paper, a dump]
peer_access: fabric
gpus_forward: true
link_kinds:
  mylink: {class: gpu_fabric}
models:
  big: {memory_gbps: 900, reduce_gbps: 300, peer_limit: 8, copy_engines: 6}
nodes:
  - {name: "gpu[0-1]", kind: gpu, model: big, numa: 1, copy_engines: 2}
  - {name: cpu0, kind: cpu, memory_gbps: 60}
  - {name: nic0, kind: nic}
  - {name: wire, kind: fabric}
links:
  - {a: gpu0, b: gpu1, kind: mylink, count: 2, gbps: 25, latency_us: 0.5, measured_gbps: 48}
  - {a: "gpu[0,1]", b: cpu0, kind: pcie3x16, gbps: 12, duplex: half}
  - {a: nic0, b: cpu0, kind: pcie3x16, gbps: 12, duplex: shared, medium: bus}
  - {a: nic0, b: wire, kind: ib_edr, gbps: 12.5}
cluster: {nodes: 1, max_nodes: 3, shared: [wire]}
profiles:
  kernel:
    {call_overhead_us: 9, local_overhead_us: 7, links: {mylink: {efficiency: 0.5, overhead_us: 2}}}
  mine: {title: My own, uses_measured: true, reduction: separate}
)";

TEST(ParseTopology, ReadsEveryKey) {
  const Topology topology = parse_topology(kSmall, "small.yaml");
  EXPECT_EQ(topology.name, "small");
  EXPECT_EQ(topology.title, "Two GPUs and a host");
  EXPECT_EQ(topology.sources, (Names{"a paper", "a dump"}));
  EXPECT_EQ(topology.peer_access, Topology::PeerAccess::fabric);
  EXPECT_TRUE(topology.gpus_forward);
  EXPECT_EQ(topology.hosts, 1);
  EXPECT_EQ(node_list(topology), (Names{"gpu0", "gpu1", "cpu0", "nic0", "wire"}));
  EXPECT_EQ(topology.gpus(), (std::vector<NodeId>{0, 1}));
  EXPECT_EQ(topology.find("nic0"), 3);
  EXPECT_EQ(topology.find("nic1"), std::nullopt);

  const Node& gpu = topology.nodes[1];
  EXPECT_EQ(gpu.kind, NodeKind::gpu);
  EXPECT_EQ(gpu.model, "big");
  EXPECT_EQ(gpu.numa, 1);
  EXPECT_EQ(gpu.memory_gbps, 900);
  EXPECT_EQ(gpu.reduce_gbps, 300);
  EXPECT_EQ(gpu.peer_limit, 8);
  EXPECT_EQ(gpu.copy_engines, 2);  // the node's own figure before the model's
  EXPECT_EQ(gpu.host, 0);
  EXPECT_EQ(topology.nodes[2].numa, -1);
  EXPECT_EQ(topology.nodes[4].host, -1);

  ASSERT_EQ(link_list(topology),
            (Names{"gpu0-gpu1 mylink", "gpu0-cpu0 pcie3x16", "gpu1-cpu0 pcie3x16",
                   "nic0-cpu0 pcie3x16", "nic0-wire ib_edr"}));
  const Link& first = topology.links[0];
  EXPECT_EQ(first.link_class, LinkClass::gpu_fabric);
  EXPECT_EQ(first.count, 2);
  EXPECT_EQ(first.gbps, 25);
  EXPECT_DOUBLE_EQ(first.latency_s, 0.5e-6);
  EXPECT_EQ(first.measured_gbps, 48);
  EXPECT_EQ(first.duplex, Duplex::full);
  EXPECT_EQ(topology.links[1].duplex, Duplex::half);
  EXPECT_EQ(topology.links[1].link_class, LinkClass::host);
  EXPECT_EQ(topology.links[3].duplex, Duplex::shared);
  EXPECT_EQ(topology.links[3].medium, "bus");
  EXPECT_EQ(topology.links[4].link_class, LinkClass::network);
}

TEST(ParseTopology, MergesProfiles) {
  const Topology topology = parse_topology(kSmall, "small.yaml");
  const auto& built_in = built_in_profiles().profiles;
  const Profile& kernel = topology.profile("kernel");
  EXPECT_DOUBLE_EQ(kernel.call_overhead_s, 9e-6);
  EXPECT_DOUBLE_EQ(kernel.local_overhead_s, 7e-6);
  EXPECT_EQ(kernel.staging_overhead_s, built_in.at("kernel").staging_overhead_s);
  EXPECT_EQ(kernel.links.at("mylink").efficiency, 0.5);
  EXPECT_DOUBLE_EQ(kernel.links.at("mylink").overhead_s, 2e-6);
  EXPECT_EQ(kernel.links.at("nvlink2").efficiency,
            built_in.at("kernel").links.at("nvlink2").efficiency);
  const Profile& mine = topology.profile("mine");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.title, "My own");
  EXPECT_TRUE(mine.uses_measured);
  EXPECT_EQ(mine.reduction, ReductionMode::separate);
  EXPECT_TRUE(mine.links.empty());
  EXPECT_EQ(error_of([&] { topology.profile("kernal"); }, ErrorKind::usage),
            "error: small has no profile 'kernal'\n  help: did you mean 'kernel'?");
}

TEST(BuiltInProfiles, LeaveLinksOfGenericMachinesAlone) {
  const ProfileTable& table = built_in_profiles();
  EXPECT_EQ(table.link_kinds.at("link").link_class, LinkClass::gpu_fabric);
  for (const char* name : {"ideal", "kernel", "copy_engine"}) {
    const Profile& profile = table.profiles.at(name);
    EXPECT_FALSE(profile.title.empty());
    EXPECT_EQ(profile.links.at("link").efficiency, 1);
    EXPECT_EQ(profile.links.at("link").overhead_s, 0);
  }
  const Profile& ideal = table.profiles.at("ideal");
  EXPECT_EQ(ideal.reduction, ReductionMode::free);
  EXPECT_EQ(ideal.local_overhead_s + ideal.reduce_overhead_s + ideal.staging_overhead_s, 0);
}

TEST(Cluster, RepeatsHosts) {
  const Topology topology = parse_topology(kSmall, "small.yaml", 2);
  EXPECT_EQ(topology.name, "small:nodes=2");
  EXPECT_EQ(topology.hosts, 2);
  EXPECT_EQ(node_list(topology), (Names{"n0.gpu0", "n0.gpu1", "n0.cpu0", "n0.nic0", "n1.gpu0",
                                        "n1.gpu1", "n1.cpu0", "n1.nic0", "wire"}));
  EXPECT_EQ(topology.nodes[3].host, 0);
  EXPECT_EQ(topology.nodes[4].host, 1);
  EXPECT_EQ(topology.nodes[8].host, -1);
  EXPECT_EQ(link_list(topology),
            (Names{"n0.gpu0-n0.gpu1 mylink", "n0.gpu0-n0.cpu0 pcie3x16", "n0.gpu1-n0.cpu0 pcie3x16",
                   "n0.nic0-n0.cpu0 pcie3x16", "n0.nic0-wire ib_edr", "n1.gpu0-n1.gpu1 mylink",
                   "n1.gpu0-n1.cpu0 pcie3x16", "n1.gpu1-n1.cpu0 pcie3x16",
                   "n1.nic0-n1.cpu0 pcie3x16", "n1.nic0-wire ib_edr"}));
  // A bus inside a host is each host's own.
  EXPECT_EQ(topology.links[3].medium, "n0.bus");
  EXPECT_EQ(topology.links[8].medium, "n1.bus");
  EXPECT_TRUE(check_topology(topology).empty());
}

TEST(Cluster, SharesLinksAndMediaOfSharedNodes) {
  const Topology topology = parse_topology(R"(
schema: espalier.topology/1
name: hub
nodes:
  - {name: hub, kind: fabric}
  - {name: core, kind: fabric}
  - {name: gpu0, kind: gpu}
links:
  - {a: gpu0, b: hub, kind: ethernet, gbps: 1.25, duplex: shared, medium: cable}
  - {a: hub, b: core, kind: ethernet, gbps: 1.25}
cluster: {nodes: 3, shared: [hub, core]}
)",
                                           "hub.yaml");
  EXPECT_EQ(node_list(topology), (Names{"n0.gpu0", "n1.gpu0", "n2.gpu0", "hub", "core"}));
  EXPECT_EQ(link_list(topology), (Names{"n0.gpu0-hub ethernet", "n1.gpu0-hub ethernet",
                                        "n2.gpu0-hub ethernet", "hub-core ethernet"}));
  EXPECT_EQ(topology.links[0].medium, "cable");
  EXPECT_EQ(topology.links[2].medium, "cable");
}

TEST(Cluster, ThousandGpusInTenLines) {
  const std::string yaml = R"(schema: espalier.topology/1
name: thousand
nodes:
  - {name: "gpu[0-7]", kind: gpu}
  - {name: nvswitch, kind: nvswitch}
  - {name: fabric, kind: fabric}
links:
  - {a: "gpu[0-7]", b: nvswitch, kind: nvlink3, count: 12, gbps: 25}
  - {a: "gpu[0-7]", b: fabric, kind: ib_hdr, gbps: 25, latency_us: 1.3}
cluster: {nodes: 128, shared: [fabric]}
)";
  EXPECT_EQ(std::count(yaml.begin(), yaml.end(), '\n'), 10);
  const Topology topology = parse_topology(yaml, "thousand.yaml");
  EXPECT_EQ(topology.gpus().size(), 1024u);
  EXPECT_EQ(topology.links.size(), 128u * 16u);
}

TEST(Cluster, KnowsItsLimits) {
  EXPECT_EQ(error_of([] { parse_topology(kSmall, "small.yaml", 4); }, ErrorKind::usage),
            "error: 4 nodes requested, but 'small' has at most 3\n  help: request fewer nodes");
}

/// Files of one test, in a folder of their own.
class ComposeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("espalier-compose-test-" + std::to_string(::getpid()));
    fs::create_directory(folder_);
    write("small.yaml", kSmall);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    write_file(path, text);
    return path;
  }

  fs::path folder_;
};

TEST_F(ComposeTest, ChangesABase) {
  const std::string path = write("faster.yaml", R"(
schema: espalier.topology/1
name: faster
sources: estimate
compose: {base: small.yaml, nodes: 2}
peer_access: socket
links_of_kind:
  mylink: {gbps: 50, latency_us: 0.25}
  ib_edr: {measured_gbps: 11}
link_kinds:
  pcie3x16: {class: network}
profiles:
  kernel: {links: {mylink: {overhead_us: 3}}}
)");
  const Topology topology = load_topology(path);
  EXPECT_EQ(topology.name, "faster");
  EXPECT_EQ(topology.title, "Two GPUs and a host");
  EXPECT_EQ(topology.sources, (Names{"a paper", "a dump", "estimate"}));
  EXPECT_EQ(topology.hosts, 2);
  EXPECT_EQ(topology.peer_access, Topology::PeerAccess::socket);
  EXPECT_TRUE(topology.gpus_forward);
  EXPECT_EQ(topology.links[0].gbps, 50);
  EXPECT_DOUBLE_EQ(topology.links[0].latency_s, 0.25e-6);
  EXPECT_EQ(topology.links[0].measured_gbps, 0);  // of another link
  EXPECT_EQ(topology.links[0].count, 2);
  EXPECT_EQ(topology.links[1].link_class, LinkClass::network);
  EXPECT_EQ(topology.links[4].gbps, 12.5);
  EXPECT_EQ(topology.links[4].measured_gbps, 11);
  EXPECT_EQ(topology.profile("kernel").links.at("mylink").efficiency, 0.5);
  EXPECT_DOUBLE_EQ(topology.profile("kernel").links.at("mylink").overhead_s, 3e-6);
  EXPECT_EQ(load_topology(path + ":nodes=3").hosts, 3);
}

TEST_F(ComposeTest, MayRaiseTheLimit) {
  const std::string path = write("more.yaml",
                                 "schema: espalier.topology/1\nname: more\n"
                                 "compose: {base: ./small.yaml, nodes: 30, max_nodes: 40}\n");
  EXPECT_EQ(load_topology(path).hosts, 30);
  EXPECT_EQ(load_topology(path + ":nodes=40").hosts, 40);
}

TEST_F(ComposeTest, TakesBasesFromTheCatalogue) {
  const std::string path = write("many.yaml",
                                 "schema: espalier.topology/1\nname: many\n"
                                 "compose: {base: dgx-a100, nodes: 128}\n");
  EXPECT_EQ(load_topology(path).gpus().size(), 1024u);
}

TEST_F(ComposeTest, EndsAtSixteenMachinesBelowOne) {
  const std::string head = "schema: espalier.topology/1\nname: x\ncompose: {base: ";
  write("m0.yaml", head + "dgx1-v100}\n");
  for (int i = 1; i <= 16; ++i) {
    write(fmt::format("m{}.yaml", i), fmt::format("{}m{}.yaml}}\n", head, i - 1));
  }
  EXPECT_EQ(load_topology(write("a.yaml", head + "m14.yaml}\n")).gpus().size(), 8u);
  const std::string deep =
      error_of([&] { load_topology(write("b.yaml", head + "m16.yaml}\n")); }, ErrorKind::input);
  EXPECT_TRUE(deep.ends_with(
      ": error: machines are composed of one another, each of the next, more than 16 deep"))
      << deep;
}

TEST_F(ComposeTest, FindsCyclesThroughFiles) {
  const std::string head = "schema: espalier.topology/1\nname: x\ncompose: {base: ";
  const std::string a = write("a.yaml", head + "b.yaml}\n");
  const std::string b = write("b.yaml", head + "a.yaml}\n");
  EXPECT_EQ(
      error_of([&] { load_topology(a); }, ErrorKind::input),
      b + ":3:17: error: a machine cannot be composed of itself: " + a + " -> " + b + " -> " + a);
}

TEST_F(ComposeTest, ReportsProblemsOfBaseAndFileTogether) {
  write("broken.yaml", "schema: espalier.topology/1\nname: broken\nnodes: []\n");
  const std::string path = write("on_top.yaml",
                                 "schema: espalier.topology/1\nname: top\n"
                                 "compose: {base: broken.yaml}\npeer_acces: all\n");
  const std::string said = error_of([&] { load_topology(path); }, ErrorKind::input);
  EXPECT_NE(said.find("broken.yaml:1:1: error: the machine has no GPU"), std::string::npos) << said;
  EXPECT_NE(said.find("on_top.yaml:4:1: error: unknown key 'peer_acces'"), std::string::npos)
      << said;
}

TEST(LoadTopology, TakesCatalogueNames) {
  const Topology topology = load_topology("dgx1-v100");
  EXPECT_EQ(topology.name, "dgx1-v100");
  EXPECT_EQ(topology.gpus().size(), 8u);
  const Topology four = load_topology("mist:nodes=4");
  EXPECT_EQ(four.name, "mist:nodes=4");
  EXPECT_EQ(four.hosts, 4);
  EXPECT_EQ(four.gpus().size(), 16u);
}

TEST(LoadTopology, DiagnosesNamesAndParameters) {
  EXPECT_EQ(load_error("dgx1-v10"),
            "error: unknown topology 'dgx1-v10'\n  help: did you mean 'dgx1-v100'?");
  EXPECT_EQ(load_error("rign:n=4"), "error: unknown topology 'rign'\n  help: did you mean 'ring'?");
  EXPECT_EQ(load_error("profiles").substr(0, 34), "error: unknown topology 'profiles'");
  EXPECT_EQ(load_error("mist:node=4,nodes=0"),
            "error: 'mist' has no parameter 'node'\n  help: did you mean 'nodes'?\n"
            "error: 'nodes' is 0, but must be a whole number of at least 1");
  EXPECT_EQ(load_error("mist:nodes=1e300"),
            "error: 'nodes' is 1e+300, but must be a whole number of at least 1");
  EXPECT_EQ(load_error("mist:nodes=55"),
            "error: 55 nodes requested, but 'mist' has at most 54\n  help: request fewer nodes");
  EXPECT_EQ(load_error("ring:n=4,n=5,6,gbps=fast,=3"),
            "error: parameter 'n' is given twice\n"
            "error: '6' is not a parameter\n  help: write NAME:KEY=VALUE,KEY=VALUE\n"
            "error: parameter 'gbps' must be a number, not 'fast'\n"
            "error: '=3' is not a parameter\n  help: write NAME:KEY=VALUE,KEY=VALUE");
  EXPECT_EQ(error_of([] { load_topology("./nowhere.yaml:nodes=2"); }, ErrorKind::input),
            "error: can't read './nowhere.yaml': No such file or directory");
}

TEST(LoadTopology, ServesSeveralThreads) {
  std::vector<std::jthread> threads;
  std::vector<std::size_t> gpus(8, 0);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    threads.emplace_back([&gpus, i] {
      gpus[i] = load_topology(i % 2 == 0 ? "kesch:nodes=2" : "dgx2").gpus().size();
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < gpus.size(); ++i) EXPECT_EQ(gpus[i], i % 2 == 0 ? 32u : 16u);
}

TEST(CatalogueList, HoldsNamesTitlesAndText) {
  ASSERT_FALSE(catalogue().empty());
  std::string last;
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_LT(last, entry.name);
    last = entry.name;
    EXPECT_FALSE(entry.title.empty()) << entry.name;
    // The file is called after the machine.
    EXPECT_EQ(parse_topology(entry.yaml, entry.name).name, entry.name);
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// print_topology: what it writes, parse_topology reads back.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/error_of.h"
#include "topologies/load.h"

namespace espalier {
namespace {

auto figures(const Node& node) {
  return std::tie(node.name, node.kind, node.model, node.numa, node.memory_gbps, node.reduce_gbps,
                  node.access_gbps, node.exchange, node.memory, node.peer_limit, node.copy_engines,
                  node.speed);
}

auto figures(const MemoryRates& rates) {
  return std::tie(rates.gbps, rates.reduce_gbps, rates.exchange);
}

void expect_close(double got, double wanted) { EXPECT_NEAR(got, wanted, 1e-5 * wanted); }

void expect_same(const Topology& got, const Topology& wanted) {
  EXPECT_EQ(got.name, wanted.name);
  EXPECT_EQ(got.title, wanted.title);
  EXPECT_EQ(got.sources, wanted.sources);
  EXPECT_EQ(got.peer_access, wanted.peer_access);
  EXPECT_EQ(got.gpus_forward, wanted.gpus_forward);
  ASSERT_EQ(got.nodes.size(), wanted.nodes.size());
  for (std::size_t i = 0; i < got.nodes.size(); ++i) {
    EXPECT_EQ(figures(got.nodes[i]), figures(wanted.nodes[i])) << got.nodes[i].name;
  }
  ASSERT_EQ(got.links.size(), wanted.links.size());
  for (std::size_t i = 0; i < got.links.size(); ++i) {
    const Link& a = got.links[i];
    const Link& b = wanted.links[i];
    EXPECT_EQ(std::tie(a.a, a.b, a.kind, a.link_class, a.count, a.duplex, a.medium),
              std::tie(b.a, b.b, b.kind, b.link_class, b.count, b.duplex, b.medium));
    expect_close(a.gbps, b.gbps);
    expect_close(a.measured_gbps, b.measured_gbps);
    expect_close(a.latency_s, b.latency_s);
  }
  ASSERT_EQ(got.memories.size(), wanted.memories.size());
  for (const auto& [name, memory] : wanted.memories) {
    const SharedMemory& other = got.memories.at(name);
    EXPECT_EQ(figures(other), figures(memory));
    ASSERT_EQ(other.working_sets.size(), memory.working_sets.size());
    for (std::size_t i = 0; i < memory.working_sets.size(); ++i) {
      EXPECT_EQ(other.working_sets[i].bytes, memory.working_sets[i].bytes);
      EXPECT_EQ(figures(other.working_sets[i].all), figures(memory.working_sets[i].all));
      EXPECT_EQ(figures(other.working_sets[i].one), figures(memory.working_sets[i].one));
    }
  }
  ASSERT_EQ(got.profiles.size(), wanted.profiles.size());
  for (const auto& [name, profile] : wanted.profiles) {
    const Profile& other = got.profiles.at(name);
    EXPECT_EQ(std::tie(other.title, other.uses_measured, other.models_memory, other.reduction,
                       other.gets_wait),
              std::tie(profile.title, profile.uses_measured, profile.models_memory,
                       profile.reduction, profile.gets_wait));
    expect_close(other.call_overhead_s, profile.call_overhead_s);
    expect_close(other.local_overhead_s, profile.local_overhead_s);
    expect_close(other.reduce_overhead_s, profile.reduce_overhead_s);
    expect_close(other.staging_overhead_s, profile.staging_overhead_s);
    ASSERT_EQ(other.links.size(), profile.links.size());
    for (const auto& [kind, link] : profile.links) {
      expect_close(other.links.at(kind).efficiency, link.efficiency);
      expect_close(other.links.at(kind).overhead_s, link.overhead_s);
      EXPECT_EQ(other.links.at(kind).longer, link.longer);
    }
  }
}

TEST(PrintTopology, ReadsBackEveryMachineOfTheCatalogue) {
  for (const CatalogueEntry& entry : catalogue()) {
    SCOPED_TRACE(entry.name);
    const Topology machine = load_topology(entry.name);
    expect_same(parse_topology(print_topology(machine), "printed.yaml"), machine);
  }
}

TEST(PrintTopology, KeepsMemoriesProfilesAndNamesThatNeedQuotes) {
  const Topology machine = parse_topology(R"(
schema: espalier.topology/1
name: odd
title: 'says "no: {yes}" \ and # more'
sources: ["a, b", "- c"]
peer_access: socket
gpus_forward: true
link_kinds: {"my kind": {class: gpu_fabric}, pcie3x16: {class: network}}
memories:
  "the ram": {gbps: 40, reduce_gbps: 9}
  rom: {gbps: 1.25, exchange_gbps: 1}
  ram:
    gbps: 40
    exchange_gbps: {fresh: 11, passed_on: 2}
    working_sets:
      - {mib: 0.25, all: {gbps: 200, reduce_gbps: 90}, one: {gbps: 60, exchange_gbps: 3}}
      - {mib: 4, all: {gbps: 99, exchange_gbps: {fresh: 20, unchanged: 30}}}
nodes:
  - {name: "gpu[0-1]", kind: gpu, numa: 1, access_gbps: 31, memory: "the ram", speed: 0.75,
     exchange_gbps: {fresh: 5, unchanged: 9, passed_on: 0.5}}
  - {name: cpu0, kind: cpu, memory: rom}
links:
  - {a: gpu0, b: gpu1, kind: "my kind", gbps: 3, duplex: shared, medium: "a bus"}
  - {a: gpu0, b: cpu0, kind: pcie3x16, gbps: 12, duplex: half}
profiles:
  mine:
    reduction: separate
    gets_wait: false
    links: {"my kind": {efficiency: 0.25, overhead_us: 1.5,
                         longer: [{above_kib: 4, overhead_us: 2},
                                  {above_kib: 0.5e3, overhead_us: 9}]}}
  kernel: {call_overhead_us: 8.5, staging_overhead_us: 0.125, models_memory: false}
)",
                                          "odd.yaml");
  EXPECT_EQ(machine.nodes[1].access_gbps, 31);
  EXPECT_EQ(machine.nodes[1].memory, "the ram");
  EXPECT_EQ(machine.nodes[1].speed, 0.75);
  EXPECT_EQ(machine.nodes[2].speed, 1);
  EXPECT_EQ(machine.memories.at("the ram").reduce_gbps, 9);
  EXPECT_EQ(machine.memories.at("rom").reduce_gbps, 0);
  expect_same(parse_topology(print_topology(machine), "printed.yaml"), machine);
}

TEST(PrintTopology, GivesMachinesNamesThatFilesMayHave) {
  Topology machine = load_topology("ring:n=3");
  const auto name_of = [&](const char* name) {
    machine.name = name;
    return parse_topology(print_topology(machine), "printed.yaml").name;
  };
  EXPECT_EQ(name_of("ring:n=3"), "ring-n=3");
  EXPECT_EQ(name_of("../a folder/topo 2.txt:without=gpu0"), "topo-2.txt-without=gpu0");
  EXPECT_EQ(name_of("folder/"), "machine");
}

TEST(PrintTopology, ReadsBackClusters) {
  for (const char* name : {"dgx-a100:nodes=2", "mist:nodes=3", "kesch:nodes=2"}) {
    SCOPED_TRACE(name);
    Topology machine = load_topology(name);
    ASSERT_GT(machine.hosts, 1);
    machine.name = "cluster";
    expect_same(parse_topology(print_topology(machine), "printed.yaml"), machine);
  }
}

TEST(PrintTopology, RefusesHostsThatAreNotAlike) {
  const Topology machine = load_topology("dgx-a100:nodes=2,n1.gpu0.speed=x0.5");
  EXPECT_EQ(error_of([&] { print_topology(machine); }, ErrorKind::unsupported),
            "error: the 2 hosts of " + machine.name +
                " are not alike, and YAML lists the nodes and links of one\n"
                "  help: write one host, and repeat it with 'cluster' in the file");
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Changes of a machine that follow its name: "dgx1-v100:without=gpu0-gpu3,nvlink2.gbps=x2".
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/file.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"
#include "topologies/load.h"

namespace espalier {
namespace {

std::string refusal(const std::string& spec) {
  return error_of([&] { load_topology(spec); }, ErrorKind::usage);
}

const Link* link_between(const Topology& machine, const char* a, const char* b) {
  for (const Link& link : machine.links) {
    const std::string& end_a = machine.node(link.a).name;
    const std::string& end_b = machine.node(link.b).name;
    if ((end_a == a && end_b == b) || (end_a == b && end_b == a)) return &link;
  }
  return nullptr;
}

Node node(const Topology& machine, const char* name) {
  return machine.node(machine.find(name).value());
}

TEST(WhatIf, LinksAreLost) {
  const Topology machine = load_topology("dgx1-v100:without=gpu0-gpu3,without=gpu2-gpu1");
  const Topology whole = load_topology("dgx1-v100");
  EXPECT_EQ(machine.name, "dgx1-v100:without=gpu0-gpu3,without=gpu2-gpu1");
  EXPECT_EQ(machine.links.size(), whole.links.size() - 2);
  EXPECT_EQ(link_between(machine, "gpu0", "gpu3"), nullptr);
  EXPECT_EQ(link_between(machine, "gpu1", "gpu2"), nullptr);
  EXPECT_NE(link_between(machine, "gpu0", "gpu1"), nullptr);
  EXPECT_EQ(load_topology("mist:without=xbus").links.size(),
            load_topology("mist").links.size() - 1);
}

TEST(WhatIf, FiguresOfLinksKeepWhatWasMeasuredInProportion) {
  // gpu0 and gpu3 have two links of 25 GB/s, of which copy engines reach 47.9.
  const Link before = *link_between(load_topology("dgx1-v100"), "gpu0", "gpu3");
  ASSERT_EQ(before.count, 2);
  ASSERT_EQ(before.gbps, 25);
  ASSERT_NEAR(before.measured_gbps, 47.9, 1);
  const auto changed = [&](const std::string& change) {
    return *link_between(load_topology("dgx1-v100:" + change), "gpu0", "gpu3");
  };
  EXPECT_EQ(changed("nvlink2.gbps=x2").gbps, 50);
  EXPECT_DOUBLE_EQ(changed("nvlink2.gbps=x2").measured_gbps, 2 * before.measured_gbps);
  EXPECT_EQ(changed("gpu3-gpu0.gbps=5").gbps, 5);
  EXPECT_DOUBLE_EQ(changed("gpu3-gpu0.gbps=5").measured_gbps, before.measured_gbps / 5);
  EXPECT_EQ(changed("gpu0-gpu1.gbps=5").gbps, 25);
  EXPECT_EQ(changed("gpu0-gpu3.count=1").count, 1);
  EXPECT_DOUBLE_EQ(changed("gpu0-gpu3.count=x0.5").measured_gbps, before.measured_gbps / 2);
  EXPECT_DOUBLE_EQ(changed("nvlink2.latency_us=4").latency_s, 4e-6);
  EXPECT_EQ(changed("nvlink2.latency_us=0").latency_s, 0);
}

TEST(WhatIf, ASlowerGpuIsSlowerInAllItDoesItself) {
  const Node before = node(load_topology("dgx1-v100"), "gpu5");
  const Topology machine = load_topology("dgx1-v100:gpu5.speed=x0.5");
  const Node slow = node(machine, "gpu5");
  EXPECT_EQ(slow.speed, 0.5);
  EXPECT_EQ(slow.memory_gbps, before.memory_gbps / 2);
  EXPECT_EQ(slow.reduce_gbps, before.reduce_gbps / 2);
  EXPECT_EQ(node(machine, "gpu4").speed, 1);
  const Topology model = load_topology("dgx1-v100:v100-sxm2.reduce_gbps=x2,gpu[0-1].memory_gbps=9");
  EXPECT_EQ(node(model, "gpu5").reduce_gbps, 2 * before.reduce_gbps);
  EXPECT_EQ(node(model, "gpu1").memory_gbps, 9);
  EXPECT_EQ(node(model, "gpu2").memory_gbps, before.memory_gbps);
}

TEST(WhatIf, FiguresThatCachesHaveOfTheirOwnAreNotChangedAlone) {
  const std::string file = temp_file("cached.yaml");
  write_file(file, R"(
schema: espalier.topology/1
name: cached
memories: {ram: {gbps: 10, working_sets: [{mib: 1, all: {gbps: 50}, one: {gbps: 20}}]}}
nodes: [{name: gpu0, kind: gpu, memory: ram, access_gbps: 5, peer_limit: 2}]
)");
  EXPECT_EQ(refusal(file + ":gpu0.access_gbps=x2"),
            "error: gpu0.access_gbps=x2: the working sets of memory 'ram' have figures in place of "
            "gpu0's\n"
            "  help: take working_sets out of a copy of the file");
  EXPECT_EQ(node(load_topology(file + ":gpu0.peer_limit=1"), "gpu0").peer_limit, 1);
}

TEST(WhatIf, PeerLimitsAndCopyEnginesOfGpus) {
  const Topology one = load_topology("p2.16xlarge:gpu0.copy_engines=1");
  EXPECT_EQ(node(one, "gpu0").copy_engines, 1);
  EXPECT_EQ(node(one, "gpu1").copy_engines,
            node(load_topology("p2.16xlarge"), "gpu1").copy_engines);
  const Topology all = load_topology("dgx1-v100:gpu.peer_limit=4");
  for (const NodeId gpu : all.gpus()) EXPECT_EQ(all.node(gpu).peer_limit, 4);
  EXPECT_EQ(node(load_topology("dgx1-v100:gpu0.peer_limit=x0.5"), "gpu0").peer_limit, 4);
  EXPECT_EQ(node(load_topology("dgx1-v100:gpu0.peer_limit=0"), "gpu0").peer_limit, 0);
  EXPECT_EQ(node(load_topology("dgx1-v100:cpu.reduce_gbps=30"), "cpu1").reduce_gbps, 30);
  EXPECT_EQ(refusal("dgx1-v100:cpu0.peer_limit=4"),
            "error: cpu0.peer_limit=4: cpu0 is not a GPU, and has no peer_limit\n"
            "  help: links have gbps, latency_us and count");
  EXPECT_EQ(
      refusal("dgx1-v100:gpu0.copy_engines=1.5"),
      "error: gpu0.copy_engines=1.5 changes copy_engines to 1.5, but it must be a whole number, 0 "
      "or more (at most 1e6)");
  EXPECT_EQ(refusal("ring:gpu0.peer_limit=x2"),
            "error: gpu0.peer_limit=x2: the machine gives no peer_limit to multiply\n"
            "  help: write its value: gpu0.peer_limit=V");
}

TEST(WhatIf, PartsRememberWhatWasChanged) {
  const Topology machine =
      load_topology("dgx1-v100:nvlink2.gbps=x2,gpu0-gpu3.latency_us=1,gpu1.speed=x0.5");
  const Link* both = link_between(machine, "gpu0", "gpu3");
  EXPECT_EQ(both->what_if, "gbps=x2,latency_us=1");
  EXPECT_EQ(both->measured_factor, 2);
  EXPECT_EQ(link_between(machine, "gpu0", "gpu1")->what_if, "gbps=x2");
  EXPECT_EQ(link_between(machine, "plx0", "gpu0")->what_if, "");
  EXPECT_EQ(link_between(machine, "plx0", "gpu0")->measured_factor, 1);
  EXPECT_EQ(node(machine, "gpu1").what_if, "speed=x0.5");
  EXPECT_EQ(node(machine, "gpu0").what_if, "");
}

TEST(WhatIf, ANameWithoutHostMeansEveryHost) {
  const Topology machine =
      load_topology("mist:nodes=2,gpu0-gpu1.gbps=x2,n1.gpu2-n1.gpu3.gbps=1,gpu[0,2].speed=2");
  EXPECT_EQ(machine.name, "mist:nodes=2,gpu0-gpu1.gbps=x2,n1.gpu2-n1.gpu3.gbps=1,gpu[0,2].speed=2");
  EXPECT_EQ(link_between(machine, "n0.gpu0", "n0.gpu1")->gbps, 50);
  EXPECT_EQ(link_between(machine, "n1.gpu0", "n1.gpu1")->gbps, 50);
  EXPECT_EQ(link_between(machine, "n0.gpu2", "n0.gpu3")->gbps, 25);
  EXPECT_EQ(link_between(machine, "n1.gpu2", "n1.gpu3")->gbps, 1);
  for (const char* fast : {"n0.gpu0", "n0.gpu2", "n1.gpu0", "n1.gpu2"}) {
    EXPECT_EQ(node(machine, fast).speed, 2) << fast;
  }
  EXPECT_EQ(node(machine, "n1.gpu1").speed, 1);
}

TEST(WhatIf, GenericMachinesTakeChanges) {
  const Topology ring = load_topology("ring:n=4,gbps=10,link.gbps=x2,gpu3-gpu0.gbps=x0.5");
  EXPECT_EQ(ring.name, "ring:n=4,gbps=10,link.gbps=x2,gpu3-gpu0.gbps=x0.5");
  EXPECT_EQ(link_between(ring, "gpu0", "gpu1")->gbps, 20);
  EXPECT_EQ(link_between(ring, "gpu0", "gpu3")->gbps, 10);  // changes apply in their order
  EXPECT_EQ(load_topology("ring:without=gpu0-gpu1").links.size(), 7u);
}

TEST(WhatIf, HostsMayBePatternsAndTheOnlyOneMayBeNamed) {
  const Topology machine = load_topology("mist:nodes=3,n[0,2].gpu0.speed=2");
  EXPECT_EQ(node(machine, "n0.gpu0").speed, 2);
  EXPECT_EQ(node(machine, "n1.gpu0").speed, 1);
  EXPECT_EQ(node(machine, "n2.gpu0").speed, 2);
  EXPECT_EQ(node(load_topology("mist:n0.gpu0.speed=2"), "gpu0").speed, 2);
}

TEST(WhatIf, FilesAndSharedMediaTakeChanges) {
  const std::string file = temp_file("shared_medium.yaml");
  write_file(file, R"(schema: espalier.topology/1
name: m
nodes: [{name: "gpu[0-2]", kind: gpu}]
links:
  - {a: gpu0, b: gpu1, kind: link, gbps: 8, duplex: shared, medium: b}
  - {a: gpu1, b: gpu2, kind: link, gbps: 8, duplex: shared, medium: b}
)");
  const Topology machine = load_topology(file + ":link.gbps=x2");
  EXPECT_EQ(link_between(machine, "gpu0", "gpu1")->gbps, 16);
  EXPECT_EQ(link_between(machine, "gpu1", "gpu2")->gbps, 16);
  // All that share a medium have it together, so one link alone can't be faster.
  EXPECT_NE(refusal(file + ":gpu0-gpu1.gbps=x2"), "");
}

TEST(WhatIf, ChangesThatDoNothingAreMistakes) {
  EXPECT_EQ(refusal("dgx1-v100:plx0.speed=x2"),
            "error: plx0.speed=x2: plx0 is neither a GPU nor a CPU, and has no speed\n"
            "  help: links have gbps, latency_us and count");
  EXPECT_EQ(refusal("dgx1-v100:nvlink2.gbps=x2,without=nvlink2"),
            "error: nvlink2.gbps=x2: all of these links have been removed\n"
            "  help: leave out this change, or the one that removes them");
  // Of the four links of gpu0 three are left.
  EXPECT_EQ(load_topology("dgx1-v100:nvlink2.gbps=x2,without=gpu0-gpu3").links.size(),
            load_topology("dgx1-v100").links.size() - 1);
}

TEST(WhatIf, TheSameIsChangedOnce) {
  EXPECT_EQ(refusal("dgx1-v100:gpu0-gpu3.gbps=x2,gpu3-gpu0.gbps=40"),
            "error: gpu0-gpu3.gbps=x2 and gpu3-gpu0.gbps=40 change the same figure");
  EXPECT_EQ(refusal("dgx1-v100:without=gpu0-gpu3,without=gpu3-gpu0"),
            "error: without=gpu0-gpu3 and without=gpu3-gpu0 take away the same links");
  EXPECT_EQ(
      link_between(load_topology("dgx1-v100:gpu0-gpu3.gbps=x2,gpu3-gpu0.count=1"), "gpu0", "gpu3")
          ->gbps,
      50);
}

TEST(WhatIf, OrderMatters) {
  const double before = node(load_topology("dgx1-v100"), "gpu0").memory_gbps;
  EXPECT_NE(before, 700);
  EXPECT_EQ(
      node(load_topology("dgx1-v100:gpu0.memory_gbps=700,gpu0.speed=x0.5"), "gpu0").memory_gbps,
      350);
  EXPECT_EQ(
      node(load_topology("dgx1-v100:gpu0.speed=x0.5,gpu0.memory_gbps=700"), "gpu0").memory_gbps,
      700);
}

TEST(WhatIf, EverythingWrongIsSaidAtOnce) {
  EXPECT_EQ(refusal("mist:witout=xbus"), "error: parameter 'witout' must be a number, not 'xbus'");
  EXPECT_EQ(
      refusal("mist:without=gpu0-gpu2,nvlink.gbps=x2,gpu9.speed=2,xbus.gbs=2,xbus.gbps=fast"),
      "error: mist has no link 'gpu0-gpu2'\n"
      "  help: the other end of gpu0 can be: did you mean 'gpu1'?\n"
      "error: mist has no links 'nvlink'\n"
      "  help: did you mean 'nvlink2'?\n"
      "error: mist has no node or model 'gpu9'\n  help: did you mean 'gpu0'?\n"
      "error: xbus.gbs=2: 'gbs' is no figure of nodes or links\n  help: did you mean 'gbps'?\n"
      "error: xbus.gbps can't be 'fast'\n  help: a number, or a factor such as x2");
  EXPECT_EQ(refusal("mist:xbus.gbps=0,gpu0.speed=x-1,gpu0-gpu1.count=x0.5"),
            "error: xbus.gbps=0 changes gbps to 0, but it must be positive (in GB/s, 1e-6 to 1e6)\n"
            "error: gpu0.speed can't be 'x-1'\n  help: a number, or a factor such as x2\n"
            "error: gpu0-gpu1.count=x0.5 changes count to 1.5, but it must be a whole number, 1 or "
            "more (at most 1e6)");
  EXPECT_EQ(
      refusal("dgx1-v100:gpu0-gpu1.gbps=1e-6"),
      "error: gpu0-gpu1.gbps=1e-6 changes the measured bandwidth to 9.58e-07 GB/s, but it must be "
      "positive (in GB/s, 1e-6 to 1e6)");
  EXPECT_EQ(refusal("ring:gpu0.reduce_gbps=x2"),
            "error: gpu0.reduce_gbps=x2: the machine gives no reduce_gbps to multiply\n"
            "  help: write its value: gpu0.reduce_gbps=V");
  EXPECT_EQ(refusal("ring:n=3,xbus.gbps=2"),
            "error: ring:n=3 has no links 'xbus'\n  help: one of: link; or two nodes, A-B");
  EXPECT_EQ(refusal("dgx1-v100:gpu0.peers=3"),
            "error: gpu0.peers=3: 'peers' is no figure of nodes or links\n"
            "  help: did you mean 'peer_limit'?");
  EXPECT_EQ(refusal("mist:gpu0.speed=2,gpu0.speed=3"),
            "error: parameter 'gpu0.speed' is given twice");
}

/// Words that fit together or not: what loads is a machine that passes its checks, and all else is
/// said to be the user's mistake.
TEST(WhatIf, RandomChangesMakeARightMachineOrAreRefused) {
  const std::vector<std::string> machines = {"mist",     "mist:nodes=2", "dgx1-v100", "kesch",
                                             "ring:n=4", "summit",       "mi250"};
  const std::vector<std::string> words = {
      "without", "=",  ",",    "gpu0",  "-",     "gpu1",        "gpu[0-1]",   "n1.",  "nvlink2",
      "xbus",    ".",  "gbps", "count", "speed", "memory_gbps", "x2",         "x0.5", "1e9",
      "0",       "-1", "cpu0", "link",  "[",     "]",           "latency_us", "nan",  "\n"};
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto any = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  int loaded = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string spec = any(machines);
    spec += spec.find(':') == std::string::npos ? ':' : ',';
    if (i % 3 == 0) {  // nearly right
      spec += any({"gpu0-gpu1", "nvlink2", "xbus", "gpu[0-1]", "link"}) + "." +
              any({"gbps", "count", "speed", "latency_us", "peer_limit", "copy_engines"}) + "=" +
              any({"x2", "x0.5", "3", "1e9"});
    } else {
      for (unsigned n = 1 + random() % 8; n > 0; --n) spec += any(words);
    }
    try {
      EXPECT_TRUE(check_topology(load_topology(spec)).empty()) << spec;
      ++loaded;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage) << spec;
    }
  }
  EXPECT_GT(loaded, 100);
}

}  // namespace
}  // namespace espalier

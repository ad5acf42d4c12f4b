// SPDX-License-Identifier: Apache-2.0
// Machines written as NCCL's topology files and read again: what must survive is counted here link
// by link, apart from what the writer itself says about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/file.h"
#include "formats/format.h"
#include "formats/xml_text.h"
#include "tests/error_of.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

Written write(const Topology& machine) {
  for (const Format* format : all_formats()) {
    if (format->name == "nccl-topology") return format->write_machine(machine);
  }
  throw std::logic_error("no such format");
}

Topology read(const std::string& text) {
  return recognise(text)->read_machine({text, "written.xml", nullptr});
}

Topology again(const Topology& machine) { return read(write(machine).text); }

/// What a figure may differ by, where NCCL's file can't say it, and why.
struct Exception {
  const char* machine;
  const char* figure;
  double ratio;  ///< of the larger to the smaller; 0: it may be new
  const char* why;
};
const std::vector<Exception> kExceptions = {
    {"baidu40", "pcie", 1.12, "10 GB/s were measured; twelve lanes of generation 3 have 9"},
    {"dgx1-p100", "pcie", 1.13, "10.6 GB/s were measured; sixteen lanes of generation 3 have 12"},
    {"dgx1-v100", "pcie", 1.13, "as dgx1-p100"},
    {"p3.8xlarge", "pcie", 1.13, "as dgx1-p100"},
    {"p3.16xlarge", "pcie", 1.13, "as dgx1-p100"},
    {"p3dn.24xlarge", "pcie", 1.13, "as dgx1-p100"},
    {"p3dn.24xlarge", "network", 1.26, "its profile has what EFA reached, 0.72 of 12.5 GB/s"},
    {"dgx2", "pcie", 1.06, "11.4 GB/s were measured; sixteen lanes of generation 3 have 12"},
    {"dgx2", "fabric", 1.07, "the file of the machine has 21.3 GB/s for a link; NCCL counts 20"},
    {"dgx2", "nvswitches", 2, "NCCL has one node for all NVSwitches"},
    {"cedar", "sockets", 1.12, "two UPI links are estimated at 6.7 GB/s; NCCL has 6 or 10"},
    {"dgx-a100", "sockets", 2.4, "NCCL has one rate for all pairs of AMD's NUMA nodes, 16 GB/s"},
    {"mi250", "sockets", 1.72, "as dgx-a100"},
    {"gb200-nvl72", "sockets", 0, "NCCL joins all CPUs of a host"}};

class Comparison {
 public:
  Comparison(const std::string& name, const Topology& before, const Topology& after)
      : name_(name),
        before_(before),
        after_(after),
        routes_before_(before, before.profile("kernel")),
        routes_after_(after, after.profile("kernel")) {}

  void run() {
    const std::vector<NodeId> gpus = before_.gpus(), others = after_.gpus();
    ASSERT_EQ(gpus.size(), others.size());
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      EXPECT_EQ(before_.node(gpus[a]).model, after_.node(others[a]).model);
      for (std::size_t b = 0; b < a; ++b) {
        const auto hop = routes_before_.hop(gpus[a], gpus[b]);
        const auto other = routes_after_.hop(others[a], others[b]);
        ASSERT_EQ(hop.has_value(), other.has_value()) << a << " " << b;
        if (!hop) continue;
        EXPECT_EQ(before_.link(hop->link).count, after_.link(other->link).count) << a << " " << b;
        close("fabric", routes_before_.capacity_gbps(hop->link),
              routes_after_.capacity_gbps(other->link));
      }
      compare_switch(gpus[a], others[a]);
      compare_cpu(gpus[a], others[a]);
    }
    close("nvswitches", count(before_, NodeKind::nvswitch), count(after_, NodeKind::nvswitch));
    compare_sockets();
    compare_ports();
  }

 private:
  void close(const std::string& figure, double a, double b) {
    double ratio = 1.005;
    for (const Exception& exception : kExceptions) {
      if (name_ != exception.machine || figure != exception.figure) continue;
      ratio = exception.ratio;
    }
    if (ratio == 0 && a == 0) return;
    EXPECT_LE(std::max(a, b), ratio * std::min(a, b)) << figure << ": " << a << " and " << b;
  }

  static double count(const Topology& machine, NodeKind kind) {
    return static_cast<double>(std::ranges::count(machine.nodes, kind, &Node::kind));
  }

  static std::vector<NodeId> nodes(const Topology& machine, NodeKind kind) {
    std::vector<NodeId> found;
    for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
      if (machine.node(id).kind == kind) found.push_back(id);
    }
    return found;
  }

  /// Links and GB/s of a GPU to NVSwitches, and whether these combine.
  static std::pair<int, double> to_switches(const Topology& machine, const Router& router,
                                            NodeId gpu, bool& combines) {
    std::pair<int, double> sum;
    for (const NodeId one : nodes(machine, NodeKind::nvswitch)) {
      const auto hop = router.hop(gpu, one);
      if (!hop) continue;
      sum.first += machine.link(hop->link).count;
      sum.second += router.capacity_gbps(hop->link);
      combines = machine.node(one).combines;
    }
    return sum;
  }

  void compare_switch(NodeId gpu, NodeId other) {
    bool combines = false, others_combine = false;
    const auto mine = to_switches(before_, routes_before_, gpu, combines);
    const auto theirs = to_switches(after_, routes_after_, other, others_combine);
    EXPECT_EQ(mine.first, theirs.first);
    EXPECT_EQ(combines, others_combine);
    close("fabric", mine.second, theirs.second);
  }

  /// The number of the CPU with the fewest links to a node, and the narrowest of these.
  static std::pair<std::size_t, double> nearest_cpu(const Topology& machine, const Router& router,
                                                    NodeId node) {
    std::pair<std::size_t, double> best;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    const std::vector<NodeId> cpus = nodes(machine, NodeKind::cpu);
    for (std::size_t c = 0; c < cpus.size(); ++c) {
      if (machine.node(cpus[c]).host != machine.node(node).host) continue;
      const Route* route = router.route(node, cpus[c]);
      if (route == nullptr || route->hops.size() >= fewest) continue;
      fewest = route->hops.size();
      best = {c, std::numeric_limits<double>::infinity()};
      for (const Hop& hop : route->hops) {
        best.second = std::min(best.second, router.capacity_gbps(hop.link));
      }
    }
    return best;
  }

  void compare_cpu(NodeId gpu, NodeId other) {
    const auto mine = nearest_cpu(before_, routes_before_, gpu);
    const auto theirs = nearest_cpu(after_, routes_after_, other);
    EXPECT_EQ(mine.first, theirs.first);
    EXPECT_EQ(before_.node(gpu).numa, after_.node(other).numa);
    close("pcie", mine.second, theirs.second);
  }

  static double between(const Router& router, NodeId a, NodeId b) {
    const Route* route = router.route(a, b);
    if (route == nullptr || route->kind == RouteKind::network) return 0;
    double gbps = std::numeric_limits<double>::infinity();
    for (const Hop& hop : route->hops) gbps = std::min(gbps, router.capacity_gbps(hop.link));
    return gbps;
  }

  void compare_sockets() {
    const auto mine = nodes(before_, NodeKind::cpu), theirs = nodes(after_, NodeKind::cpu);
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t a = 0; a < mine.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (before_.node(mine[a]).host != before_.node(mine[b]).host) continue;
        close("sockets", between(routes_before_, mine[a], mine[b]),
              between(routes_after_, theirs[a], theirs[b]));
      }
    }
  }

  /// GB/s of each port of a network card, and of the way from it to its CPU.
  static std::vector<double> ports(const Topology& machine, const Router& router) {
    std::vector<double> found;
    for (LinkId id = 0; id < static_cast<LinkId>(machine.links.size()); ++id) {
      const Link& link = machine.link(id);
      const bool is_port = machine.node(link.a).kind == NodeKind::nic &&
                           machine.node(link.b).kind == NodeKind::fabric;
      if (!is_port) continue;
      for (int port = 0; port < link.count; ++port) {
        found.push_back(router.capacity_gbps(id) / link.count);
        found.push_back(nearest_cpu(machine, router, link.a).second);
      }
    }
    return found;
  }

  void compare_ports() {
    const auto mine = ports(before_, routes_before_), theirs = ports(after_, routes_after_);
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      close(i % 2 == 0 ? "network" : "pcie", mine[i], theirs[i]);
  }

  std::string name_;
  const Topology& before_;
  const Topology& after_;
  Router routes_before_, routes_after_;
};

TEST(NcclWriter, MachinesOfTheCatalogueSurvive) {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const char* nodes : {":nodes=1", ":nodes=2", ""}) {
      SCOPED_TRACE(entry.name + nodes);
      const Topology machine = load_topology(entry.name + nodes);
      const bool is_whole = entry.name == "gb200-nvl72";
      // A file holds one host, unless NVLinks join several.
      const Topology expected = is_whole ? machine : load_topology(entry.name + ":nodes=1");
      const Topology written = again(machine);
      Comparison(entry.name, expected, written).run();
    }
  }
}

TEST(NcclWriter, SaysWhatTheFileCannot) {
  const auto notes = [](const char* machine) { return write(load_topology(machine)).notes; };
  using testing::AllOf, testing::Contains, testing::HasSubstr, testing::Not;
  EXPECT_THAT(notes("dgx-h100"),
              AllOf(Contains(HasSubstr("bus ids")), Contains(HasSubstr("latencies")),
                    Not(Contains(HasSubstr("becomes")))));
  EXPECT_THAT(notes("dgx-a100:nodes=512"), Contains(HasSubstr("all 512 get the same")));
  EXPECT_THAT(notes("dgx-h100:nodes=4"), Contains(HasSubstr("one host; all 4 get the same")));
  EXPECT_THAT(notes("dgx-h100:nodes=4,n2.gpu0-n2.nvswitch.count=9"),
              Contains(HasSubstr("host 0, from which hosts 2 differ")));
  EXPECT_THAT(notes("gb200-nvl72"), AllOf(Contains(HasSubstr("all 18 hosts are in the file")),
                                          Contains(HasSubstr("NCCL reads 256 elements"))));
  EXPECT_THAT(notes("p2.16xlarge"), Contains(HasSubstr("left out central0-central1")));
  EXPECT_THAT(notes("dgx1-v100"),
              AllOf(Contains(HasSubstr("GB/s to its CPU (gpu 0 and 7 more): 10.60 GB/s becomes")),
                    Contains(HasSubstr("share it between both"))));
  // Twice the rate is twice the links; what is no multiple is rounded.
  EXPECT_THAT(notes("dgx1-v100:nvlink2.gbps=x2"),
              AllOf(Contains(HasSubstr("the count of links gives the rate")),
                    Contains(HasSubstr("links between GPUs (0-1 and 7 more): 1 becomes 2")),
                    Not(Contains(HasSubstr("GB/s between GPUs")))));
  EXPECT_THAT(notes("dgx1-v100:nvlink2.gbps=400000"),
              Contains(HasSubstr("GB/s between GPUs (0-1 and 7 more): 341200 GB/s becomes 21325")));
  EXPECT_THAT(notes("dgx1-v100:gpu0-gpu1.gbps=15"),
              Contains(HasSubstr("GB/s between GPUs (0-1): 12.79 GB/s becomes 21.32 GB/s")));
}

/// NCCL counts the rate of an X-bus in each direction; what a POWER has is known.
TEST(NcclWriter, BothDirectionsShareAnXBus) {
  for (const char* name : {"mist", "summit"}) {
    const Written written = write(load_topology(name));
    EXPECT_THAT(written.notes, testing::Not(testing::Contains(testing::HasSubstr("share it"))));
    const Topology machine = read(written.text);
    const auto bus = std::ranges::find(machine.links, "xbus", &Link::kind);
    ASSERT_NE(bus, machine.links.end());
    EXPECT_EQ(bus->duplex, Duplex::half);
  }
}

TEST(NcclWriter, HasTheAttributesThatNcclAndRcclNeed) {
  const auto root = [](const char* machine) {
    auto document = std::make_unique<pugi::xml_document>();
    EXPECT_TRUE(document->load_string(write(load_topology(machine)).text.c_str()));
    return document;
  };
  const auto dgx = root("dgx1-v100");
  const pugi::xml_node gpu = dgx->select_node("//gpu[@dev='7']").node();
  EXPECT_STREQ(gpu.attribute("sm").value(), "70");
  EXPECT_STREQ(gpu.attribute("rank").value(), "7");
  EXPECT_EQ(gpu.select_nodes("nvlink").size(), 4U);
  EXPECT_STREQ(dgx->select_node("/system/@version").attribute().value(), "1");
  EXPECT_STREQ(dgx->select_node("//net").node().attribute("speed").value(), "100000");
  EXPECT_STREQ(dgx->select_node("//cpu[@numaid='1']").node().attribute("vendor").value(),
               "GenuineIntel");
  const auto amd = root("mi300x");
  EXPECT_STREQ(amd->select_node("/system/@version").attribute().value(), "2");
  EXPECT_EQ(amd->select_nodes("//gpu[@gcn='gfx942']/xgmi").size(), 56U);
  EXPECT_EQ(root("dgx-h200")->select_nodes("//nvlink[@count='18'][@tclass='0x068000']").size(), 8U);
  EXPECT_EQ(root("mist")->select_nodes("//nvlink[@count='3'][@tclass='0x068001']").size(), 4U);
  EXPECT_EQ(root("gb200-nvl72:nodes=1")->select_nodes("//c2c[@bw='180000']").size(), 4U);
  EXPECT_EQ(root("gb200-nvl72:nodes=2")->select_nodes("//cpu[@host_hash='0x2']").size(), 2U);
  EXPECT_EQ(root("dgx1-v100")->select_nodes("//pci[@busid='0000:01:00.0']").size(), 1U);
}

/// Machines that others described: NVLinks and cards survive being written.
TEST(NcclWriter, PublicMachinesSurvive) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  int written_ones = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(corpus) / "nccl_topo")) {
    SCOPED_TRACE(entry.path().filename());
    Topology machine;
    try {
      machine = read(read_file(entry.path().string()));
    } catch (const Error&) {
      continue;  // one that is to be refused
    }
    if (machine.hosts > 1) continue;
    const Written written = write(machine);
    EXPECT_EQ(read(written.text).gpus().size(), machine.gpus().size());
    using testing::AnyOf, testing::Contains, testing::HasSubstr, testing::Not;
    EXPECT_THAT(written.notes, Not(Contains(AnyOf(HasSubstr("becomes"), HasSubstr("become "),
                                                  HasSubstr("is lost"), HasSubstr("is new")))));
    ++written_ones;
  }
  EXPECT_GT(written_ones, 3);
}

/// Generic machines: their GPUs are none that NCCL knows.
TEST(NcclWriter, RefusesLinksThatNoGpuHas) {
  for (const char* machine : {"full:n=4", "torus", "ring", "switch", "star", "line"}) {
    EXPECT_THAT(error_of([&] { write(load_topology(machine)); }, ErrorKind::unsupported),
                testing::HasSubstr("NCCL has no GPU with links of kind link, such as that of gpu0"))
        << machine;
  }
  EXPECT_THAT(error_of([&] { write(load_topology("hosts:n=300")); }, ErrorKind::unsupported),
              testing::HasSubstr("has more than 512 GPUs, CPUs and cards"));
  const Topology hosts = again(load_topology("hosts:n=3"));
  EXPECT_EQ(hosts.gpus().size(), 3U);
  EXPECT_EQ(std::ranges::count(hosts.nodes, NodeKind::cpu, &Node::kind), 3);
}

/// A machine without models, CPUs and cards: the links say which GPUs these are.
TEST(NcclWriter, MakesUpWhatNcclNeeds) {
  const Topology machine = parse_topology(R"(schema: espalier.topology/1
name: bare
nodes:
  - {name: "gpu[0-1]", kind: gpu}
  - {name: fabric, kind: fabric}
links:
  - {a: gpu0, b: gpu1, kind: nvlink3, count: 4, gbps: 25}
  - {a: "gpu[0-1]", b: fabric, kind: ib_hdr, gbps: 25}
)",
                                          "bare.yaml");
  const Written written = write(machine);
  using testing::Contains, testing::HasSubstr;
  EXPECT_THAT(written.notes, Contains(HasSubstr("no CPU has a link to gpu0, gpu1")));
  EXPECT_THAT(written.notes, Contains(HasSubstr("has one that is made up")));
  EXPECT_THAT(written.notes, Contains(HasSubstr("left out gpu0-fabric, gpu1-fabric")));
  const Topology after = read(written.text);
  const Router router(after, after.profile("kernel"));
  const auto hop = router.hop(after.gpus()[0], after.gpus()[1]);
  ASSERT_TRUE(hop);
  EXPECT_NEAR(router.capacity_gbps(hop->link), 4 * 21.25, 1e-9);
}

}  // namespace
}  // namespace espalier

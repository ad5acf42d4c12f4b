// SPDX-License-Identifier: Apache-2.0
// Tables of nvidia-smi topo -m and its like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "formats/format.h"
#include "tests/error_of.h"
#include "tests/formats/smi_reading.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::HasSubstr;

/// The switch or CPU that a device hangs on.
std::string above(const Topology& machine, const std::string& device) {
  const NodeId node = *machine.find(device);
  for (const Link& link : machine.links) {
    if (link.link_class != LinkClass::host) continue;
    if (link.a == node) return machine.node(link.b).name;
  }
  return "";
}

const char* const kSquare =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV2\tNV1\tSYS\tPIX\t0-13\t0\n"
    "GPU1\tNV2\t X \tSYS\tNV2\tPIX\t0-13\t0\n"
    "GPU2\tNV1\tSYS\t X \tNV2\tSYS\t14-27\t1\n"
    "GPU3\tSYS\tNV2\tNV2\t X \tSYS\t14-27\t1\n"
    "mlx5_0\tPIX\tPIX\tSYS\tSYS\t X \n"
    "\nLegend:\n  X    = Self\n";

TEST(SmiTopology, HasNvlinksSwitchesAndSockets) {
  const Topology machine = read(kSquare);
  EXPECT_EQ(machine.gpus().size(), 4U);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 2);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu2"), 1);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu3"), 0);
  EXPECT_EQ(machine.node(machine.gpus()[0]).model, "v100-sxm2");  // four NVLinks at most
  EXPECT_EQ(above(machine, "gpu0"), "pcie0");
  EXPECT_EQ(above(machine, "nic_mlx5_0"), "pcie0");
  EXPECT_EQ(above(machine, "gpu2"), "cpu1");
  EXPECT_EQ(machine.node(*machine.find("gpu3")).numa, 1);
  EXPECT_THAT(machine.notes, testing::Contains(HasSubstr("taken for v100")));
  const Topology p3 = load_topology("p3.8xlarge");
  EXPECT_EQ(read(kSquare, &p3).node(0).model, p3.node(p3.gpus()[0]).model);
}

/// Older drivers name the processors that are near, and no NUMA node. NVLinks between sockets do
/// not make one of them.
TEST(SmiTopology, SocketsAreThoseOfProcessors) {
  const Topology machine = read(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\n"
      "GPU0\t X \tNV1\tNV2\tSYS\tPIX\t0-19,40-59\n"
      "GPU1\tNV1\t X \tSYS\tNV2\tPHB\t0-19,40-59\n"
      "GPU2\tNV2\tSYS\t X \tNV1\tSYS\t20-39,60-79\n"
      "GPU3\tSYS\tNV2\tNV1\t X \tSYS\t20-39,60-79\n"
      "mlx5_0\tPIX\tPHB\tSYS\tSYS\t X \n");
  for (const auto& [gpu, numa] : {std::pair("gpu0", 0), {"gpu1", 0}, {"gpu2", 1}, {"gpu3", 1}}) {
    EXPECT_EQ(machine.node(*machine.find(gpu)).numa, numa) << gpu;
  }
  EXPECT_EQ(machine.node(*machine.find("nic_mlx5_0")).numa, 0);
}

/// No GPU has 21 NVLinks: these go through switches. Colours and lost tabs are what pastes have.
TEST(SmiTopology, SeesSwitchesAndReadsPastes) {
  const Topology machine = read(
      "\x1b[4mGPU0GPU1GPU2GPU3 CPU Affinity\x1b[0m\n"
      "GPU0  X  NV12NV12NV12 0-23 0\nGPU1 NV12 X NV12NV12 0-23 0\n"
      "GPU2 NV12 NV12 X NV12 0-23 0\nGPU3 NV12 NV12 NV12 X 24-47 1\n");
  EXPECT_EQ(links_between(machine, "gpu0", "nvswitch"), 12);
  EXPECT_EQ(machine.node(machine.gpus()[3]).model, load_topology("dgx-a100").node(0).model);
  EXPECT_FALSE(machine.node(*machine.find("nvswitch")).combines);
}

/// `nvidia-smi topo -m -i 4,5,7`
TEST(SmiTopology, ReadsTablesOfSomeGpus) {
  const Topology machine = read(
      "\tGPU4\tGPU5\tGPU7\tCPU Affinity\tNUMA Affinity\nGPU4\t X \tNV2\tSYS\t0-13\t0\n"
      "GPU5\tNV2\t X \tNV2\t0-13\t0\nGPU7\tSYS\tNV2\t X \t14-27\t1\n");
  EXPECT_EQ(machine.gpus().size(), 3U);
  EXPECT_EQ(links_between(machine, "gpu5", "gpu7"), 2);
  EXPECT_EQ(links_between(machine, "gpu4", "gpu7"), 0);
}

TEST(SmiTopology, ReadsRocmTables) {
  const Topology machine = read(
      "===== ROCm System Management Interface =====\n"
      "===== Hops between two GPUs =====\n      GPU0 GPU1\nGPU0  0    1\nGPU1  1    0\n"
      "===== Link Type between two GPUs =====\n      GPU0 GPU1\nGPU0  0    XGMI\nGPU1  XGMI 0\n"
      "===== Numa Nodes =====\nGPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: "
      "1\n");
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 1);
}

/// Cards are called after their drivers, buses and ports, or as an administrator likes.
TEST(SmiTopology, CardsHaveNamesOfAllKinds) {
  const Topology machine = read(
      "\tGPU0\tGPU1\trdmap79s0\troceP1p1s0\tib0\tmlx5_bond_0\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tNV18\tPIX\tNODE\tSYS\tSYS\t0-31,64-95\t0\t\tN/A\n"
      "GPU1\tNV18\t X \tSYS\tSYS\tPIX\tNODE\t32-63\t1\t\tN/A\n"
      "rdmap79s0\tPIX\tSYS\t X \tNODE\tSYS\tSYS\n"
      "roceP1p1s0\tNODE\tSYS\tNODE\t X \tSYS\tSYS\n"
      "ib0\tSYS\tPIX\tSYS\tSYS\t X \tNODE\n"
      "mlx5_bond_0\tSYS\tNODE\tSYS\tSYS\tNODE\t X \n");
  EXPECT_EQ(above(machine, "nic_rdmap79s0"), "pcie0");
  EXPECT_EQ(above(machine, "gpu0"), "pcie0");
  EXPECT_EQ(above(machine, "nic_roceP1p1s0"), "cpu0");
  EXPECT_EQ(above(machine, "nic_ib0"), "pcie1");
  EXPECT_EQ(above(machine, "gpu1"), "pcie1");
  EXPECT_EQ(machine.node(*machine.find("nic_mlx5_bond_0")).numa, 1);
}

/// mx-smi has the NUMA node first.
TEST(SmiTopology, ReadsTablesOfMxSmi) {
  const Topology machine = read(
      "        GPU0    GPU1    GPU2    Node Affinity  CPU Affinity\n"
      "GPU0    X       MX      SYS     0              0-31,64-95\n"
      "GPU1    MX      X       SYS     0              0-31,64-95\n"
      "GPU2    SYS     SYS     X       1              32-63,96-127\n");
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 1);
  EXPECT_EQ(machine.node(*machine.find("gpu1")).numa, 0);
  EXPECT_EQ(machine.node(*machine.find("gpu2")).numa, 1);
}

/// Words of any length: a regular expression would need a stack as deep.
TEST(SmiTopology, LongWordsAreNothingSpecial) {
  const std::string ones(400'000, '1');
  EXPECT_THAT(errors("GPU0 GPU1\nGPU" + ones + "\n"), HasSubstr("GPU0 is in the header, but"));
  const std::string rocm = "Link Type between two GPUs\nGPU0 GPU1\nGPU[";
  EXPECT_THAT(errors(rocm + "0] " + ones + "\n"), HasSubstr("no table of GPUs was found"));
  EXPECT_THAT(errors(rocm + ones + "] Numa Node: " + ones), HasSubstr("no table of GPUs was"));
  std::string glued = "GPU0 GPU1\n";
  for (int i = 0; i < 100'000; ++i) glued += "GPU0NV1";
  EXPECT_THAT(errors(glued), HasSubstr("topo.txt:2: error: GPU0: 'GPU0' is no way between"));
}

TEST(SmiTopology, SaysWhatIsWrongInAHeader) {
  EXPECT_EQ(errors("\tGPU0\tGPU1\tGPU1\tCPU Affinity\n"),
            "topo.txt:1: error: GPU1 is in the header twice");
  EXPECT_EQ(errors("\tGPU0\tGPU1\ta:b\tCPU Affinity\n"),
            "topo.txt:1: error: 'a:b' in the header is no name of a device");
  EXPECT_EQ(errors("GPU0\tX\tNV1\n"), "error: not known as a table");
}

TEST(SmiTopology, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(
      errors("\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV1\tX\n"),
      "topo.txt:3: error: GPU0 and GPU1 reach each other in different ways, here and on line 2");
  EXPECT_EQ(errors("\tGPU0\tGPU1\nGPU0\tX\tNVL\nGPU1\tNV1\n"),
            "topo.txt:2: error: GPU0: 'NVL' is no way between two devices\n"
            "topo.txt:3: error: GPU1 has 1 cell, but there are 2 devices");
  EXPECT_THAT(errors("\tGPU0\tGPU1\nGPU0\tX\tNV2\n"), HasSubstr("GPU1 is in the header"));
}

TEST(SmiTopology, MoreCellsThanDevicesAreAnError) {
  EXPECT_EQ(errors("\tGPU0\tGPU1\nGPU0\tX\tNV2\tSYS\t0-31\t0\nGPU1\tNV2\tX\tSYS\t0-31\t0\n"),
            "topo.txt:2: error: GPU0 has more cells than the header has devices, 2\n"
            "topo.txt:3: error: GPU1 has more cells than the header has devices, 2");
}

TEST(SmiTopology, TheFirstOfSeveralTablesCounts) {
  const std::string legend = "\nLegend:\n\n  X    = Self\n\nnode2:\n";
  const Topology machine = read("\nnode1:\n" + std::string(kSquare) + legend +
                                "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n" + legend +
                                "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n");
  EXPECT_EQ(machine.gpus().size(), 4U);
  EXPECT_EQ(machine.notes.front(),
            "there are 3 tables of GPUs, on lines 3 and 18, ...; that on line 3 counts");
}

TEST(SmiTopology, PublicTextsAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::filesystem::path folder(corpus);
  int read_ones = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "smi_topo")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    if (name.starts_with("p2p-read")) continue;  // who may reach whom: smi_peers_test.cpp
    const auto expected = nlohmann::json::parse(
        read_file((folder / "expected" / "smi_topo" / (name + ".json")).string()));
    const auto& matrix = expected["matrices"][0];
    const Topology machine = read(read_file(entry.path().string()));
    EXPECT_EQ(machine.gpus().size(), matrix["gpus"].get<std::size_t>());
    if (!matrix.contains("nvlinks")) continue;
    const bool has_switch = machine.find("nvswitch").has_value();
    for (const auto& [pair, links] : matrix["nvlinks"].items()) {
      std::string a = pair.substr(0, pair.find(' ')), b = pair.substr(pair.find(' ') + 1);
      for (std::string* one : {&a, &b}) one->replace(0, 3, "gpu");
      EXPECT_EQ(links_between(machine, a, has_switch ? "nvswitch" : b), links.get<int>()) << pair;
    }
    ++read_ones;
  }
  EXPECT_GT(read_ones, 3);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Rates between GPUs of p2pBandwidthLatencyTest and nvbandwidth.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "formats/format.h"
#include "formats/p2p_matrices.h"
#include "tests/error_of.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Topology read(const std::string& text, const std::string& as = "") {
  const Format* format = recognise(text);
  if (format == nullptr || format->name != "p2p-rates") {
    throw Error(ErrorKind::input, "not known as rates");
  }
  const Topology filling = as.empty() ? Topology() : load_topology(as);
  return format->read_machine({text, "p2p.txt", as.empty() ? nullptr : &filling});
}

std::string errors(const std::string& text, const std::string& as = "") {
  return error_of([&] { read(text, as); }, ErrorKind::input);
}

/// The link between two neighbours, or one with count 0.
Link link_between(const Topology& machine, const std::string& a, const std::string& b) {
  const Router router(machine, machine.profile("ideal"));
  const auto hop = router.hop(*machine.find(a), *machine.find(b));
  Link none;
  none.count = 0;
  return hop ? machine.link(hop->link) : none;
}

// A square of four GPUs as in p3.8xlarge: 0-3, 1-2 and 2-3 have two links; 0-1, 0-2 and 1-3 one.
const char* const kSquare =
    "P2P Connectivity Matrix\n     D\\D     0     1     2     3\n"
    "     0\t     1     1     1     1\n     1\t     1     1     1     1\n"
    "     2\t     1     1     1     1\n     3\t     1     1     1     1\n"
    "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1      2      3\n"
    "     0 740.00  10.00  11.00  11.00\n     1  10.00 741.00  11.00  11.00\n"
    "     2  11.00  11.00 742.00  10.00\n     3  11.00  11.00  10.00 743.00\n"
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
    "   D\\D     0      1      2      3\n"
    "     0 740.00  24.20  24.10  48.30\n     1  24.00 741.00  48.30  24.20\n"
    "     2  24.20  48.30 742.00  48.20\n     3  48.30  24.20  48.30 743.00\n"
    "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1      2      3\n"
    "     0   1.98   2.24   2.22   2.73\n     1   2.27   1.99   2.77   2.27\n"
    "     2   1.81   2.72   1.90   1.80\n     3   2.73   2.22   2.20   1.97\n\n"
    "   CPU     0      1      2      3\n"
    "     0   3.53   2.47   2.47   2.47\n     1   2.39   3.48   2.40   2.36\n"
    "     2   2.31   2.29   3.44   2.28\n     3   2.34   2.44   2.47   3.45\n";

TEST(P2pRates, StandOnTheLinksOfAMachine) {
  const Topology machine = read(kSquare, "p3.8xlarge");
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu0", "gpu1").measured_gbps, 24.0);  // the slower way
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu0", "gpu3").measured_gbps, 48.3);
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu2", "gpu3").measured_gbps, 48.2);
  EXPECT_DOUBLE_EQ(machine.node(machine.gpus()[1]).memory_gbps, 741);
  EXPECT_THAT(machine.notes, Contains(HasSubstr("latencies are not taken over")));
  EXPECT_THAT(machine.notes, Not(Contains(HasSubstr("is it this machine?"))));
}

TEST(P2pRates, SeesThatItIsAnotherMachine) {
  std::string crossed = kSquare;
  crossed.replace(crossed.find("24.20  24.10  48.30"), 5, "48.20");
  crossed.replace(crossed.find("24.00 741"), 5, "48.20");
  EXPECT_THAT(read(crossed, "p3.8xlarge").notes,
              Contains(HasSubstr("is it this machine? gpu0-gpu1 48.20 of 25.00 GB/s")));
  EXPECT_EQ(errors(kSquare, "dgx1-v100"),
            "p2p.txt: error: there are rates of 4 GPUs, but "
            "dgx1-v100 has 8\n  help: name a machine with 4 GPUs");
}

TEST(P2pRates, MakeAMachine) {
  const Topology machine = read(std::string("Device: 0, Tesla V100-SXM2-16GB, pciBusID: 15\n"
                                            "Device: 1, Tesla V100-SXM2-16GB, pciBusID: 16\n"
                                            "Device: 2, Tesla V100-SXM2-16GB, pciBusID: 3a\n"
                                            "Device: 3, Tesla V100-SXM2-16GB, pciBusID: 3b\n") +
                                kSquare);
  EXPECT_EQ(machine.gpus().size(), 4U);
  EXPECT_EQ(machine.node(0).model, "v100-sxm2");
  EXPECT_EQ(link_between(machine, "gpu0", "gpu1").count, 1);
  EXPECT_EQ(link_between(machine, "gpu2", "gpu3").count, 2);
  EXPECT_EQ(link_between(machine, "gpu2", "gpu3").kind, "nvlink2");
  EXPECT_EQ(link_between(machine, "gpu0", "cpu0").kind, "pcie3x16");
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::all);
  EXPECT_THAT(machine.notes, Contains(HasSubstr("NVLinks are guessed")));
}

std::string even(int gpus, const std::string& rate, const std::string& title) {
  std::string text = title + "\n   D\\D";
  for (int i = 0; i < gpus; ++i) text += "  " + std::to_string(i);
  for (int i = 0; i < gpus; ++i) {
    text += "\n  " + std::to_string(i);
    for (int j = 0; j < gpus; ++j) text += i == j ? "  1600.0" : "  " + rate;
  }
  return text + "\n";
}

TEST(P2pRates, SeeSwitchesAndPcie) {
  const Topology switched =
      read(even(8, "520.0", "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"));
  EXPECT_EQ(link_between(switched, "gpu7", "nvswitch").count, 12);
  EXPECT_DOUBLE_EQ(link_between(switched, "gpu7", "nvswitch").measured_gbps, 260);
  EXPECT_DOUBLE_EQ(switched.node(0).memory_gbps, 1600);  // not halved: it reads and writes
  EXPECT_THAT(switched.notes, Contains(HasSubstr("half of each is taken")));
  const Topology cards = read(even(6, "51.0", "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"));
  EXPECT_EQ(link_between(cards, "gpu5", "cpu0").kind, "pcie4x16");
  EXPECT_DOUBLE_EQ(link_between(cards, "gpu5", "cpu0").measured_gbps, 25.5);
  EXPECT_EQ(link_between(cards, "gpu0", "gpu1").count, 0);
}

/// No GPU maps another's memory: everything goes through the host.
TEST(P2pRates, KnowWhoMapsWhat) {
  std::string text = "Device=0 CANNOT Access Peer Device=1\nDevice=1 CANNOT Access Peer Device=0\n";
  text += even(2, "11.4", "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)");
  const Topology machine = read(text);
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::fabric);
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu1", "cpu0").measured_gbps, 11.4);
  // Two pairs that map each other's.
  text = "P2P Connectivity Matrix\n D\\D 0 1 2 3\n 0 1 1 0 0\n 1 1 1 0 0\n 2 0 0 1 1\n 3 0 0 1 1\n";
  text += even(4, "12.0", "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)");
  const Topology pairs = read(text);
  EXPECT_EQ(pairs.peer_access, Topology::PeerAccess::socket);
  EXPECT_EQ(pairs.node(0).numa, pairs.node(1).numa);
  EXPECT_NE(pairs.node(1).numa, pairs.node(2).numa);
}

TEST(P2pRates, ReadNvbandwidth) {
  const Topology machine = read(
      "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:4e:00)\n"
      "Device 1: NVIDIA H100 80GB HBM3 (00000000:5e:00)\n"
      "Device 2: NVIDIA H100 80GB HBM3 (00000000:6e:00)\n\n"
      "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
      "           0         1         2\n 0     55.29     55.30     55.31\n\n"
      "SUM host_to_device_memcpy_ce 165.9\n\n"
      "Running device_to_device_memcpy_write_ce.\n"
      "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n           0         1         2\n"
      " 0       N/A    394.00    395.00\n 1    396.00       N/A    397.00\n"
      " 2    391.00    392.00       N/A\n\nSUM device_to_device_memcpy_write_ce 2365\n");
  EXPECT_EQ(machine.node(2).model, "h100-sxm5");
  EXPECT_EQ(link_between(machine, "gpu0", "nvswitch").count, 18);
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu1", "nvswitch").measured_gbps, 394);
  EXPECT_TRUE(machine.node(*machine.find("nvswitch")).combines);
}

std::string measured(const std::string& test, const std::string& title, const std::string& rows) {
  return "Running " + test + ".\n" + title + "\n           0         1\n" + rows + "\nSUM " + test +
         " 1\n\n";
}

/// Most of its tests are about no pairs: they have one row, some below a title that says GPU(row).
TEST(P2pRates, OnlyPairsOfNvbandwidthCount) {
  const std::string pairs = " 0       N/A    390.00\n 1    390.00       N/A\n";
  const std::string text =
      measured("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
               " 0     55.36     55\n") +
      measured("device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)",
               " 0   1251.00   1251\n") +
      measured("all_to_one_write_ce", "memcpy CE All Gpus -> GPU(column) total bandwidth (GB/s)",
               " 0    177.69    177.63\n") +
      measured("one_to_all_write_sm", "memcpy SM GPU(row) -> GPU(column) bandwidth (GB/s)",
               " 0    177.69    177.63\n") +
      measured("device_to_device_latency_sm",
               "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
               " 0       N/A    725.25\n 1    725.25       N/A\n") +
      measured("device_to_device_memcpy_read_ce",
               "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)", pairs) +
      "NOTE: The reported results may not reflect the full capabilities of the platform.\n";
  const Topology machine = read(text);
  EXPECT_EQ(machine.gpus().size(), 2U);
  EXPECT_DOUBLE_EQ(link_between(machine, "gpu0", "gpu1").measured_gbps, 390);
  EXPECT_THAT(machine.notes, Contains(HasSubstr("latencies are not taken over")));
}

/// Early versions have an arrow one way above sums of both directions, later ones the parts, too.
TEST(P2pRates, SumsOfBothDirectionsAreHalved) {
  const std::string sums = " 0       N/A    300.00\n 1    310.00       N/A\n";
  const std::string parts = " 0       N/A    155.00\n 1    155.00       N/A\n";
  const std::string test = "device_to_device_bidirectional_memcpy_read_sm";
  for (const std::string& text :
       {measured(test, "memcpy SM GPU(row) -> GPU(column) bandwidth (GB/s)", sums),
        measured(test, "memcpy SM CPU(row) <-> GPU(column) Read1 bandwidth (GB/s)", parts) +
            measured(test, "memcpy SM CPU(row) <-> GPU(column) Read2 bandwidth (GB/s)", parts) +
            measured(test, "memcpy SM CPU(row) <-> GPU(column) Total bandwidth (GB/s)", sums)}) {
    const Topology machine = read(text);
    EXPECT_DOUBLE_EQ(link_between(machine, "gpu0", "gpu1").measured_gbps, 150);
    EXPECT_THAT(machine.notes, Contains(HasSubstr("half of each is taken")));
  }
}

/// Of a test that has the parts of a sum, the matrix has three times as many rows.
TEST(P2pRates, ReadNvbandwidthsJson) {
  const std::string both = R"json({"nvbandwidth": {"CUDA Runtime Version": 12080, "testcases": [
    {"name": "device_local_copy", "status": "Passed", "sum": 1.0,
     "bandwidth_description": "memcpy local GPU(column) bandwidth (GB/s)",
     "bandwidth_matrix": [["1251", "1251"]]},
    {"name": "device_to_device_memcpy_read_sm", "status": "Waived"},
    {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Passed",
     "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
     "bandwidth_matrix": [["N/A", "150"], ["150", "N/A"], ["N/A", "150"], ["150", "N/A"],
                          ["N/A", "310"], ["300", "N/A"]]})json";
  EXPECT_DOUBLE_EQ(link_between(read(both + "]}}"), "gpu0", "gpu1").measured_gbps, 150);
  const std::string one = both + R"json(,
    {"name": "device_to_device_memcpy_write_ce", "status": "Passed",
     "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
     "bandwidth_matrix": [["N/A", "196.76"], ["196.5", "N/A"]]}]}})json";
  EXPECT_DOUBLE_EQ(link_between(read(one), "gpu0", "gpu1").measured_gbps, 196.5);
}

TEST(P2pRates, SayWhatIsWrongAndWhere) {
  const std::string title = "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)";
  EXPECT_EQ(errors(title + "\n D\\D 0 1 2\n 0 900 48 nan\n 1 48 900\n 3 24 24 -900\n"),
            "p2p.txt:3: error: row 0, column 2 of 'Bidirectional P2P=Enabled Bandwidth Matrix "
            "(GB/s)': 'nan' is no rate\n"
            "p2p.txt:4: error: row 1 of 'Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)' has 2 "
            "cells, but there are 3 columns\n"
            "p2p.txt:5: error: row 3 of 'Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)' "
            "stands where row 2 should\n"
            "p2p.txt:5: error: row 2, column 2 of 'Bidirectional P2P=Enabled Bandwidth Matrix "
            "(GB/s)': '-900' is no rate");
  EXPECT_THAT(errors(title + "\n D\\D 0 1\n 0 900 48\n\n"), HasSubstr("row 1 is missing"));
  EXPECT_THAT(errors("P2P Connectivity Matrix\n D\\D 0 1\n 0 1 1\n 1 1 1\n"),
              HasSubstr("there is no table of rates between GPUs"));
}

TEST(P2pRates, PublicTextsAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::filesystem::path folder(corpus);
  int read_ones = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "p2p")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const std::string text = read_file(entry.path().string());
    const auto expected =
        nlohmann::json::parse(read_file((folder / "expected" / "p2p" / (name + ".json")).string()));
    DiagnosticList problems;
    const P2pText found = read_p2p_text(text, name, problems);
    EXPECT_TRUE(problems.empty());
    std::size_t next = 0;
    for (const auto& matrix : expected["matrices"]) {
      if (matrix["title"].get<std::string>().ends_with("[CPU]")) continue;  // times of calls
      ASSERT_LT(next, found.matrices.size());
      const P2pMatrix& one = found.matrices[next++];
      EXPECT_THAT(matrix["title"].get<std::string>(), HasSubstr(one.title));
      ASSERT_EQ(one.cells.size(), matrix["rows"].size());
      for (std::size_t a = 0; a < one.cells.size(); ++a) {
        for (std::size_t b = 0; b < one.cells.size(); ++b) {
          EXPECT_EQ(one.cells[a][b], matrix["rows"][a][b].get<double>());
        }
      }
    }
    EXPECT_EQ(next, found.matrices.size());
    for (const auto& [number, device] : expected["devices"].items()) {
      EXPECT_EQ(found.names.at(std::stoi(number)), device["name"].get<std::string>());
    }
    std::size_t able = 0, unable = 0;
    for (const auto& [pair, can] : found.maps) {
      if (pair.first < pair.second) ++(can ? able : unable);
    }
    EXPECT_EQ(able, expected["reachable_pairs"].size());
    EXPECT_EQ(unable, expected["unreachable_pairs"].size());
    EXPECT_EQ(read(text).gpus().size(), expected["matrices"][0]["n"].get<std::size_t>());
    ++read_ones;
  }
  EXPECT_GT(read_ones, 3);
}

}  // namespace
}  // namespace espalier

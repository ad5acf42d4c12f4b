// SPDX-License-Identifier: Apache-2.0
// nvidia-smi topo -p2p and nvidia-smi nvlink -s: what they change about a machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/file.h"
#include "formats/format.h"
#include "formats/peer_tables.h"
#include "tests/error_of.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Topology read(const std::string& text, const std::string& as = "") {
  const Format* format = recognise(text);
  if (format == nullptr || (format->name != "smi-peers" && format->name != "smi-nvlink")) {
    throw Error(ErrorKind::input, "not known as either");
  }
  const Topology filling = as.empty() ? Topology() : load_topology(as);
  return format->read_machine({text, "smi.txt", as.empty() ? nullptr : &filling});
}

std::string errors(const std::string& text, const std::string& as = "") {
  return error_of([&] { read(text, as); }, ErrorKind::input);
}

int links_between(const Topology& machine, const std::string& a, const std::string& b) {
  const Router router(machine, machine.profile("ideal"), LinkScope::fabric);
  const auto hop = router.hop(*machine.find(a), *machine.find(b));
  return hop ? machine.link(hop->link).count : 0;
}

/// All pairs OK but those named, "02" for GPUs 0 and 2.
std::string table(int gpus, const std::vector<std::string>& bad = {}) {
  std::string text = "$ nvidia-smi topo -p2p r\n";
  for (int i = 0; i < gpus; ++i) text += "\tGPU" + std::to_string(i);
  for (int i = 0; i < gpus; ++i) {
    text += "\n GPU" + std::to_string(i);
    for (int j = 0; j < gpus; ++j) {
      const std::string pair = std::to_string(std::min(i, j)) + std::to_string(std::max(i, j));
      text += i == j ? "\tX" : std::ranges::count(bad, pair) > 0 ? "\tCNS" : "\tOK";
    }
  }
  return text + "\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n";
}

TEST(SmiPeers, TakesLinksFromPairsThatAreNotOk) {
  const Topology all = read(table(4), "p3.8xlarge");
  EXPECT_EQ(links_between(all, "gpu0", "gpu3"), 2);
  EXPECT_EQ(all.peer_access, Topology::PeerAccess::all);
  EXPECT_THAT(all.notes, IsEmpty());
  const Topology one = read(table(4, {"03"}), "p3.8xlarge");
  EXPECT_EQ(links_between(one, "gpu0", "gpu3"), 0);
  EXPECT_EQ(links_between(one, "gpu0", "gpu1"), 1);
  EXPECT_EQ(one.peer_access, Topology::PeerAccess::fabric);  // both are on one socket
  EXPECT_THAT(one.notes,
              Contains("no direct copies, so their links are taken away: gpu0-gpu3 (CNS)"));
}

TEST(SmiPeers, ChoosesTheWidestAccessThatHolds) {
  // A DGX-1: GPUs 0 to 3 on one socket. Across, only pairs with NVLinks are OK.
  std::vector<std::string> across;
  for (const char a : std::string("0123")) {
    for (const char b : std::string("4567")) {
      const std::string pair{a, b};
      if (pair != "04" && pair != "15" && pair != "26" && pair != "37") across.push_back(pair);
    }
  }
  const Topology machine = read(table(8, across), "dgx1-v100");
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::socket);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu4"), 2);
}

TEST(SmiPeers, CannotTellPairsOfASwitchApart) {
  std::vector<std::string> first;
  for (int other = 1; other < 8; ++other) first.push_back("0" + std::to_string(other));
  const Topology alone = read(table(8, first), "dgx-a100");
  EXPECT_EQ(links_between(alone, "gpu0", "nvswitch"), 0);
  EXPECT_EQ(links_between(alone, "gpu1", "nvswitch"), 12);
  EXPECT_THAT(read(table(8, {"01"}), "dgx-a100").notes,
              Contains(HasSubstr("which cannot be changed for single pairs: gpu0-gpu1 (CNS)")));
}

TEST(SmiPeers, SaysWhatIsMissing) {
  EXPECT_EQ(errors(table(2)),
            "smi.txt:2: error: a table of peer access says nothing of links\n  help: name the "
            "machine whose GPUs these are: 'smi.txt:as=dgx1-v100'; `nvidia-smi topo -m` says more");
  EXPECT_EQ(errors(table(2), "dgx1-v100"),
            "smi.txt:2: error: the table has 2 GPUs, but dgx1-v100 has 8");
  EXPECT_EQ(errors("GPU0 GPU1 GPU2\nGPU0 X OK MAYBE\nGPU1 OK OK\n", "p3.8xlarge"),
            "smi.txt:1: error: GPU2 is in the header, but has no row\n"
            "smi.txt:2: error: GPU0, column GPU2: 'MAYBE' is no peer access\n"
            "  help: one of: X, OK, CNS, GNS, TNS, NS, DR, U\n"
            "smi.txt:3: error: GPU1 has 2 cells, but there are 3 columns\n"
            "smi.txt:3: error: GPU1, column GPU1: X is for a GPU itself, and only there");
}

std::string links(int gpus, int active, int inactive = 0) {
  std::string text;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += "GPU " + std::to_string(gpu) + ": Tesla V100-SXM2-16GB (UUID: GPU-aa)\n";
    for (int i = 0; i < active; ++i) text += "\t Link " + std::to_string(i) + ": 25.781 GB/s\n";
    for (int i = 0; i < inactive; ++i) {
      text += "\t Link " + std::to_string(active + i) + ": <inactive>\n";
    }
  }
  return text;
}

TEST(SmiNvlink, ComparesTheLinksOfAMachine) {
  EXPECT_THAT(read(links(8, 6), "dgx1-v100").notes, IsEmpty());
  EXPECT_THAT(read(links(8, 5, 1), "dgx1-v100").notes,
              Contains(HasSubstr("gpu0: 5 of its 6 links are up, but not which")));
  const Topology down = read(links(8, 0, 6), "dgx1-v100");
  EXPECT_EQ(links_between(down, "gpu0", "gpu3"), 0);
  EXPECT_THAT(down.notes, Contains("gpu7: none of its 6 links is up"));
  const Topology fewer = read(links(8, 11, 1), "dgx-a100");
  EXPECT_EQ(links_between(fewer, "gpu5", "nvswitch"), 11);
  EXPECT_THAT(read(links(8, 12), "dgx1-v100").notes, Contains(HasSubstr("is it this machine?")));
}

/// Newer versions do not list links where none is up.
TEST(SmiNvlink, KnowsGpusWithoutAny) {
  std::string text;
  for (int gpu = 0; gpu < 4; ++gpu) {
    text += "GPU " + std::to_string(gpu) + ": Tesla V100-SXM2-16GB (UUID: GPU-1)\n" +
            "Unable to retrieve NVLink information as all links are inActive\n";
  }
  const Topology machine = read(text, "p3.8xlarge");
  EXPECT_EQ(links_between(machine, "gpu0", "gpu3"), 0);
  EXPECT_THAT(machine.notes, Contains("gpu3: none of its 5 links is up"));
}

/// Of the catalogue's machines with four such GPUs, that with as many links.
TEST(SmiNvlink, IsTakenForAMachineWithSuchGpus) {
  for (const auto& [text, name] :
       {std::pair(links(8, 6), "dgx1-v100"), {links(4, 5), "p3.8xlarge"}}) {
    const Topology machine = read(text);
    EXPECT_THAT(machine.notes,
                Contains(HasSubstr(std::string("where links lead: taken for ") + name + ",")));
    EXPECT_EQ(links_between(machine, "gpu0", "gpu3"),
              links_between(load_topology(name), "gpu0", "gpu3"));
  }
}

TEST(SmiNvlink, KnowsWhereLinksOfTwoGpusLead) {
  const Topology two = read(links(2, 4));
  EXPECT_EQ(links_between(two, "gpu0", "gpu1"), 4);
  EXPECT_EQ(two.node(1).model, "v100-sxm2");
  EXPECT_THAT(two.notes, Contains("the two GPUs' links are taken to join them"));
  EXPECT_THAT(errors(links(5, 6)), HasSubstr("but not where they lead"));
  EXPECT_EQ(
      errors("GPU 0: Tesla V100 (UUID: a)\n Link 0: fast\n Link 1: -3 GB/s\nGPU 2: Tesla V100\n"
             " Link 0: <inactive>\n"),
      "smi.txt:2: error: 'fast' is neither a rate in GB/s nor <inactive>\n"
      "smi.txt:3: error: '-3' is neither a rate in GB/s nor <inactive>\n"
      "smi.txt:4: error: GPU '2' stands where GPU 1 should");
}

TEST(SmiPeers, PublicTablesAreReadAsExpected) {
  const char* const corpus = std::getenv("ESPALIER_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "ESPALIER_CORPUS does not name a folder of public files";
  const std::filesystem::path folder(corpus);
  int read_ones = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "smi_topo")) {
    const std::string name = entry.path().filename().string();
    const std::string text = read_file(entry.path().string());
    SCOPED_TRACE(name);
    const auto expected = nlohmann::json::parse(
        read_file((folder / "expected" / "smi_topo" / (name + ".json")).string()));
    if (expected["matrices"].empty()) continue;
    const auto& matrix = expected["matrices"][0];
    const bool is_ours = matrix["tool"] == "nvidia-smi topo -p2p";
    EXPECT_EQ(recognise(text)->name == "smi-peers", is_ours);
    if (!is_ours) continue;
    DiagnosticList problems;
    const std::vector<PeerTable> tables = read_peer_tables(text, name, problems);
    EXPECT_TRUE(problems.empty());
    ASSERT_EQ(tables.size(), expected["matrices"].size());
    ASSERT_EQ(tables[0].devices.size(), matrix["gpus"].get<std::size_t>());
    EXPECT_EQ(tables[0].line, matrix["first_line"].get<int>());
    for (std::size_t a = 0; a < tables[0].devices.size(); ++a) {
      for (std::size_t b = a + 1; b < tables[0].devices.size(); ++b) {
        const std::string pair = tables[0].devices[a] + " " + tables[0].devices[b];
        EXPECT_EQ(tables[0].cells[a][b], matrix["pairs"][pair].get<std::string>());
      }
    }
    ++read_ones;
  }
  EXPECT_GT(read_ones, 1);
}

}  // namespace
}  // namespace espalier

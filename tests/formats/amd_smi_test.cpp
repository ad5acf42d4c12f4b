// SPDX-License-Identifier: Apache-2.0
// What `amd-smi topology` prints, as tables, CSV and JSON.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/format.h"
#include "tests/error_of.h"
#include "tests/formats/smi_reading.h"
#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::vector<std::string>>;

/// What was found out about GPUs, in the forms that amd-smi has.
struct Printed {
  Words type, weight, hops, bandwidth, access;

  std::size_t gpus() const { return type.size(); }
  static std::string bus_id(std::size_t gpu) {
    return fmt::format("0000:{:02x}:00.0", 5 + 32 * gpu);
  }

  std::string tables() const {
    std::string text;
    const auto add = [&](const char* title, const Words& words) {
      text += fmt::format("{}\n             ", title);
      for (std::size_t gpu = 0; gpu < gpus(); ++gpu) text += bus_id(gpu) + " ";
      for (std::size_t gpu = 0; gpu < gpus(); ++gpu) {
        text += "\n" + bus_id(gpu) + " ";
        for (const std::string& word : words[gpu]) text += fmt::format("{:<13}", word);
      }
      text += "\n\n";
    };
    add("ACCESS TABLE:", access);
    add("WEIGHT TABLE:", weight);
    add("HOPS TABLE:", hops);
    add("LINK TYPE TABLE:", type);
    add("NUMA BW TABLE:", bandwidth);
    add("DMA TABLE:", access);
    return text + "\nLegend:\n  SELF = Current GPU\n  64,32 = 64 bit and 32 bit atomic support\n";
  }

  std::string csv() const {
    std::string text = "gpu,bdf";
    const std::vector<std::pair<const char*, const Words*>> all = {
        {"link_accessibility", &access}, {"weight", &weight}, {"hops", &hops}, {"link_type", &type},
        {"numa_bandwidth", &bandwidth},  {"atomics", nullptr}};
    for (const auto& [name, unused] : all) {
      for (std::size_t gpu = 0; gpu < gpus(); ++gpu) text += fmt::format(",{}_gpu_{}", name, gpu);
    }
    for (std::size_t gpu = 0; gpu < gpus(); ++gpu) {
      text += fmt::format("\r\n{},{}", gpu, bus_id(gpu));
      for (const auto& [unused, words] : all) {
        for (std::size_t to = 0; to < gpus(); ++to) {
          text += "," + (words == nullptr ? "\"64,32\"" : (*words)[gpu][to]);
        }
      }
    }
    return text + "\r\n";
  }

  std::string json() const {
    std::string text = "[";
    for (std::size_t gpu = 0; gpu < gpus(); ++gpu) {
      text += fmt::format("{}\n    {{\"gpu\": {}, \"bdf\": \"{}\", \"links\": [",
                          gpu == 0 ? "" : ",", gpu, bus_id(gpu));
      for (std::size_t to = 0; to < gpus(); ++to) {
        text += fmt::format(
            R"({}{{"gpu": {}, "bdf": "{}", "weight": {}, "link_status": "{}", "link_type": "{}",)"
            R"( "num_hops": {}, "bandwidth": "{}", "atomics": "64,32"}})",
            to == 0 ? "" : ",\n", to, bus_id(to), weight[gpu][to], access[gpu][to], type[gpu][to],
            hops[gpu][to], bandwidth[gpu][to]);
      }
      text += "]}";
    }
    return text + "\n]\n";
  }

  /// Before ROCm 6.2.
  std::string old_json() const {
    std::string text = "[";
    for (std::size_t gpu = 0; gpu < gpus(); ++gpu) {
      text += fmt::format("{}\n{{\"gpu\": {}", gpu == 0 ? "" : ",", gpu);
      const auto add = [&](const char* name, const Words& words, const char* mark) {
        text += fmt::format(", \"{}\": {{", name);
        for (std::size_t to = 0; to < gpus(); ++to) {
          text += fmt::format("{}\"gpu_{}\": {}{}{}", to == 0 ? "" : ", ", to, mark, words[gpu][to],
                              mark);
        }
        text += "}";
      };
      add("link_accessibility", access, "\"");
      add("weight", weight, "");
      add("hops", hops, "");
      add("link_type", type, "\"");
      add("numa_bandwidth", bandwidth, "\"");
      text += "}";
    }
    return text + "]";
  }

  std::vector<std::string> forms() const { return {tables(), csv(), json(), old_json()}; }
};

/// Two packages of two dies: four links within, one from die 0 to die 2, and nothing else.
Printed two_packages() {
  return {{{"SELF", "XGMI", "XGMI", "XGMI"},
           {"XGMI", "SELF", "XGMI", "XGMI"},
           {"XGMI", "XGMI", "SELF", "XGMI"},
           {"XGMI", "XGMI", "XGMI", "SELF"}},
          {{"0", "15", "15", "30"},
           {"15", "0", "30", "45"},
           {"15", "30", "0", "15"},
           {"30", "45", "15", "0"}},
          {{"0", "1", "1", "1"}, {"1", "0", "1", "1"}, {"1", "1", "0", "1"}, {"1", "1", "1", "0"}},
          {{"N/A", "50000-200000", "50000-50000", "0-0"},
           {"50000-200000", "N/A", "0-0", "0-0"},
           {"50000-50000", "0-0", "N/A", "50000-200000"},
           {"0-0", "0-0", "50000-200000", "N/A"}},
          Words(4, std::vector<std::string>(4, "ENABLED"))};
}

/// Two cards behind one socket, a third behind another.
Printed cards() {
  return {{{"SELF", "PCIE", "PCIE"}, {"PCIE", "SELF", "PCIE"}, {"PCIE", "PCIE", "SELF"}},
          {{"0", "40", "72"}, {"40", "0", "72"}, {"72", "72", "0"}},
          {{"0", "2", "3"}, {"2", "0", "3"}, {"3", "3", "0"}},
          {{"N/A", "N/A", "N/A"}, {"N/A", "N/A", "N/A"}, {"N/A", "N/A", "N/A"}},
          {{"ENABLED", "DISABLED", "DISABLED"},
           {"DISABLED", "ENABLED", "DISABLED"},
           {"DISABLED", "DISABLED", "ENABLED"}}};
}

TEST(AmdSmi, AllFormsAreOneMachine) {
  for (const Printed& printed : {two_packages(), cards()}) {
    const std::string machine = print_topology(read(printed.tables()));
    for (const std::string& form : printed.forms()) {
      EXPECT_EQ(print_topology(read(form)), machine) << form;
    }
  }
}

TEST(AmdSmi, CountsLinksAndLeavesOutPairsWithoutAny) {
  const Topology machine = read(two_packages().tables());
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 4);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu2"), 1);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu3"), 0);
  EXPECT_EQ(links_between(machine, "gpu1", "gpu2"), 0);
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::all);
  EXPECT_THAT(machine.notes, Contains(HasSubstr("3 pairs reach each other over links of other")));
  EXPECT_THAT(machine.notes, Contains(HasSubstr("does not say which GPUs share a socket")));
}

/// Older versions and some GPUs know no bandwidths: weights are 15 for every hop.
TEST(AmdSmi, WithoutBandwidthsWeightsTell) {
  Printed printed = two_packages();
  for (auto& row : printed.bandwidth) {
    for (std::string& word : row) word = "N/A";
  }
  const Topology machine = read(printed.csv());
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 1);
  EXPECT_EQ(links_between(machine, "gpu0", "gpu2"), 1);
  EXPECT_EQ(links_between(machine, "gpu1", "gpu3"), 0);
  // MI355X reports neither.
  for (auto& row : printed.weight) {
    for (std::string& word : row) word = "0";
  }
  for (auto& row : printed.bandwidth) {
    for (std::string& word : row) word = word == "N/A" ? word : "0-0";
  }
  EXPECT_EQ(links_between(read(printed.json()), "gpu1", "gpu3"), 1);
}

TEST(AmdSmi, HopsOverPcieMakeSockets) {
  const Topology machine = read(cards().json());
  const auto numa = [&](const char* gpu) { return machine.node(*machine.find(gpu)).numa; };
  EXPECT_EQ(numa("gpu0"), numa("gpu1"));
  EXPECT_NE(numa("gpu0"), numa("gpu2"));
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::fabric);
  EXPECT_THAT(machine.notes, Contains(HasSubstr("some GPUs have no access to others")));
}

TEST(AmdSmi, ModelsAreThoseOfTheMachineNamed) {
  const Topology mi250 = load_topology("mi250");
  const Topology machine = read(two_packages().tables(), &mi250);
  EXPECT_EQ(machine.node(machine.gpus()[0]).model, mi250.node(mi250.gpus()[0]).model);
  EXPECT_THAT(machine.notes, Not(Contains(HasSubstr("does not name the GPUs"))));
}

/// In a log, after other text; with sentences where a figure could not be found out.
TEST(AmdSmi, ReadsWhatSurroundsTables) {
  Printed printed = two_packages();
  printed.weight[1][0] = "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported";
  const Topology machine = read("$ amd-smi topology\n" + printed.tables() + "$ echo done\ndone\n");
  EXPECT_EQ(links_between(machine, "gpu0", "gpu1"), 4);
  const Topology twice = read(printed.tables() + printed.tables());
  EXPECT_THAT(twice.notes, Contains(HasSubstr("is left out: there is one of the same name")));
}

TEST(AmdSmi, SaysWhatIsWrong) {
  Printed printed = two_packages();
  printed.type[1][0] = "PCIE";
  for (const std::string& form : printed.forms()) {
    EXPECT_THAT(errors(form), HasSubstr("GPU0 and GPU1 reach each other in different ways"));
  }
  printed = two_packages();
  printed.type[1][1] = "XGMI";
  for (const std::string& form : printed.forms()) {
    EXPECT_THAT(errors(form), HasSubstr("GPU1 must have SELF for itself"));
  }
  printed.type[0][2] = "WIRE";
  for (const std::string& form : printed.forms()) {
    EXPECT_THAT(errors(form), HasSubstr("GPU0 and GPU2: 'WIRE' is no type of link"));
  }
}

}  // namespace
}  // namespace espalier

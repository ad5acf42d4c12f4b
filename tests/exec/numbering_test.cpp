// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/numbering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "topologies/load.h"

namespace espalier {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

GpuGraph graph(const char* machine) {
  const Topology topology = load_topology(machine);
  return graph_of(topology, topology.gpus());
}

/// The same GPUs under other numbers: what was `numbers[i]` is i.
GpuGraph renumbered(const GpuGraph& old, const std::vector<int>& numbers) {
  GpuGraph made = old;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto from = static_cast<std::size_t>(numbers[i]);
    made.models[i] = old.models[from];
    made.to_switches[i] = old.to_switches[from];
    for (std::size_t j = 0; j < numbers.size(); ++j) {
      made.nvlinks[i][j] = old.nvlinks[from][static_cast<std::size_t>(numbers[j])];
    }
  }
  return made;
}

std::vector<int> first(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Numbering, ReadsTheNvlinksOfMachines) {
  const GpuGraph dgx1 = graph("dgx1-v100");
  EXPECT_THAT(dgx1.nvlinks[0], ElementsAre(0, 1, 1, 2, 2, 0, 0, 0));
  EXPECT_THAT(dgx1.to_switches, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(dgx1.models[7], "v100-sxm2");
  const GpuGraph dgx2 = graph("dgx2");
  EXPECT_EQ(dgx2.size(), 16);
  EXPECT_THAT(dgx2.to_switches, Each(6));
  EXPECT_EQ(dgx2.nvlinks[0][1], 0);
}

TEST(Numbering, FindsTheDevicesThatAMachineMeans) {
  std::mt19937 random(5);
  for (const char* name :
       {"dgx1-v100", "dgx1-p100", "p3.16xlarge", "dgx2", "dgx-a100", "v100-pcie"}) {
    const GpuGraph machine = graph(name);
    std::vector<int> numbers = first(machine.size());
    for (int draw = 0; draw < 20; ++draw) {
      const GpuGraph computer = renumbered(machine, numbers);
      const auto devices = matching_devices(machine, computer);
      ASSERT_TRUE(devices.has_value()) << name;
      EXPECT_THAT(contradictions(machine, computer, *devices), IsEmpty()) << name;
      if (draw == 0) {
        EXPECT_EQ(*devices, numbers) << "nothing was to be changed on " << name;
      }
      std::ranges::shuffle(numbers, random);
    }
  }
}

TEST(Numbering, FindsTheGpusThatDevicesAre) {
  std::mt19937 random(6);
  const GpuGraph machine = graph("dgx1-v100");
  std::vector<int> numbers = first(machine.size());
  for (int trial = 0; trial < 10; ++trial) {
    std::ranges::shuffle(numbers, random);
    const GpuGraph computer = renumbered(machine, numbers);
    const std::vector<int> devices = {trial % 8, (trial + 3) % 8, (trial + 5) % 8};
    const auto gpus = matching_gpus(machine, computer, devices);
    ASSERT_TRUE(gpus);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_EQ(machine.nvlinks[(*gpus)[i]][(*gpus)[j]],
                  computer.nvlinks[devices[i]][devices[j]]);
      }
    }
  }
  EXPECT_EQ(matching_gpus(machine, graph("dgx2"), {0, 1}), std::nullopt);
}

TEST(Numbering, FindsGpusWithTheRightNumbers) {
  const GpuGraph machine = graph("dgx1-v100");
  const GpuGraph computer = renumbered(machine, {3, 1, 2, 0, 4, 5, 6, 7});
  EXPECT_THAT(rightly_numbered(machine, computer, 4), testing::Optional(ElementsAre(0, 1, 3, 5)));
  EXPECT_EQ(rightly_numbered(machine, computer, 8), std::nullopt);
  EXPECT_THAT(rightly_numbered(machine, machine, 8), testing::Optional(first(8)));
}

TEST(Numbering, FindsNoDevicesOnAnotherMachine) {
  EXPECT_FALSE(matching_devices(graph("dgx1-v100"), graph("dgx-a100")).has_value());
  EXPECT_FALSE(matching_devices(graph("dgx1-v100"), graph("dgx1-p100")).has_value());
  EXPECT_FALSE(matching_devices(graph("dgx2"), graph("dgx1-v100")).has_value());  // too few
}

TEST(Numbering, SaysWhatContradicts) {
  const GpuGraph machine = graph("dgx1-v100");
  GpuGraph computer = machine;
  computer.names = graph_of(std::vector<std::string>(8), {}).names;
  EXPECT_THAT(contradictions(machine, computer, first(8)), IsEmpty());
  computer.nvlinks[3][0] = computer.nvlinks[0][3] = 1;
  computer.nvlinks[4][0] = computer.nvlinks[0][4] = 0;
  computer.models[7] = "NVIDIA A100-SXM4-80GB";
  computer.to_switches[7] = 12;
  EXPECT_THAT(contradictions(machine, computer, first(8)),
              ElementsAre("GPU 0 and GPU 3 have 1 NVLink between them, gpu0 and gpu3 2 NVLinks",
                          "GPU 0 and GPU 4 have no NVLink between them, gpu0 and gpu4 2 NVLinks",
                          "GPU 7 is called NVIDIA A100-SXM4-80GB, gpu7 is a v100-sxm2",
                          "GPU 7 has 12 NVLinks to switches, gpu7 no NVLink"));
}

TEST(Numbering, KnowsModelsByWhatCudaCallsThem) {
  const auto agree = [](const std::string& called, const std::string& model) {
    const std::vector<std::string> here{called};
    const std::vector<std::string> there{model};
    return contradictions(graph_of(there, {}), graph_of(here, {}), {0}).empty();
  };
  EXPECT_TRUE(agree("Tesla V100-SXM2-16GB", "v100-sxm2"));
  EXPECT_TRUE(agree("Tesla K80", "gk210"));
  EXPECT_TRUE(agree("NVIDIA GB200", "b200"));
  EXPECT_TRUE(agree("NVIDIA H200", "NVIDIA H200"));
  EXPECT_TRUE(agree("NVIDIA H100 80GB HBM3", "h100-sxm5"));
  EXPECT_TRUE(agree("Graphics Device", "h100-sxm5"));  // says nothing
  EXPECT_TRUE(agree("NVIDIA H200", ""));
  EXPECT_FALSE(agree("NVIDIA H200", "h100-sxm5"));
  EXPECT_FALSE(agree("Tesla P100-SXM2-16GB", "v100-sxm2"));
}

TEST(Numbering, LeavesChangedAndGeneralMachinesAlone) {
  const auto checked = [](const char* name) {
    const Topology topology = load_topology(name);
    return can_be_checked(topology, graph_of(topology, topology.gpus()));
  };
  EXPECT_TRUE(checked("dgx1-v100"));
  EXPECT_TRUE(checked("v100-pcie"));
  EXPECT_FALSE(checked("dgx1-v100:without=gpu0-gpu1"));
  EXPECT_FALSE(checked("dgx1-v100:nvlink2.gbps=x2"));
  EXPECT_FALSE(checked("full:n=4"));
}

}  // namespace
}  // namespace espalier

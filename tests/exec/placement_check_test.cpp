// SPDX-License-Identifier: Apache-2.0
// Where processes and their GPUs are against where a machine has its ranks: stand-ins for CUDA and
// NVML, processes played by threads.
#include "exec/mpi_cuda/placement_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/exec/fake_nvml.h"
#include "tests/exec/on_gpus.h"
#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using cuda::GpuPlace;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A machine, and the processes that run on it.
class PlacementCheck : public testing::Test {
 protected:
  explicit PlacementCheck(const std::string& machine = "dgx1-v100:nodes=2")
      : machine_(load_topology(machine)),
        router_(machine_, machine_.profile("kernel")),
        nvml_(FAKE_NVML, nvlinks_of(graph_of(machine_, gpus_of_host(machine_, 0)))) {
    asked_.choice.as_placed = true;
    asked_.behaviour = [this](int) {
      return fake_cuda::Behaviour{.gpus = 8, .model = "Tesla V100-SXM2-16GB", .buses = buses_};
    };
  }

  static FakeNvlinks nvlinks_of(const GpuGraph& graph) {
    return {.between = graph.nvlinks, .to_switches = graph.to_switches};
  }

  /// Processes whose ranks are on these GPUs of the machine.
  const Asked& on(const std::vector<int>& gpus) {
    asked_.target = {&router_, place_ranks(router_, gpus), nullptr};
    return asked_;
  }
  std::vector<std::string> notes(const std::vector<int>& gpus, std::vector<int> devices = {}) {
    asked_.choice.devices = std::move(devices);
    const RunReport report = run_on_gpus(ring_program(static_cast<int>(gpus.size()), false),
                                         {.size_bytes = 1 << 12}, on(gpus));
    EXPECT_EQ(report.executed->wrong, 0);
    return report.executed->notes;
  }

  const Topology machine_;
  const Router router_;
  const FakeNvml nvml_;
  std::vector<int> buses_;
  Asked asked_;
};

TEST_F(PlacementCheck, HostsOfTheMachineAreComputers) {
  EXPECT_THAT(refusal(4, on({0, 1, 8, 9}), ErrorKind::usage),
              HasSubstr("ranks 0 and 2 are on one computer, but on two hosts of "
                        "'dgx1-v100:nodes=2'"));
  // Who names GPUs means them.
  EXPECT_THAT(notes({0, 1, 8, 9}, {0, 1, 0, 1}), Contains(HasSubstr("are on one computer, but")));
}

TEST_F(PlacementCheck, RightNumbersAreSilent) {
  EXPECT_THAT(notes({3, 0}), Not(Contains(HasSubstr("GPUs are"))));
}

TEST_F(PlacementCheck, WrongNumbersAreAnErrorThatKnowsTheRightOnes) {
  buses_ = {3, 1, 2, 0, 4, 5, 6, 7};
  EXPECT_THAT(
      refusal(4, on({0, 1, 2, 4}), ErrorKind::usage),
      HasSubstr("error: the GPUs are not those of 'dgx1-v100:nodes=2' with these numbers: "));
  EXPECT_THAT(refusal(4, on({0, 1, 2, 4}), ErrorKind::usage),
              HasSubstr("help: --devices 3,1,2,4 are these GPUs, as CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(notes({0, 1, 2, 4}, {3, 1, 2, 4}), Not(Contains(HasSubstr("GPUs are"))));
}

TEST_F(PlacementCheck, NamedDevicesKnowWhichGpusTheyAre) {
  const std::vector<std::string> all = notes({0, 4}, {0, 1});
  EXPECT_THAT(all.back(), HasSubstr("with these numbers: GPU 0 and GPU 1 have 1 NVLink"));
  EXPECT_THAT(all.back(), HasSubstr("; --gpus 0,1 are what these devices are there"));
}

TEST_F(PlacementCheck, AnotherModelIsAnError) {
  asked_.behaviour = [](int) {
    return fake_cuda::Behaviour{.gpus = 8, .model = "NVIDIA A100-SXM4-80GB"};
  };
  EXPECT_THAT(refusal(2, on({0, 1}), ErrorKind::usage),
              HasSubstr("GPU 0 is called NVIDIA A100-SXM4-80GB, n0.gpu0 is a v100-sxm2"));
}

/// Places of processes on several computers, of any names.
class Places : public PlacementCheck {
 protected:
  static std::vector<GpuPlace> places(const std::vector<std::string>& computers,
                                      const std::vector<int>& gpus) {
    std::vector<GpuPlace> all;
    for (std::size_t rank = 0; rank < computers.size(); ++rank) {
      all.push_back({"ubuntu", computers[rank], cuda::bus_id_of(gpus[rank]), gpus[rank]});
    }
    return all;
  }
  /// What rank 0 is told; empty where nobody is.
  template <class Work>
  static std::string told(int processes, const Work& work) {
    std::string message;
    in_processes(processes, [&](const Processes& all) {
      fake_cuda::begin_process();
      fake_cuda::reset({.gpus = 8, .buses = {3, 1, 2, 0, 4, 5, 6, 7}});
      try {
        work(all);
      } catch (const ToldElsewhere&) {
      } catch (const Error& error) {
        message = error.what();
      }
    });
    return message;
  }
};

TEST_F(Places, ComputersOfOneNameAreNotOne) {
  const auto require = [](const std::vector<std::string>& computers) {
    return told(2, [&](const Processes& all) {
      cuda::require_gpus_for(all, {}, places(computers, {0, 0}));
    });
  };
  EXPECT_EQ(require({"a", "b"}), "");
  EXPECT_THAT(require({"a", "a"}),
              HasSubstr("there are too few GPUs: ranks 0 and 1 would share one"));
}

TEST_F(Places, AHostOfTheMachineIsOneComputer) {
  const Target target{&router_, place_ranks(router_, {0, 1})};
  EXPECT_THAT(told(2,
                   [&](const Processes& all) {
                     cuda::PlacementCheck().check(all, target, places({"a", "b"}, {0, 1}), false);
                   }),
              HasSubstr("ranks 0 and 1 are on two computers, but on one host of"));
}

TEST_F(Places, EveryComputerIsChecked) {
  const Target target{&router_, place_ranks(router_, {1, 2, 8, 12})};
  EXPECT_THAT(told(4,
                   [&](const Processes& all) {
                     cuda::PlacementCheck().check(
                         all, target, places({"a", "a", "b", "b"}, {1, 2, 0, 4}), false);
                   }),
              testing::AllOf(HasSubstr("error: node7: the GPUs are not those of"),
                             HasSubstr("help: --devices 1,2,3,4 are these GPUs")));
}

}  // namespace
}  // namespace espalier

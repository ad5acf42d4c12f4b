// SPDX-License-Identifier: Apache-2.0
// What --topology says of GPUs against what CUDA and NVML say, both of them stand-ins.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/numbering.h"
#include "tests/error_of.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/fake_nvml.h"
#include "tests/exec/test_programs.h"
#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

/// The NVLinks of a machine whose GPU i is at PCI bus i.
FakeNvlinks nvlinks_of(const Topology& machine) {
  const GpuGraph graph = graph_of(machine, machine.gpus());
  return {.between = graph.nvlinks, .to_switches = graph.to_switches};
}

class MachineCheck : public testing::Test {
 protected:
  MachineCheck()
      : machine_(load_topology("dgx1-v100")), router_(machine_, machine_.profile("kernel")) {}
  ~MachineCheck() override { fake_cuda::reset({}); }

  Target target(const std::vector<int>& gpus) const {
    return {&router_, place_ranks(router_, gpus)};
  }

  /// What is noted beside the placement when that many ranks run.
  static std::vector<std::string> notes(const Target& target, std::vector<int> devices = {}) {
    const auto ranks = static_cast<int>(target.placement.ranks.size());
    CudaBackend backend(std::move(devices), UnnamedDevices::as_placed);
    const RunReport report =
        backend.run(ring_program(ranks, false), target, {.size_bytes = 4 * 64});
    EXPECT_EQ(report.executed->wrong, 0);
    const std::vector<std::string>& all = report.executed->notes;
    return {all.begin() + ranks, all.end()};
  }
  static std::string refusal(const Target& target) {
    return error_of([&] { notes(target); }, ErrorKind::usage);
  }

  const Topology machine_;
  Router router_;
};

TEST_F(MachineCheck, RightNumbersAreSilent) {
  const FakeNvml nvml(FAKE_NVML, nvlinks_of(machine_));
  fake_cuda::reset({.gpus = 8, .model = "Tesla V100-SXM2-16GB"});
  EXPECT_THAT(notes(target({0, 1, 2, 3, 4, 5, 6, 7})), IsEmpty());
  EXPECT_THAT(notes(target({3, 0, 4, 7})), IsEmpty());
  EXPECT_THAT(notes(target({3, 0}), {3, 0}), IsEmpty());
  EXPECT_THAT(notes(target({1, 0}), {6, 6}), IsEmpty());  // they share a GPU
}

// CUDA numbers GPUs by speed, say, and PCI addresses are in the order of the machine's numbers.
TEST_F(MachineCheck, WrongNumbersAreAnErrorThatKnowsTheRightOnes) {
  const FakeNvml nvml(FAKE_NVML, nvlinks_of(machine_));
  fake_cuda::reset({.gpus = 8, .buses = {3, 1, 2, 0, 4, 5, 6, 7}});
  EXPECT_EQ(refusal(target({0, 1, 2, 3, 4, 5, 6, 7})),
            "error: the GPUs are not those of 'dgx1-v100' with these numbers: GPU 0 and GPU 2 have "
            "2 NVLinks between them, gpu0 and gpu2 1 NVLink; GPU 2 and GPU 3 have 1 NVLink between "
            "them, gpu2 and gpu3 2 NVLinks; GPU 0 and GPU 4 have no NVLink between them, gpu0 and "
            "gpu4 2 NVLinks; and 3 more\n  help: --devices 3,1,2,0,4,5,6,7 are these GPUs, as "
            "CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them");
  EXPECT_THAT(notes(target({0, 1, 2, 3, 4, 5, 6, 7}), {3, 1, 2, 0, 4, 5, 6, 7}), IsEmpty());
  // Between these the numbers do not matter.
  EXPECT_THAT(notes(target({5, 6})), IsEmpty());
  EXPECT_THAT(refusal(target({4, 3})), HasSubstr("help: --devices 4,0 are these GPUs, as CUDA_"));
}

TEST_F(MachineCheck, FindsTheRightNumbersByTheLinksAlone) {
  FakeNvlinks links = nvlinks_of(machine_);
  std::swap(links.between[0], links.between[6]);
  for (std::vector<int>& row : links.between) std::swap(row[0], row[6]);
  const FakeNvml nvml(FAKE_NVML, links);
  fake_cuda::reset({.gpus = 8});
  const GpuGraph machine = graph_of(machine_, machine_.gpus());
  GpuGraph computer = machine;
  computer.nvlinks = links.between;
  const auto devices = matching_devices(machine, computer);
  ASSERT_TRUE(devices.has_value());
  EXPECT_THAT(
      refusal(target({0, 1, 2, 3, 4, 5, 6, 7})),
      EndsWith(fmt::format("\n  help: --devices {} are these GPUs", fmt::join(*devices, ","))));
  EXPECT_THAT(notes(target({0, 1, 2, 3, 4, 5, 6, 7}), *devices), IsEmpty());
}

TEST_F(MachineCheck, SaysThatItIsAnotherMachine) {
  FakeNvlinks links{.between = {8, std::vector<int>(8, 0)}, .to_switches = std::vector<int>(8, 12)};
  const FakeNvml nvml(FAKE_NVML, links);
  fake_cuda::reset({.gpus = 8, .model = "NVIDIA A100-SXM4-80GB"});
  EXPECT_EQ(
      refusal(target({0, 1})),
      "error: the GPUs are not those of 'dgx1-v100' with these numbers: GPU 0 is called NVIDIA "
      "A100-SXM4-80GB, gpu0 is a v100-sxm2; GPU 0 has 12 NVLinks to switches, gpu0 no NVLink; "
      "GPU 1 is called NVIDIA A100-SXM4-80GB, gpu1 is a v100-sxm2; and 2 more\n  help: no GPUs "
      "of this computer are joined like that; --devices runs the program on any");
  // Who names them means them, and is told.
  EXPECT_THAT(notes(target({0, 1}), {0, 1}),
              ElementsAre(HasSubstr("the GPUs are not those of 'dgx1-v100' with these numbers")));
}

TEST_F(MachineCheck, NamedDevicesKnowWhichGpusTheyAre) {
  const FakeNvml nvml(FAKE_NVML, nvlinks_of(machine_));
  fake_cuda::reset({.gpus = 8});
  EXPECT_THAT(notes(target({0, 4}), {0, 1}),
              ElementsAre(HasSubstr("; --gpus 0,1 are what these devices are there")));
}

// A link has failed, so that no GPUs are joined like those that were asked for.
TEST_F(MachineCheck, KnowsGpusOfTheMachineThatAreRight) {
  FakeNvlinks links = nvlinks_of(machine_);
  for (int gpu = 0; gpu < 4; ++gpu) links.between[gpu][gpu + 4] = links.between[gpu + 4][gpu] = 0;
  const FakeNvml nvml(FAKE_NVML, links);
  fake_cuda::reset({.gpus = 8});
  EXPECT_THAT(refusal(target({0, 1, 4, 5})),
              EndsWith("\n  help: no GPUs of this computer are joined like that, but --gpus "
                       "0,1,2,3 are joined as the machine says"));
}

TEST_F(MachineCheck, SaysWhatCouldNotBeChecked) {
  fake_cuda::reset({.gpus = 8, .model = "Tesla V100-SXM2-16GB"});
  const std::string unchecked = "whether the GPUs are joined as 'dgx1-v100' says was not checked: ";
  EXPECT_THAT(notes(target({0, 1})),
              ElementsAre(unchecked + "there is no NVML (libnvidia-ml.so.1) to ask"));
  FakeNvlinks links = nvlinks_of(machine_);
  links.are_veiled = true;
  const FakeNvml nvml(FAKE_NVML, links);
  EXPECT_THAT(notes(target({0, 1})),
              ElementsAre(unchecked + "NVML does not say where those of GPU 7 lead"));
  // The model can be checked all the same.
  fake_cuda::reset({.gpus = 8, .model = "Tesla P100-SXM2-16GB"});
  EXPECT_THAT(refusal(target({0, 1})), HasSubstr("GPU 0 is called Tesla P100-SXM2-16GB"));
}

}  // namespace
}  // namespace espalier

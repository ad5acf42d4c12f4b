// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/numbering.h"

namespace espalier::cuda {

/// GPUs of a machine, each with the one of this computer that stands for it.
struct MachineGpus {
  const Topology& machine;
  std::vector<NodeId> gpus;  ///< of one host: those of ranks, and of relays after them
  std::vector<int> devices;  ///< as CUDA numbers them; below the number of this computer's
  /// By people, who mean them; else they have the numbers of `gpus` in their host.
  bool are_named = false;
  int relays = 0;  ///< how many of them are
};

/// What CUDA and NVML say of them.
struct MachineFinding {
  std::string unchecked;           ///< what could not be, and why; empty: everything was
  std::vector<std::string> wrong;  ///< contradictions, a sentence each
  /// Where something is wrong, what would be right: other devices for these GPUs, in their order.
  /// Empty: there are none.
  std::vector<int> devices;
  bool are_by_bus = false;  ///< devices as CUDA_DEVICE_ORDER=PCI_BUS_ID numbers them
  /// Or other GPUs of the machine, by their numbers in it: those that named devices are, or whose
  /// own numbers are right. Empty: there are none.
  std::vector<int> gpus;
};

/// "the GPUs are not those of 'dgx1-v100' with these numbers: ..."
std::string contradiction_text(const Topology& machine, const std::vector<std::string>& wrong);

/// What would be right in place of it, in a sentence.
std::string advice(const MachineFinding& finding, bool are_named);

/// Compares what a topology says of its GPUs with what CUDA and NVML say of this computer's.
class MachineCheck {
 public:
  /// By model, and by NVLinks where NVML tells.
  MachineFinding find(const MachineGpus& asked);

  /// Throws Error{usage} where something is wrong, with what would be right; but where they are
  /// named, says so in a note. A note also says what could not be checked. Answers are kept.
  std::vector<std::string> check(const MachineGpus& asked);

 private:
  /// The GPUs of this computer.
  struct Computer {
    GpuGraph graph;
    std::vector<int> by_bus;      ///< in the order of their PCI addresses
    std::string unknown_nvlinks;  ///< why they are not known; empty: they are, and in the graph
  };
  static Computer survey();
  GpuGraph comparable(const Topology& machine, const std::vector<NodeId>& gpus) const;
  void find_devices(const MachineGpus& asked, MachineFinding& finding) const;
  void find_gpus(const MachineGpus& asked, MachineFinding& finding) const;
  std::vector<std::string> compare(const MachineGpus& asked);

  std::optional<Computer> computer_;  ///< once it was asked for
  std::map<std::pair<std::string, std::pair<std::vector<NodeId>, std::vector<int>>>,
           std::vector<std::string>>
      notes_;  ///< by machine, GPUs and devices
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exec/cuda/numbering.h"

namespace espalier::cuda {

/// Compares what a topology says of its GPUs with what CUDA and NVML say of this computer's.
class MachineCheck {
 public:
  /// Whether GPU devices[i], as CUDA numbers it, is gpus[i] of the machine: by model, and by
  /// NVLinks where NVML tells. Throws Error{usage} where it is not, with the devices that are these
  /// GPUs if there are some; but where `are_named`, by people who mean them, says so in a note. A
  /// note also says that there is no NVML to ask. Answers are kept. \pre no device exceeds those of
  /// this computer
  std::vector<std::string> check(const Topology& machine, const std::vector<NodeId>& gpus,
                                 const std::vector<int>& devices, bool are_named);

 private:
  /// The GPUs of this computer.
  struct Computer {
    GpuGraph graph;
    std::vector<int> by_bus;      ///< in the order of their PCI addresses
    std::string unknown_nvlinks;  ///< why they are not known; empty: they are, and in the graph
  };
  static Computer survey();
  GpuGraph comparable(const Topology& machine, const std::vector<NodeId>& gpus) const;
  std::vector<std::string> compare(const Topology& machine, const std::vector<NodeId>& gpus,
                                   const std::vector<int>& devices, bool are_named);
  std::string advice(const Topology& machine, const std::vector<NodeId>& gpus) const;

  std::optional<Computer> computer_;  ///< once it was asked for
  std::map<std::pair<std::string, std::pair<std::vector<NodeId>, std::vector<int>>>,
           std::vector<std::string>>
      notes_;  ///< by machine, GPUs and devices
};

}  // namespace espalier::cuda

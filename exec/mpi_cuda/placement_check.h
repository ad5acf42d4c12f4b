// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exec/cuda/machine_check.h"
#include "exec/mpi/processes.h"
#include "exec/mpi_cuda/routes.h"
#include "run/target.h"

namespace espalier::cuda {

/// Compares where processes and their GPUs are with where a machine has its ranks.
class PlacementCheck {
 public:
  /// All processes call it together, with the places of all. Throws in all of them Error{usage}
  /// where ranks of one host of the machine are on several computers or the other way round, and
  /// where GPUs are not those of the machine, with what would be right; but where GPUs `are_named`,
  /// by people who mean them, says so in notes. What could not be checked is a note, too.
  /// \pre the target has a machine
  std::vector<std::string> check(const Processes& processes, const Target& target,
                                 const std::vector<GpuPlace>& places, bool are_named);

 private:
  MachineCheck machine_;
};

}  // namespace espalier::cuda

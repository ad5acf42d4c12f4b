// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/nccl_machine.h"

namespace espalier {

/// A machine in the terms of NCCL's files, and what these have no terms for.
struct NcclDescription {
  NcclSystem system;
  std::vector<std::string> notes;
};

/// All hosts of a machine. Bus ids are made up. Throws Error{unsupported} with everything that
/// stands in the way: GPUs that NCCL does not know with links between them, no GPU, or far more in
/// a host than NCCL reads of one. Private to the room.
NcclDescription nccl_system_of(const Topology& machine);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "ir/program.h"
#include "sim/machine_resources.h"

namespace espalier {

/// What ops that add up operands of several peers lose at the beginning of their lanes, where
/// everybody reads the peers in the same order (Protocol::lockstep_bytes). Of k peers the first one
/// then serves all readers that share a link to it, while the links to the others idle; then the
/// second one does, and so on: what would take t with all at once takes as many times t as there
/// are such readers, k at most. Peers that are each read over links of their own delay nobody.
class Lockstep {
 public:
  /// Refers to `program`. `units`: what a lane reads of each peer in this way; 0: nothing.
  Lockstep(const Program& program, double units, double bytes_per_unit, MachineResources& machine);

  /// Of an op of the program.
  double seconds(const Op& op) const {
    if (op.src_count < 2 || delays_s_.empty()) return 0;
    const auto found = delays_s_.find(&op);
    return found == delays_s_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<const Op*, double> delays_s_;
};

}  // namespace espalier

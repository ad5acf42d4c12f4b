// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "ir/program.h"
#include "sim/machine_resources.h"

namespace espalier {

/// Whether an op adds up what it reads from several other places.
bool reads_several_peers(const Program& program, const Op& op);

/// What ops that add up operands of several peers lose at the beginning of their lanes, where
/// everybody reads the peers in the same order (Protocol::lockstep_bytes). Of k peers the first one
/// then serves all readers that share a link to it, while the links to the others idle; then the
/// second one does, and so on: what would take t with all at once takes as many times t as there
/// are such readers, k at most. Peers that are each read over links of their own delay nobody.
class Lockstep {
 public:
  /// How an op reads, whatever the size of the message.
  struct Reads {
    double units_before = 0;   ///< of each peer, that its lane has read in this way
    double lost_s_a_byte = 0;  ///< 0: nothing is lost
    bool operator==(const Reads&) const = default;
  };

  /// Refers to `program`. `units`: what a lane reads of each peer in this way; 0: nothing.
  Lockstep(const Program& program, double units, double bytes_per_unit, MachineResources& machine);

  /// Whether no op loses anything.
  bool is_none() const { return reads_.empty(); }
  /// Of an op of the program.
  double seconds(const Op& op) const {
    return op.src_count < 2 || reads_.empty() ? 0 : seconds(of(op), op, units_, bytes_per_unit_);
  }
  /// Of one that reads so. `units`, `bytes_per_unit`: as above.
  static double seconds(const Reads& reads, const Op& op, double units, double bytes_per_unit);
  /// Nothing is lost by one that is not among the first `units` of its lane.
  Reads of(const Op& op) const {
    const auto found = reads_.find(&op);
    return found == reads_.end() ? Reads{} : found->second;
  }

 private:
  const double units_;
  const double bytes_per_unit_;
  std::unordered_map<const Op*, Reads> reads_;
};

}  // namespace espalier

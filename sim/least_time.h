// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "run/target.h"
#include "sim/block_map.h"
#include "sim/class_engine.h"
#include "sim/machine_resources.h"
#include "sim/op_costs.h"
#include "sim/op_graph.h"
#include "sim/time_unit.h"

namespace espalier {

/// What is left of a simulation takes at least, so that one that will be too slow is found out
/// before it has become so. Two bounds, which hold whoever shares what with whom:
///
/// - An op lasts at least its start-up and its bytes at the rate of its narrowest link, or of its
///   block. The ops that wait for it, on its lane or for its data, follow it.
/// - A link carries all that it has yet to carry at its full rate.
///
/// Costs a look at every op before the simulation, and one when it begins. Ops in switches, memory,
/// reductions and latencies count for nothing: the bounds are lower without them.
class LeastTime {
 public:
  /// Refers to `program` and `target`. `limit_s`: what takes longer is too slow.
  LeastTime(const Program& program, const OpGraph& graph, const BlockMap& blocks,
            const Target& target, const TimeUnit& unit, double message_bytes, double limit_s);

  /// Whether the simulation ends after the limit, now that an op begins: to be told of every op, in
  /// the order of time. `start_s`: when the op starts, `now_s` or later.
  bool is_too_slow(OpId id, double now_s, double start_s);

 private:
  void find_transfers(const Op& op);
  double least_s(const Op& op);
  template <class Visit>
  void for_each_load(const Op& op, Visit&& visit);

  const Program& program_;
  const double limit_s_;
  ClassEngine unused_;        ///< resources are numbered by it; nothing flows
  MachineResources machine_;  ///< not the simulation's, where an op's turn numbers its links
  OpCosts costs_;
  std::vector<Transfer> transfers_;  ///< of the op that is looked at
  std::vector<double> tails_s_;      ///< by op: from its start to the end of what waits for it
  std::vector<double> left_s_;       ///< by resource: links, for what they carry of ops not begun
};

}  // namespace espalier

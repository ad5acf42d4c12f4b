// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "sim/op_flows.h"
#include "sim/op_graph.h"

namespace espalier {

/// What is left of a simulation takes at least, so that one that will be too slow is found out
/// before it has become so. Two bounds, which hold whoever shares what with whom:
///
/// - An op lasts at least as long as its flows would alone, each at the rate of the narrowest of
///   what it uses. The ops that wait for it, on its lane or for its data, follow it.
/// - What carries flows has yet to carry all of those that have not begun, at its full rate at
/// best.
///
/// Costs a look at every op before the simulation, and one when it begins. Latencies after the
/// flows count for nothing: the bounds are lower without them.
class LeastTime {
 public:
  /// Refers to `flows`. `limit_s`: what takes longer is too slow.
  LeastTime(const Program& program, const OpGraph& graph, OpFlows& flows, double limit_s);

  /// Whether the simulation ends after the limit, now that an op begins: to be told of every op, in
  /// the order of time. `start_s`: when the op starts, `now_s` or later.
  bool is_too_slow(OpId id, double now_s, double start_s);

 private:
  double least_s(const FlowList& list) const;
  template <class Visit>
  void for_each_load(OpId id, Visit&& visit);

  const double limit_s_;
  OpFlows& flows_;
  std::vector<double> tails_s_;  ///< by op: from its start to the end of what waits for it
  std::vector<double> left_s_;   ///< by resource, for what it carries of ops not begun
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "sim/lane_kinds.h"
#include "sim/op_shapes.h"
#include "sim/sent_data.h"

namespace espalier {

/// The ops of one lane of each kind, as a program that takes as long as the whole.
struct OneOfAlike {
  /// \pre kinds.are_few()
  OneOfAlike(const LaneKinds::Ops& whole, const LaneKinds& kinds);

  /// Its operands are those of the op that stands for the others. Where they lie says nothing of
  /// who waits for whom: the dependencies are complete.
  Program program;
  std::vector<bool> awaits_result;  ///< by index into the dependencies: see OpGraph
  LandingsOf landings;
  SentData sent;
  std::vector<std::uint32_t> shapes;  ///< by op, counted from 0
  std::vector<OpId> examples;         ///< by shape: an op
  /// By shape: a resource is named as often as the flows of all alike ops use it.
  std::vector<OpShapes::Shape> flows;
  std::vector<OpId> number;    ///< by op of the whole: what it is in the program
  std::int64_t transfers = 0;  ///< of the whole

 private:
  struct Kinds;
  void add_ops(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of);
  void add_waits(const LaneKinds::Ops& whole, const std::vector<OpId>& originals);
  void add_flows(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of);
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"
#include "sim/lane_kinds.h"
#include "sim/op_shapes.h"
#include "sim/sent_data.h"

namespace espalier {

/// The ops of one lane of each kind, as a program that takes as long as the whole. It holds for
/// whatever ops cost, as long as lanes are of these kinds.
struct OneOfAlike {
  /// \pre kinds.are_few()
  OneOfAlike(const LaneKinds::Ops& whole, const LaneKinds& kinds);

  /// By shape, those of the op of the whole that the example is.
  std::vector<OpShapes::Shape> flows_of_examples(const OpShapes& whole) const;
  /// By shape, of these: a resource is named as often as the flows of all alike ops use it.
  std::vector<OpShapes::Shape> flows_of_all(const std::vector<OpShapes::Shape>& of_examples) const;
  /// Of the whole.
  std::int64_t transfers(OpShapes& whole) const;
  /// The shape of the whole's that one of the program's is.
  std::uint32_t shape_of_whole(std::uint32_t shape, const ShapeNumbers& whole) const {
    return whole.of(stands_for_[shape].example);
  }

  /// Its operands are those of the op that stands for the others. Where they lie says nothing of
  /// who waits for whom: the dependencies are complete.
  Program program;
  std::vector<bool> awaits_result;  ///< by index into the dependencies: see OpGraph
  LandingsOf landings;
  SentData sent;
  std::vector<std::uint32_t> shapes;  ///< by op, counted from 0
  std::vector<OpId> examples;         ///< by shape: an op
  std::vector<OpId> number;           ///< by op of the whole: what it is in the program

 private:
  struct Kinds;
  /// Of the whole, for which it stands.
  struct StandsFor {
    OpId example = 0;       ///< an op of the shape
    std::size_t lanes = 0;  ///< that are alike
  };
  void add_ops(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of);
  void add_waits(const LaneKinds::Ops& whole, const std::vector<OpId>& originals);
  void add_shapes(const LaneKinds::Ops& whole, const LaneKinds& kinds, const Kinds& of);
  void add_resources(const LaneKinds& kinds);
  FlowList of_all(const FlowList& list, std::size_t lanes, std::vector<std::size_t>& uses) const;

  std::vector<StandsFor> stands_for_;            ///< by shape
  std::vector<std::int64_t> ops_of_shape_;       ///< of the whole
  std::vector<std::uint32_t> kind_of_resource_;  ///< by resource of the whole's flows
  std::vector<ResourceId> example_;              ///< by kind of these
  std::vector<std::size_t> counts_;              ///< likewise
};

}  // namespace espalier

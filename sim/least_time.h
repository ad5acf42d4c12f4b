// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"
#include "sim/block_map.h"
#include "sim/machine_resources.h"
#include "sim/op_flows.h"
#include "sim/op_graph.h"
#include "sim/op_shapes.h"

namespace espalier {

/// How long the busiest link carries what ops move between places, but for those in switches: with
/// no look at lanes and blocks. Ends once that is more than `enough_s`.
double busiest_link_s(const Program& program, MachineResources& machine, double message_bytes,
                      double enough_s);

/// What a program takes at least when its ops are cut into pieces, found without simulating any of
/// them. Three bounds, which hold whoever shares what with whom:
///
/// - What carries flows carries all of them, at its full rate at best. Pieces are as many bytes.
/// - A lane carries out one piece after the other. A piece takes no less than the start-up that it
///   would have with hardly any bytes, and its bytes at the rate of the narrowest link.
/// - So does a block that lanes share. Which lanes that are depends on how ops are cut, but not how
///   many blocks the lanes of a place share: one of them has no less than their mean to do.
class LeastOfPieces {
 public:
  /// `of_a_byte`: the flows of a message of one byte. Looks at no more ops once a link is known to
  /// be busy for longer than `enough_s`.
  LeastOfPieces(const Program& program, OpFlows& flows, OpFlows& of_a_byte, const BlockMap& blocks,
                const MachineResources& machine, double message_bytes, double enough_s);

  /// By the busiest link alone.
  double links_s() const { return links_s_; }
  /// With pieces of at most so many bytes; 0: whole ops.
  double of_chunks_s(std::int64_t chunk_bytes) const;

 private:
  /// Ops of a lane that are equally long.
  struct AlikeOps {
    PlaceId place = 0;
    std::uint16_t lane = 0;
    int shared_blocks = 0;  ///< that the lane shares with others of its place; 0: it has its own
    double bytes = 0;       ///< of each
    double start_ups_s = 0;
    double flowing_s = 0;
  };

  double links_s_ = 0;
  double all_s_ = 0;           ///< by whatever is busiest
  std::vector<AlikeOps> ops_;  ///< by lane
};

/// What is left of a simulation takes at least, so that one that will be too slow is found out
/// before it has become so. Three bounds, which hold whoever shares what with whom:
///
/// - An op lasts at least as long as its flows would alone, each at the rate of the narrowest of
///   what it uses. The ops that wait for it, on its lane or for its data, follow it.
/// - A block that lanes share has yet to carry out all of their ops that have not begun, one after
///   the other.
/// - What carries flows has yet to carry all of those that have not begun, at its full rate at
/// best.
///
/// Costs a look at every op before the simulation, and one when it begins; at the flows, one for
/// every shape of ops. Latencies after the flows count for nothing: the bounds are lower without
/// them.
class LeastTime {
 public:
  /// Refers to the numbers of the shapes. `flows`: of their examples. `limit_s`: what takes longer
  /// is too slow.
  LeastTime(const Program& program, const BlockMap& blocks, const ShapeNumbers& numbers,
            OpFlows& flows, double limit_s);

  /// Whether it is too slow whatever ops wait for.
  bool is_too_slow() const;
  /// What they wait for: before they begin.
  void take(const OpGraph& graph);
  /// Whether the simulation ends after the limit, now that an op begins: to be told of every op, in
  /// the order of time. `start_s`: when the op starts, `now_s` or later.
  bool is_too_slow(OpId id, double now_s, double start_s);

 private:
  /// How long something carries the flow of an op.
  struct Load {
    ResourceId resource = 0;
    double busy_s = 0;
  };
  /// Of the ops of a shape.
  struct Shape {
    double lasts_s = 0;
    std::uint32_t first_load = 0;
    std::uint32_t load_count = 0;
    std::uint32_t block = BlockMap::kNone;  ///< that its lane shares
  };

  /// Notes the loads of its flows; how long they take alone.
  double take(const OpFlows& flows, const FlowList& list);
  std::span<const Load> loads_of(const Shape& shape) const {
    return {loads_.data() + shape.first_load, shape.load_count};
  }
  const Shape& shape_of(OpId id) const { return shapes_[numbers_.of(id)]; }

  const double limit_s_;
  const ShapeNumbers& numbers_;
  const std::size_t ops_;
  std::vector<Shape> shapes_;         ///< by number
  std::vector<Load> loads_;           ///< of all shapes, each as often as there are flows and uses
  std::vector<double> tails_s_;       ///< by op: from its start to the end of what waits for it
  std::vector<double> left_s_;        ///< by resource, for what it carries of ops not begun
  std::vector<double> block_left_s_;  ///< by shared block, for its ops that have not begun
};

}  // namespace espalier

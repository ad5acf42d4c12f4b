// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/program.h"
#include "sim/alike_costs.h"
#include "sim/awaited_ops.h"
#include "sim/block_map.h"
#include "sim/machine_resources.h"
#include "sim/op_shapes.h"
#include "sim/sent_data.h"
#include "topologies/profile.h"

namespace espalier {

/// Which lanes of a program behave alike on a machine where all ranks begin together: their ops
/// begin and end at the same dates. Found by colour refinement: lanes are of one kind if their ops,
/// one by one, cost the same, use resources of the same kinds in the same way, wait in the same way
/// for ops of lanes of the same kinds, and share blocks with such lanes; resources, if they are
/// used by as many such ops. Whatever happens to one of a kind then happens to all of them at the
/// same time, as rates are unique (docs/decisions/0026-one-of-alike-lanes.md). Kinds are told apart
/// by hashes of 64 bits.
class LaneKinds {
 public:
  /// Ops of a program, and how they depend on each other. `sent`: where the profile has FIFOs.
  /// `costs`: of the shapes.
  struct Ops {
    const Program& program;
    const AwaitedOps& awaited;
    const SentData& sent;
    const BlockMap& blocks;
    OpShapes& shapes;
    const AlikeCosts& costs;
  };

  /// Whether what happens to lanes at one instant happens to all that are alike in the same order:
  /// not where lanes wait for steps of one FIFO, as who comes first then depends on the order of
  /// the text; nor where what has a shared block may take no time.
  static bool are_orderly(const Program& program, const BlockMap& blocks, OpShapes& shapes,
                          const Profile& profile);

  /// `machine`: on which the flows of the shapes were found. Nothing is known where less than some
  /// part of the ops would be saved (are_few). \pre are_orderly
  LaneKinds(const Ops& ops, const MachineResources& machine);

  /// Whether one lane of each kind has far fewer ops than all lanes.
  bool are_few() const { return are_few_; }
  std::size_t lanes() const { return lanes_.size(); }
  std::size_t resources() const { return kind_of_resource_.size(); }
  std::uint32_t lane(OpId id) const { return lane_[id]; }
  /// The place of an op on its lane.
  std::uint32_t index(OpId id) const { return index_[id]; }
  std::uint32_t ops_of(std::uint32_t lane) const { return lanes_[lane].ops; }
  /// The lanes of the block that it shares with others, itself among them; or none.
  std::span<const std::uint32_t> sharing(std::uint32_t lane) const {
    if (lanes_[lane].block == BlockMap::kNone) return {};
    return sharing_[lanes_[lane].block];
  }
  /// Numbers of kinds. \pre are_few
  std::uint32_t kind_of_lane(std::uint32_t lane) const { return kind_of_lane_[lane]; }
  std::uint32_t kind_of_resource(ResourceId resource) const { return kind_of_resource_[resource]; }

 private:
  struct Lane {
    PlaceId place = 0;
    std::uint16_t number = 0;
    std::uint32_t block = BlockMap::kNone;
    std::uint32_t ops = 0;
    std::uint32_t shapes = 0;
  };
  /// All that ties a lane to another one, or to a resource, as one number.
  struct Tie {
    std::uint32_t lane = 0;
    std::uint32_t other = 0;
    std::uint64_t how = 0;
  };
  class Ties;

  void look_at_ops(const Ops& ops);
  std::uint64_t look_at_shape(const Ops& ops, OpId id, std::uint32_t lane, std::uint32_t number,
                              Ties& uses);
  bool refine(const MachineResources& machine);
  void refine_once();
  bool is_worthwhile() const;

  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lane_;                  ///< by op
  std::vector<std::uint32_t> index_;                 ///< by op
  std::vector<Tie> waits_;                           ///< lanes for lanes
  std::vector<Tie> uses_;                            ///< resources by lanes
  std::vector<std::vector<std::uint32_t>> sharing_;  ///< lanes by shared block, in their order
  std::vector<std::uint64_t> lane_colours_;
  std::vector<std::uint64_t> resource_colours_;
  std::vector<std::uint32_t> kind_of_lane_;
  std::vector<std::uint32_t> kind_of_resource_;
  bool are_few_ = false;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash_numbers.h"
#include "ir/program.h"
#include "run/target.h"
#include "sim/op_graph.h"
#include "topologies/profile.h"

namespace espalier {

/// Which blocks of its GPU carry out a lane (Profile::blocks). Where there are fewer lanes than
/// blocks and the profile splits lanes, the blocks are dealt out by what lanes carry, and the ops
/// of a lane are split among its blocks. Where there are more lanes, they share blocks: those whose
/// first transfer takes the same way stay together, as they share its links anyway, ways get blocks
/// according to what they carry, and the lanes of a way are dealt out so that blocks carry alike.
/// Lanes that compute, and those of host memories, need no blocks. A program that was written for
/// blocks (BlockUse::one_per_lane) has one for each lane. Where all groups of a folded program are
/// simulated, lanes of all groups are known.
class BlockMap {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  BlockMap(const Program& program, const OpGraph& graph, const Target& target,
           const BlockUse& use = {});

  /// Whether lanes share blocks anywhere.
  bool shares() const { return !shared_.empty(); }
  /// How many blocks a lane has; 0: as many as it likes.
  std::size_t width(PlaceId place, std::uint16_t lane) const;
  /// The rate of these, in rates of a whole block; 0: any.
  double rate(PlaceId place, std::uint16_t lane) const {
    return static_cast<double>(width(place, lane)) * use_.rate;
  }
  /// In how many slices the blocks pass on an op, unless these would be too short or too long.
  int slices_per_op(const Protocol& protocol) const {
    return use_.slices_per_op > 0 ? use_.slices_per_op : protocol.slices_per_op;
  }
  int ops_per_local() const { return use_.ops_per_local; }
  bool ops_are_slices() const { return use_.ops_are_slices; }
  bool streams() const { return use_.streams; }
  /// The block, numbered through all places, that a lane shares with others; or kNone.
  std::uint32_t shared_block(PlaceId place, std::uint16_t lane) const;
  std::size_t shared_blocks() const { return shared_blocks_; }
  /// How many blocks of the place the lanes there share that share any; 0: none do.
  int blocks_shared_at(PlaceId place) const {
    return shared_at_.empty() ? 0 : shared_at_[static_cast<std::size_t>(place)];
  }
  /// Of the GPU that uses most; 0 where the profile has none.
  int most_in_use() const { return most_in_use_; }
  /// The lane's number when the program is written anew for its blocks: that of its block among
  /// those of its place.
  std::uint16_t lane_on_block(PlaceId place, std::uint16_t lane) const;

 private:
  struct Lane;
  void split(const Program& program, int groups, PlaceId place, const std::vector<Lane>& lanes,
             int blocks);
  void share(PlaceId place, std::vector<Lane> lanes, int blocks);

  struct Shared {
    std::uint32_t block = 0;
    std::uint16_t number = 0;
  };
  BlockUse use_;
  bool has_blocks_ = false;
  std::vector<bool> is_host_;        ///< by place
  HashNumbers split_lanes_;          ///< by place and lane; absent: 1 wide
  std::vector<std::size_t> widths_;  ///< by their number
  HashNumbers sharing_lanes_;        ///< by place and lane
  std::vector<Shared> shared_;       ///< by their number
  std::uint32_t shared_blocks_ = 0;
  std::vector<int> shared_at_;  ///< blocks by place; empty where no lanes share any
  int most_in_use_ = 0;
};

}  // namespace espalier

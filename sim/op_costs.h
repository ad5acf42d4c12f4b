// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"
#include "sim/arrivals.h"
#include "sim/block_map.h"
#include "sim/lockstep.h"
#include "sim/machine_resources.h"
#include "topologies/profile.h"

namespace espalier {

/// A transfer of an op, and its way.
struct Transfer {
  PlaceId from = 0;
  PlaceId to = 0;
  const Path* path = nullptr;
};

class TextFindings;

/// What an op costs more or less because of its turn: where it stands on its lane.
struct OpTurn {
  double lockstep_s = 0;
  bool is_early = false;
  bool is_far_on = false;        ///< Protocol::drift_ops
  bool is_further_part = false;  ///< BlockUse::streams
  OpArrivals arrivals = {};
  bool operator==(const OpTurn&) const = default;
};

/// By op, how many of its lane go over links up to it; 0: it does not.
using OpsOverLinks = std::vector<int>;
OpsOverLinks ops_over_links(const Program& program);

/// What the turns of a program's ops follow from, where nothing but its text says more of them.
struct TurnRules {
  bool has_early = false;
  int drift_ops = 0;
  bool streams = false;
  bool operator==(const TurnRules&) const = default;
};

/// Whether an op goes on where the one before it in the program ended, on the same lane: of blocks
/// that stream (BlockUse::streams), a further part of one send.
bool is_further_part(const Program& program, const Op& op);

/// What ops cost by themselves, whatever else is under way: see Dispatcher.
class OpCosts {
 public:
  /// Refers to its arguments. `message_bytes`: the whole message, which `units` divide.
  /// `text`: of the program; null: nothing is known of it.
  OpCosts(const Program& program, const BlockMap& blocks, const Profile& profile,
          double message_bytes, MachineResources& machine, TextFindings* text = nullptr);
  /// Where turns of ops are known: by op of the program, those of all groups of each `groups` ops
  /// being the same.
  OpCosts(const Program& program, const BlockMap& blocks, const Profile& profile,
          double message_bytes, MachineResources& machine, std::vector<OpTurn> turns, int groups);

  double bytes_of(const Op& op) const { return op.length * bytes_per_unit_; }
  double bytes_per_unit() const { return bytes_per_unit_; }
  /// Its transfers: of the operands first; then of the result, if it has one.
  /// \pre no op in a switch
  void transfers_of(const Op& op, std::vector<Transfer>& transfers) const;
  /// Whether operands are stored on arrival, and added up when all are there.
  bool reduces_separately(const Op& op) const;
  /// Whether a kernel reads the operands, where they are, to add them up.
  bool reduces_by_reading(const Op& op) const {
    return op.src_count > 1 && profile_.reduction == ReductionMode::reading;
  }
  /// What holds its lane beside its bytes. \pre it has transfers
  double fixed_s(const Op& op, std::span<const Transfer> transfers) const;
  /// The same of an op that is not reduced separately.
  double start_up_s(const Op& op, std::span<const Transfer> transfers) const {
    return reduces_by_reading(op) ? profile_.reduce_overhead_s
                                  : fixed_s(op, transfers) + lockstep_s(op);
  }
  /// \pre it is one of the program's
  OpTurn turn_of(const Op& op) const {
    if (!turns_.empty()) return known_turn(op);
    return {lockstep_.seconds(op), is_early(op), is_far_on(op), is_further(op), arrivals_of(op)};
  }
  /// Nothing where turns were given, or what is lost in lockstep or arrives decides on them, too.
  std::optional<TurnRules> turn_rules() const {
    if (!turns_.empty() || !arrivals_.empty() || !lockstep_.is_none()) return std::nullopt;
    return TurnRules{has_early_, passed_ ? drift_ : 0, blocks_.streams()};
  }
  /// Whether an op further on its lane that does the same costs as much. \pre it is one of the
  /// program's, and turns are not known
  bool is_settled(const Op& op) const {
    if (lockstep_.seconds(op) > 0) return false;
    const bool stays_here = !passed_ || (*passed_)[number_of(op)] == 0;
    return stays_here || (!is_early(op) && (profile_.protocol.drift_ops == 0 || is_far_on(op)));
  }
  /// \pre it is one of the program's
  OpArrivals arrivals_of(const Op& op) const {
    if (!turns_.empty()) return known_turn(op).arrivals;
    return arrivals_.empty() ? OpArrivals{} : arrivals_[number_of(op)];
  }
  /// The block that carries it out, or kNoResource where its links are no faster.
  ResourceId block_of(const Op& op, std::span<const Transfer> transfers) const;
  /// OpTurn::is_far_on. \pre it is one of the program's
  bool is_far_on(const Op& op) const {
    if (!turns_.empty()) return known_turn(op).is_far_on;
    return passed_ && (*passed_)[number_of(op)] > drift_;
  }
  /// Whether what holds its lane beside its bytes falls into the transfers of other blocks
  /// (Protocol::drift_ops). \pre it is one of the program's
  bool is_adrift(const Op& op, const Transfer& transfer) const {
    return transfer.path->is_fabric && bytes_of(op) > 0 && is_far_on(op);
  }
  /// Its block where it is adrift, and `paused_s` are part of the time in which its bytes pass.
  ResourceId slowed_block_of(const Op& op, const Transfer& transfer, double paused_s) const;

 private:
  const OpTurn& known_turn(const Op& op) const { return turns_[number_of(op) / groups_]; }
  double lockstep_s(const Op& op) const {
    return turns_.empty() ? lockstep_.seconds(op) : known_turn(op).lockstep_s;
  }
  bool is_further(const Op& op) const {
    if (!turns_.empty()) return known_turn(op).is_further_part;
    return blocks_.streams() && is_further_part(program_, op);
  }
  bool is_early(const Op& op) const {
    if (!turns_.empty()) return known_turn(op).is_early;
    return has_early_ && (*passed_)[number_of(op)] <= program_.ranks();
  }
  double local_s(const Op& op) const;
  std::size_t number_of(const Op& op) const {
    return static_cast<std::size_t>(&op - program_.ops.data());
  }

  const Program& program_;
  const BlockMap& blocks_;
  const Profile& profile_;
  const double bytes_per_unit_;
  MachineResources& machine_;
  const Lockstep lockstep_;
  /// The slices of a lane's first ops over links, one for each rank, have nothing under way before
  /// them that would hide their hops: no data has come around. False: that makes no difference.
  bool has_early_ = false;
  int drift_ = 0;                               ///< Protocol::drift_ops
  std::shared_ptr<const OpsOverLinks> passed_;  ///< null: no difference
  std::vector<OpArrivals> arrivals_;            ///< by op. Empty: that makes no difference
  std::vector<OpTurn> turns_;                   ///< where these are known; in place of the above
  std::size_t groups_ = 1;
};

}  // namespace espalier

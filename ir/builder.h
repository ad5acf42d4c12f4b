// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace espalier {

struct OpOptions {
  static constexpr PlaceId kAuto = -1;
  int lane = 0;
  /// The place that carries out the op. Auto: a copy is pushed by its source's
  /// place, and a combine of several sources runs at its destination's place.
  PlaceId at = kAuto;
  std::string_view via = {};
  bool in_switch = false;  ///< Op::in_switch
};

/// The only way algorithms make programs. The author writes the data movement in an order that
/// would be right if ops ran one by one; the builder derives the dependencies (read after write,
/// write after read, write after write) from it, leaving out those that lane order already gives.
/// Misuse by an algorithm (ranks out of range, unequal lengths) is a bug: CHECK.
class Builder {
 public:
  /// With a fold, ops outside the first group are left out, as they are added or by an author who
  /// asks `builds` first; and no op may depend on what its own counterpart in another group does.
  /// \pre `fold` fits the contract (Fold::rank_groups() * each == ranks)
  Builder(std::string name, const Contract& contract, const Fold& fold = {});
  ~Builder();

  const Contract& contract() const { return program_.contract; }
  int ranks() const { return program_.contract.ranks; }

  /// Whether ops of this rank's lane are wanted: of all, unless the program is folded.
  bool builds(PlaceId place, int lane = 0) const {
    const Fold& fold = program_.fold;
    return !fold.is_folded() || fold.group_of_lane(place, lane) == 0;
  }

  /// Adds a host memory; its only buffer is tmp. \pre no relay was added yet
  PlaceId add_host();
  /// Adds a relay: a GPU that is not a rank; its only buffer is tmp.
  PlaceId add_relay();
  /// Makes room for this many ops; for large programs whose size is known.
  void reserve(std::size_t ops);

  /// Units counted from the start of the rank's input or output region, wherever the contract puts
  /// it, so that one algorithm serves in place and out of place.
  Slice input(int rank, std::int64_t begin, std::int64_t length) const;
  Slice output(int rank, std::int64_t begin, std::int64_t length) const;
  /// Scratch of a rank or host memory. Operands of one op must agree modulo `block_units` (rule
  /// R4).
  Slice tmp(PlaceId place, std::int64_t begin, std::int64_t length) const;

  /// A copy onto itself adds nothing and returns the op that last wrote there, or kNone. What is
  /// left out of a folded program is kNone.
  OpId copy(const Slice& dst, const Slice& src, const OpOptions& options = {});
  OpId combine(const Slice& dst, std::span<const Slice> srcs, const OpOptions& options = {});
  OpId combine(const Slice& dst, std::initializer_list<Slice> srcs, const OpOptions& options = {}) {
    return combine(dst, std::span(srcs.begin(), srcs.size()), options);
  }
  /// In a switch, to one destination or several at other places each.
  OpId in_switch(std::span<const Slice> dsts, std::span<const Slice> srcs,
                 const OpOptions& options = {});
  OpId compute(PlaceId place, double seconds, const OpOptions& options = {}) {
    return busy(OpKind::compute, place, seconds, options);
  }
  /// Keeps `place` busy. \pre `kind` is compute or wait
  OpId busy(OpKind kind, PlaceId place, double seconds, const OpOptions& options = {});
  /// Extra order that data flow does not show: `op` waits for `earlier`, an op added before it of
  /// the same group of ranks. No effect when one of them is kNone.
  void after(OpId op, OpId earlier);

  /// Adds all ops so far again, so many `times`, each time `units` further on. That is cheaper than
  /// to add them one by one, as no dependencies have to be derived. \pre none of the units in
  /// between is used by an op so far or later on, scratch is not used, no op computes or waits, and
  /// `after` was not called
  void repeat(std::int64_t units, std::int64_t times);

  static constexpr OpId kNone = ~OpId{0};

  /// Leaves the builder without ops, host memories and relays, for the same contract.
  Program finish();

 private:
  struct Tracking;
  void check_slice(const Slice& slice) const;
  OpId move(std::span<const Slice> dsts, std::span<const Slice> srcs, const OpOptions& options);
  OpId append(const Op& op, const OpOptions& options);
  std::int16_t via_id(std::string_view via);
  void merge_extra_dependencies();
  Program program_;
  std::unique_ptr<Tracking> tracking_;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/collective.h"
#include "ir/fold.h"

namespace espalier {

/// Ranks come first (0..ranks-1), then host memories, then relays.
using PlaceId = std::int32_t;
using OpId = std::uint32_t;

/// Units [begin, begin + length) of a place's buffer.
struct Slice {
  PlaceId place = 0;
  Buffer buffer = Buffer::in;
  std::int64_t begin = 0;
  std::int64_t length = 0;
  bool operator==(const Slice&) const = default;
};

/// `combine`: dst <- src1 (+) src2 (+) ... on slices of equal length, folded from left to right;
/// one source is a copy. `compute`: its place computes for a duration that grows if the GPU is
/// slower; `wait`: its place waits for a fixed duration, as in a call, whatever its speed (training
/// studies).
enum class OpKind : std::uint8_t { combine, compute, wait };

/// Maximum number of units of a message, and of places, in a program.
inline constexpr std::int64_t kMaxUnits = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxPlaces = 1 << 20;

/// A slice without its length, which all operands of an op share. 12 bytes.
struct Operand {
  PlaceId place = 0;
  std::uint32_t begin = 0;
  Buffer buffer = Buffer::in;
  bool operator==(const Operand&) const = default;
};

/// One op. Sources and dependencies are in the program's
/// pools. At most 48 bytes: programs have millions of ops.
struct Op {
  Operand dst;               ///< combine only
  std::uint32_t length = 0;  ///< units of every operand
  std::uint32_t src_begin = 0;
  std::uint32_t dep_begin = 0;
  std::uint32_t src_count = 0;  ///< 0 for compute and wait
  std::uint32_t dep_count = 0;
  std::uint32_t copy_count = 0;  ///< further destinations, in a switch only
  PlaceId at = 0;  ///< the place that reads the sources and writes dst: that of one of these
  std::uint16_t lane = 0;  ///< ops of one place and lane run in program order, one at a time
  std::int16_t via = -1;   ///< index into Program::vias, or -1: the router chooses
  OpKind kind = OpKind::combine;
  /// A switch between the places does it, as NVLS does: it adds up the sources, each read where it
  /// lies, for `at` (a multimem load-reduce), and stores what `at` sends to every destination (a
  /// multimem store).
  bool in_switch = false;
  bool operator==(const Op&) const = default;
};
static_assert(sizeof(Op) <= 48);

/// The lines of a program's text that say what its header says, for messages; 0: none does.
struct HeaderLines {
  int program = 0;
  int collective = 0;
  int ranks = 0;
  int units = 0;
  int in_place = 0;
  int hosts = 0;
  int relays = 0;
};

/// A collective algorithm for one rank count, free of message size and machine: plain data, made by
/// the Builder or the text parser, checked by `verify`.
struct Program {
  std::string name;  ///< of the algorithm
  Contract contract;
  int hosts = 0;  ///< host memories; places ranks .. ranks + hosts - 1
  int relays =
      0;  ///< GPUs that are not ranks, each with a tmp buffer; the places after the host memories
  std::vector<Op> ops;
  std::vector<Operand> sources;  ///< of each op, and then its copies
  std::vector<OpId> dependencies;
  std::vector<std::string> vias;    ///< node names of the machine
  std::vector<double> durations_s;  ///< by op that computes or waits: index dst.begin
  std::vector<int> lines;           ///< line of each op in its text, or empty
  HeaderLines header_lines;
  Fold fold;  ///< where the ops are those of one group of ranks only

  int ranks() const { return contract.ranks; }
  int places() const { return contract.ranks + hosts + relays; }
  std::span<const Operand> sources_of(const Op& op) const {
    return {sources.data() + op.src_begin, op.src_count};
  }
  /// Where an op in a switch writes beside `dst`: the same units' worth.
  std::span<const Operand> copies_of(const Op& op) const {
    return {sources.data() + op.src_begin + op.src_count, op.copy_count};
  }
  std::span<const OpId> dependencies_of(const Op& op) const {
    return {dependencies.data() + op.dep_begin, op.dep_count};
  }
  double duration_s(const Op& op) const { return durations_s[op.dst.begin]; }
};

/// The slice that a group of ranks further on knows as this one of `length` units; the slice itself
/// in a program that is not folded. \pre it is turned as a whole, or it is whole periods
inline Operand moved(const Fold& fold, const Operand& operand, std::uint32_t length,
                     int groups_on) {
  if (!fold.is_folded()) return operand;
  const std::int64_t begin = fold.moved(operand.buffer, operand.begin, length, groups_on);
  return {fold.rank_moved(operand.place, groups_on), static_cast<std::uint32_t>(begin),
          operand.buffer};
}
/// The group to which a slice is what one of the first group's is to that.
inline int group_of(const Fold& fold, const Operand& operand) {
  return fold.is_folded() ? fold.group_of_unit(operand.place, operand.buffer, operand.begin) : 0;
}
struct FromGroup {
  int group = 0;
  Operand operand;
};
/// That group, and what the slice is in the first one.
inline FromGroup first_group_of(const Fold& fold, const Operand& operand, std::uint32_t length) {
  const int group = group_of(fold, operand);
  return {group, group == 0 ? operand : moved(fold, operand, length, -group)};
}
inline Operand in_first_group(const Fold& fold, const Operand& operand, std::uint32_t length) {
  return first_group_of(fold, operand, length).operand;
}

/// The same for what keeps a record of every unit: without gaps (Fold::packed).
inline Operand packed_in_first_group(const Fold& fold, const Operand& operand,
                                     std::uint32_t length) {
  Operand packed = in_first_group(fold, operand, length);
  packed.begin = static_cast<std::uint32_t>(fold.packed(packed.buffer, packed.begin));
  return packed;
}

inline Slice slice(const Operand& operand, std::uint32_t length) {
  return {operand.place, operand.buffer, operand.begin, length};
}

/// Whether slices have a unit in common.
inline bool overlap(const Slice& a, const Slice& b) {
  return a.place == b.place && a.buffer == b.buffer && a.begin < b.begin + b.length &&
         b.begin < a.begin + a.length;
}

/// Calls `visit(operand)` for every slice that a combine writes.
template <class Visit>
void for_each_destination(const Program& program, const Op& op, Visit&& visit) {
  if (op.kind != OpKind::combine) return;
  visit(op.dst);
  for (const Operand& copy : program.copies_of(op)) visit(copy);
}

/// Calls `visit(from, to)` for every transfer of an op: the place `at` reads every source and
/// writes the result, so a source that lies elsewhere comes to it and a result that belongs
/// elsewhere goes from it. A copy between two places is one transfer, pushed or pulled; a combine
/// may have one for every source and one more for its result. An op in a switch has one for every
/// source and destination elsewhere, although a switch joins them on the way.
template <class Visit>
void for_each_transfer(const Program& program, const Op& op, Visit&& visit) {
  if (op.kind != OpKind::combine) return;
  for (const Operand& source : program.sources_of(op)) {
    if (source.place != op.at) visit(source.place, op.at);
  }
  for_each_destination(program, op, [&](const Operand& destination) {
    if (destination.place != op.at) visit(op.at, destination.place);
  });
}

/// Of all ops.
std::int64_t count_transfers(const Program& program);

/// The default place that carries out a combine: a copy is pushed by its source's
/// place, and a combine of several sources runs at its destination's place.
PlaceId usual_place(const Program& program, const Op& op);

/// Units of every tmp buffer, by place: as far as any op reaches.
std::vector<std::int64_t> tmp_units(const Program& program);

/// The kind of a place, and its number among places of that kind.
enum class PlaceKind : std::uint8_t { rank, host, relay };
struct PlaceNumber {
  PlaceKind kind = PlaceKind::rank;
  int number = 0;
};
/// \pre `place` is not negative. A place beyond the last one counts
/// as a relay if there are relays, and as a host memory otherwise.
PlaceNumber place_number(const Program& program, PlaceId place);

/// Structural equality, lines aside: what the text form must preserve, which folded programs have
/// none of. \pre what ops refer to is there
bool same_program(const Program& a, const Program& b);

}  // namespace espalier

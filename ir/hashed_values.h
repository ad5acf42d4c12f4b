// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "ir/cell_map.h"
#include "ir/program.h"

namespace espalier {

/// Values of cells as sums of random weights: what goes through a program of any size is told apart
/// by them, with a small probability of error. Private to this room.
///
/// Every cell of every input has a weight, an integer modulo the prime p = 2^61 - 1. `inputs` is
/// the sum, modulo p, of the weights that went into a cell: linear, so that the order of combining
/// does not matter. `count` says how many went into it, those that went in several times as often
/// as they did. A result is accepted when both are what they should be. Let a wrong result have the
/// right count, n. Then its multiplicities differ from the right ones by at most n < p, and by
/// something other than 0 for at least one input; as p is a prime, that difference has an inverse,
/// so whatever the other weights are, exactly one residue of this input's weight makes the sums
/// equal. A weight takes each residue with a probability of at most 9 / 2^64, and so a wrong result
/// is accepted with a probability of less than 2^-60, provided that whoever wrote the program does
/// not know the seed.
///
/// `expression` hashes how the cell was combined: symmetric in the two sides of (+), which is
/// commutative in every type, but not associative. It depends on the seed as well.
class HashedValues {
 public:
  /// 16 bytes, since there may be millions.
  struct Value {
    static constexpr int kCountBits = 24;
    /// Counts stop here; no contract asks for as many (kMaxPlaces).
    static constexpr std::uint64_t kManyInputs = (std::uint64_t{1} << kCountBits) - 1;

    std::uint64_t inputs = 0;
    std::uint64_t count : kCountBits = 0;
    std::uint64_t expression : 64 - kCountBits = kUndefined;
  };

  HashedValues(const Program& program, const CellMap& cells, std::uint64_t seed);

  /// The value of cell `cell` of `rank`'s input.
  Value input(int rank, std::uint64_t cell) const {
    const std::uint64_t weight = this->weight(rank, cell);
    return {weight, 1, expression_hash(weight)};
  }
  /// a (+) b, both defined. The hash of a + b is symmetric and, as mix64 is not linear, not
  /// associative.
  Value combined(const Value& a, const Value& b) const {
    const std::uint64_t count = std::uint64_t{a.count} + b.count;
    return {residue(a.inputs + b.inputs), std::min(count, Value::kManyInputs),
            expression_hash(std::uint64_t{a.expression} + b.expression)};
  }
  /// What an op in a switch made of its sources, combined here in some order. Which order it is,
  /// the switch knows: two ops may differ in it.
  Value combined_in_switch(const Value& value, OpId op) const {
    return {value.inputs, value.count, expression_hash(mix64(value.expression) + op + 1)};
  }
  static Value tainted() { return {0, 0, kTainted}; }
  static bool is_undefined(const Value& value) { return value.expression == kUndefined; }
  static bool is_tainted(const Value& value) { return value.expression == kTainted; }
  static bool same_expression(const Value& a, const Value& b) {
    return a.expression == b.expression;
  }

  /// Whether a value is cell `cell` of `rank`'s input, or, when `rank` is -1, that of every rank,
  /// each once.
  bool holds(const Value& value, int rank, std::uint64_t cell) const {
    return rank < 0 ? value.inputs == reduced_[cell] && value.count == ranks_
                    : value.inputs == weight(rank, cell) && value.count == 1;
  }
  /// Values are never too many.
  static bool exhausted() { return false; }

 private:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
  /// Values of `expression` with a meaning of their own; hashes avoid them.
  static constexpr std::uint64_t kUndefined = 0;
  static constexpr std::uint64_t kTainted = 1;  ///< made from undefined data; reported there
  static constexpr std::uint64_t kFirstHash = 2;

  /// Modulo p.
  static std::uint64_t residue(std::uint64_t value) {
    const std::uint64_t folded = (value & kPrime) + (value >> 61);
    return folded >= kPrime ? folded - kPrime : folded;
  }
  /// Cells of one rank are fewer than 2^32, so no two cells have the same argument. Each weight by
  /// itself is as random as the seed; that they are independent is as good as mix64.
  std::uint64_t weight(int rank, std::uint64_t cell) const {
    return residue(mix64(seed_ + mix64((static_cast<std::uint64_t>(rank) << 32) + cell)));
  }
  /// As many bits as Value keeps.
  static std::uint64_t expression_hash(std::uint64_t value) {
    const std::uint64_t hash = mix64(value) >> Value::kCountBits;
    return hash < kFirstHash ? hash + kFirstHash : hash;
  }

  std::uint64_t seed_;
  std::uint64_t ranks_;
  /// By cell of an input, the sum of its weights over all ranks; empty unless the collective
  /// reduces.
  std::vector<std::uint64_t> reduced_;
};
static_assert(sizeof(HashedValues::Value) == 16 && kMaxPlaces < HashedValues::Value::kManyInputs);

/// The seed of this process, drawn from the operating system when it is first asked for. Throws
/// Error{runtime} when there is no randomness to be had.
std::uint64_t process_seed();

}  // namespace espalier

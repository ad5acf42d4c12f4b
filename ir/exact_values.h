// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// Values of cells as expressions, numbered so that equal ones have equal numbers: results are
/// compared exactly. Private to this room.
///
/// An expression is a rank's input or a combination a (+) b; (+) is commutative but not
/// associative. It is stored relative to a cell of the inputs, so that the pieces of a chunked
/// program, which are all combined alike, share it: memory follows the number of different
/// combinations, not the number of cells or of inputs in them. A ring over n ranks has n (n - 1).
class ExactValues {
 public:
  struct Value {
    std::uint32_t expression = kUndefined;
    std::uint32_t cell = 0;  ///< of the inputs; offsets in the expression count from here
  };

  /// How much may be spent before giving up.
  struct Limits {
    std::size_t combinations;        ///< different ones, each about 24 bytes
    std::uint64_t inputs_looked_at;  ///< nodes of expressions visited by `holds`
  };

  ExactValues(const Program& program, const Limits& limits);

  /// The value of cell `cell` of `rank`'s input.
  static Value input(int rank, std::uint64_t cell) {
    return {kFirstInput + static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(cell)};
  }
  /// a (+) b, both defined. Undefined when there are too many combinations.
  Value combined(const Value& a, const Value& b);
  /// What an op in a switch made of its sources, combined here in some order. Which order it is,
  /// the switch knows: two ops may differ in it.
  Value combined_in_switch(const Value& value, OpId op) {
    return known({value.expression, kInSwitch, static_cast<std::int32_t>(op)}, value.cell);
  }
  static Value tainted() { return {kTainted, 0}; }
  static bool is_undefined(const Value& value) { return value.expression == kUndefined; }
  static bool is_tainted(const Value& value) { return value.expression == kTainted; }
  static bool same_expression(const Value& a, const Value& b) {
    return a.expression == b.expression && a.cell == b.cell;
  }

  /// Whether a value is cell `cell` of `rank`'s input, or, when `rank` is -1, that of every rank,
  /// each once.
  bool holds(const Value& value, int rank, std::uint64_t cell);

  /// A limit was reached: nothing said since then counts.
  bool exhausted() const { return exhausted_; }

 private:
  static constexpr std::uint32_t kUndefined = 0;
  static constexpr std::uint32_t kTainted = 1;  ///< made from undefined data; reported there
  static constexpr std::uint32_t kFirstInput = 2;

  /// As the right side of a combination: the left side is what a switch made of it, in op `offset`.
  static constexpr std::uint32_t kInSwitch = kUndefined;

  /// left (+) right; right's cell is `offset` cells after left's.
  struct Combination {
    std::uint32_t left;
    std::uint32_t right;
    std::int32_t offset;
    bool operator==(const Combination&) const = default;
  };

  /// The value of a combination whose left side begins at `cell`; undefined when there are too
  /// many.
  Value known(const Combination& combination, std::uint32_t cell);
  /// Where a combination is in the table, or would be.
  std::size_t slot_of(const Combination& combination) const;
  void grow();
  /// Whether an expression is the same cell of every rank's input, each once.
  bool is_sum_of_all(std::uint32_t expression);

  Limits limits_;
  std::uint32_t ranks_;
  std::uint32_t first_combination_;        ///< number of the first
  std::vector<Combination> combinations_;  ///< sides come before them
  std::vector<std::uint32_t> table_;       ///< expressions by hash, or kUndefined; a power of two

  enum class Answer : std::uint8_t { unknown, no, yes };
  std::vector<Answer> is_sum_of_all_;  ///< by expression, as far as it was asked for
  std::vector<std::uint32_t> seen_;    ///< by rank: the last search that met its input
  std::uint32_t searches_ = 0;
  std::uint64_t looked_at_ = 0;
  bool exhausted_ = false;
};

}  // namespace espalier

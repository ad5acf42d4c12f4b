// SPDX-License-Identifier: Apache-2.0
#include "ir/exact_values.h"

#include <utility>

#include "core/hash.h"
#include "core/interruption.h"

namespace espalier {
namespace {

constexpr std::size_t kFirstTableSize = 1024;

}  // namespace

ExactValues::ExactValues(const Program& program, const Limits& limits)
    : limits_(limits),
      ranks_(static_cast<std::uint32_t>(program.ranks())),
      first_combination_(kFirstInput + ranks_),
      table_(kFirstTableSize, kUndefined) {}

std::size_t ExactValues::slot_of(const Combination& combination) const {
  const std::uint64_t sides = (std::uint64_t{combination.left} << 32) | combination.right;
  const auto offset = static_cast<std::uint32_t>(combination.offset);
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = mix64(sides ^ (std::uint64_t{offset} << 16)) & mask;
  while (table_[slot] != kUndefined &&
         combinations_[table_[slot] - first_combination_] != combination) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void ExactValues::grow() {
  table_.assign(2 * table_.size(), kUndefined);
  std::uint32_t expression = first_combination_;
  for (const Combination& combination : combinations_) {
    table_[slot_of(combination)] = expression++;
  }
}

ExactValues::Value ExactValues::combined(const Value& a, const Value& b) {
  const bool in_order =
      a.expression != b.expression ? a.expression < b.expression : a.cell < b.cell;
  const Value& left = in_order ? a : b;
  const Value& right = in_order ? b : a;
  // Cells of an input are fewer than 2^25.
  return known({left.expression, right.expression,
                static_cast<std::int32_t>(right.cell) - static_cast<std::int32_t>(left.cell)},
               left.cell);
}

ExactValues::Value ExactValues::known(const Combination& combination, std::uint32_t cell) {
  std::size_t slot = slot_of(combination);
  if (table_[slot] != kUndefined) return {table_[slot], cell};
  if (combinations_.size() == limits_.combinations) {
    exhausted_ = true;
    return {};
  }
  if (2 * (combinations_.size() + 1) > table_.size()) {
    grow();
    slot = slot_of(combination);
  }
  table_[slot] = first_combination_ + static_cast<std::uint32_t>(combinations_.size());
  combinations_.push_back(combination);
  return {table_[slot], cell};
}

bool ExactValues::holds(const Value& value, int rank, std::uint64_t cell) {
  if (value.cell != cell) return false;
  if (rank >= 0) return value.expression == input(rank, cell).expression;
  if (is_sum_of_all_.empty()) {
    is_sum_of_all_.resize(first_combination_ + combinations_.size(), Answer::unknown);
    seen_.resize(ranks_, 0);
  }
  Answer& answer = is_sum_of_all_[value.expression];
  if (answer == Answer::unknown) {
    answer = is_sum_of_all(value.expression) ? Answer::yes : Answer::no;
  }
  return answer == Answer::yes;
}

bool ExactValues::is_sum_of_all(std::uint32_t expression) {
  ++searches_;
  std::uint32_t met = 0;
  // Every expression that is left to look at has at least one input, so that an expression of too
  // many inputs is found out before there are more than `ranks_` of them.
  std::vector<std::uint32_t> left{expression};
  while (!left.empty()) {
    if (met + left.size() > ranks_) return false;
    check_interruption_at(looked_at_);
    if (++looked_at_ > limits_.inputs_looked_at) {
      exhausted_ = true;
      return false;
    }
    const std::uint32_t next = left.back();
    left.pop_back();
    if (next < first_combination_) {
      const std::uint32_t rank = next - kFirstInput;
      if (std::exchange(seen_[rank], searches_) == searches_) return false;
      ++met;
      continue;
    }
    const Combination& combination = combinations_[next - first_combination_];
    if (combination.right == kInSwitch) {
      left.push_back(combination.left);
      continue;
    }
    if (combination.offset != 0) return false;  // two cells of the inputs, mixed
    left.push_back(combination.left);
    left.push_back(combination.right);
  }
  return met == ranks_;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "ir/access_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace espalier {
namespace {

/// The same, unit by unit.
class EveryUnit {
 public:
  explicit EveryUnit(std::uint32_t units) : units_(units) {}

  std::set<OpId> read(OpId op, std::uint32_t begin, std::uint32_t length) {
    std::set<OpId> conflicts;
    for (std::uint32_t unit = begin; unit < begin + length; ++unit) {
      if (units_[unit].writer != AccessTracker::kNone) conflicts.insert(units_[unit].writer);
      units_[unit].readers.insert(op);
    }
    return conflicts;
  }
  std::set<OpId> write(OpId op, std::uint32_t begin, std::uint32_t length) {
    std::set<OpId> conflicts;
    for (std::uint32_t unit = begin; unit < begin + length; ++unit) {
      if (units_[unit].writer != AccessTracker::kNone) conflicts.insert(units_[unit].writer);
      conflicts.merge(units_[unit].readers);
      units_[unit] = {.writer = op};
    }
    return conflicts;
  }
  OpId last_writer(std::uint32_t begin, std::uint32_t length) const {
    std::set<OpId> writers;
    for (std::uint32_t unit = begin; unit < begin + length; ++unit) {
      if (units_[unit].writer != AccessTracker::kNone) writers.insert(units_[unit].writer);
    }
    return writers.empty() ? AccessTracker::kNone : *writers.rbegin();
  }

 private:
  struct Unit {
    OpId writer = AccessTracker::kNone;
    std::set<OpId> readers = {};
  };
  std::vector<Unit> units_;
};

/// Accesses of lengths up to `most`, which begin at multiples of `step`.
void expect_same_conflicts(std::uint32_t units, std::uint32_t most, std::uint32_t step,
                           unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  AccessTracker tracker;
  EveryUnit expected(units);
  for (OpId op = 0; op < 600; ++op) {
    // Buffers grow.
    const std::uint32_t within = std::min(units, 40 + op * units / 300);
    const std::uint32_t begin = below(within) / step * step;
    const std::uint32_t length = std::min(1 + below(most), units - begin);
    const Operand operand{1, begin, Buffer::out};
    ASSERT_EQ(tracker.last_writer(operand, length), expected.last_writer(begin, length));
    std::set<OpId> found;
    const auto conflict = [&](OpId earlier) { found.insert(earlier); };
    if (below(2) == 0) {
      tracker.read(op, operand, length, conflict);
      ASSERT_EQ(found, expected.read(op, begin, length)) << "op " << op << ", seed " << seed;
    } else {
      tracker.write(op, operand, length, conflict);
      ASSERT_EQ(found, expected.write(op, begin, length)) << "op " << op << ", seed " << seed;
    }
  }
}

TEST(AccessTracker, FindsTheConflictsOfEveryUnit) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    expect_same_conflicts(64, 10, 1, seed);       // within a level, where runs become too many
    expect_same_conflicts(300, 300, 1, seed);     // whole nodes are written and used again
    expect_same_conflicts(9000, 200, 1, seed);    // three levels
    expect_same_conflicts(9000, 9000, 64, seed);  // runs of whole parts
  }
}

TEST(AccessTracker, NamesNeitherAnOpItselfNorWhoWasOverwritten) {
  AccessTracker tracker;
  const auto none = [](OpId) { FAIL(); };
  const Operand all{0, 0, Buffer::tmp};
  tracker.read(0, all, 100, none);
  std::set<OpId> found;
  const auto conflict = [&](OpId earlier) { found.insert(earlier); };
  tracker.write(1, all, 100, conflict);
  EXPECT_EQ(found, std::set<OpId>{0});
  tracker.write(1, all, 100, none);
  found.clear();
  tracker.read(2, all, 100, conflict);
  EXPECT_EQ(found, std::set<OpId>{1});
}

}  // namespace
}  // namespace espalier

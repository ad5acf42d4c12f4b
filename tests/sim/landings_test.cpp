// SPDX-License-Identifier: Apache-2.0
// What is still under way, against a list that is searched as a whole.
#include "sim/landings.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace espalier {
namespace {

using Landing = Landings::Landing;

/// By definition: of all that overlaps and is not there yet, the last; of several, the first added.
const Landing* last_of(const std::vector<Landing>& all, const Operand& operand,
                       std::uint32_t length, Ticks now) {
  const Landing* last = nullptr;
  for (const Landing& one : all) {
    if (one.until <= now) continue;
    if (!overlap(slice(one.written, one.length), slice(operand, length))) continue;
    if (last == nullptr || one.until > last->until) last = &one;
  }
  return last;
}

/// Few units and dates, so that many of them overlap and coincide.
TEST(Landings, AreFoundWhereverTheyOverlap) {
  const unsigned seed = 11;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto number = [&](int from, int to) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution(from, to)(random));
  };
  constexpr PlaceId kPlaces = 3;
  Landings landings(kPlaces);
  std::vector<Landing> all;
  double now = 0;
  int found = 0;
  for (OpId op = 0; op < 3000; ++op) {
    now += number(0, 2) / 2.0;
    const auto any_operand = [&] {
      return Operand{static_cast<PlaceId>(number(0, kPlaces - 1)), number(0, 60),
                     static_cast<Buffer>(number(0, 2))};
    };
    const Operand written = any_operand();
    const std::uint32_t length = number(1, number(0, 9) == 0 ? 40 : 5);
    const Ticks until = {now + number(0, 24)};
    landings.add(op, until, written, length, 0, {now});
    all.push_back({op, until, written, length, 0, op});
    const Operand operand = any_operand();
    const std::uint32_t wanted = number(1, 8);
    const Landing* const expected = last_of(all, operand, wanted, {now});
    const Landing* const actual = landings.last_of(operand, wanted, {now});
    ASSERT_EQ(actual == nullptr, expected == nullptr) << "op " << op;
    if (expected == nullptr) continue;
    ++found;
    EXPECT_EQ(actual->op, expected->op);
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace espalier

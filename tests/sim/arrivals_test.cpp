// SPDX-License-Identifier: Apache-2.0
#include "sim/arrivals.h"

#include <gtest/gtest.h>

#include "ir/builder.h"

namespace espalier {
namespace {

constexpr Arrival kFresh = Arrival::fresh;
constexpr Arrival kUnchanged = Arrival::unchanged;
constexpr Arrival kPassedOn = Arrival::passed_on;

/// A chain from r0 to r1, r2 and back, and a sum of two inputs at r1, which goes to the others.
Program chain(bool in_place) {
  Builder builder(
      "chain", {.collective = Collective::allreduce, .ranks = 3, .units = 2, .in_place = in_place});
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(2, 0, 1), builder.output(1, 0, 1));
  builder.combine(builder.output(1, 1, 1), {builder.input(0, 1, 1), builder.input(2, 1, 1)});
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.output(2, 0, 1)});
  builder.copy(builder.output(0, 1, 1), builder.output(1, 1, 1));
  builder.copy(builder.output(2, 1, 1), builder.output(1, 1, 1));
  return builder.finish();
}

TEST(Arrivals, WhatOthersReadIsPassedOnAndInputsAreUnchanged) {
  const std::vector<OpArrivals> arrivals = arrivals_of(chain(false));
  ASSERT_EQ(arrivals.size(), 6U);
  // r1.out[0] is read by r2 and written in each run, so that r0.in is not what decides.
  EXPECT_EQ(arrivals[0].result, kPassedOn);
  // r2.out[0] is an operand at r0.
  EXPECT_EQ(arrivals[1].result, kPassedOn);
  // Operands come together first, where nobody else reads them.
  EXPECT_EQ(arrivals[2].operands, kUnchanged);
  EXPECT_EQ(arrivals[3].operands, kFresh);
}

TEST(Arrivals, InPlaceInputsAreWrittenAnew) {
  const std::vector<OpArrivals> arrivals = arrivals_of(chain(true));
  EXPECT_EQ(arrivals[2].operands, kFresh);
}

/// A rank's own block of an allgather in place, which is part of what others write.
TEST(Arrivals, WhatNobodyWritesIsUnchangedInPlace) {
  Builder builder("blocks",
                  {.collective = Collective::allgather, .ranks = 2, .units = 2, .in_place = true});
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(0, 1, 1), builder.input(1, 0, 1));
  const std::vector<OpArrivals> arrivals = arrivals_of(builder.finish());
  EXPECT_EQ(arrivals[0].operands, kUnchanged);
  EXPECT_EQ(arrivals[0].result, kUnchanged);
  EXPECT_EQ(arrivals[1].result, kUnchanged);
}

TEST(Arrivals, APartOfWhatIsSentMakesAllOfItPassedOn) {
  Builder builder("parts", {.collective = Collective::allreduce, .ranks = 3, .units = 4});
  builder.copy(builder.output(1, 0, 3), builder.input(0, 0, 3));
  builder.copy(builder.output(1, 3, 1), builder.input(0, 3, 1));
  builder.copy(builder.output(2, 2, 1), builder.output(1, 2, 1));
  const std::vector<OpArrivals> arrivals = arrivals_of(builder.finish());
  EXPECT_EQ(arrivals[0].result, kPassedOn);
  EXPECT_EQ(arrivals[1].result, kUnchanged);
  EXPECT_EQ(arrivals[2].result, kFresh);
}

}  // namespace
}  // namespace espalier

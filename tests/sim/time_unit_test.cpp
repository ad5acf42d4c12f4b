// SPDX-License-Identifier: Apache-2.0
#include "sim/time_unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace espalier {
namespace {

/// By the mantissa, as it is defined.
double to_40_bits(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 40)), exponent - 40);
}

/// Seconds in ticks of a second each.
double rounded(double value) { return TimeUnit(0).from_s(value).value; }

TEST(TimeUnit, RoundsAmountsTo40Bits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const double value = std::ldexp(std::uniform_real_distribution<double>(1, 2)(random),
                                    static_cast<int>(random() % 200) - 100);
    ASSERT_EQ(rounded(value), to_40_bits(value)) << "value " << i;
  }
  EXPECT_EQ(rounded(0), 0);
  EXPECT_EQ(rounded(std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
}

TEST(TimeUnit, RoundsHalvesToEven) {
  const double bit = std::ldexp(1, -39);  // the last one of 40 of a number from 1 to 2
  EXPECT_EQ(rounded(1 + 0.5 * bit), 1);
  EXPECT_EQ(rounded(1 + 1.5 * bit), 1 + 2 * bit);
  EXPECT_EQ(rounded(1 + 2.5 * bit), 1 + 2 * bit);
  EXPECT_EQ(rounded(2 - 0.5 * bit), 2);  // into the exponent
}

}  // namespace
}  // namespace espalier

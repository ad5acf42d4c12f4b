// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/common_unit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

namespace espalier {
namespace {

/// Remainders below this part of the largest bandwidth are taken for rounding, if what comes of it
/// is as exact as that.
constexpr double kRelativeRounding = 1e-5;
constexpr double kExactness = 1e-8;

bool is_unit(double unit, const std::vector<double>& bytes_per_s) {
  return std::all_of(bytes_per_s.begin(), bytes_per_s.end(), [&](double bandwidth) {
    const double whole = std::round(bandwidth / unit);
    return whole >= 1 && std::abs(bandwidth / unit / whole - 1) < kExactness;
  });
}

/// Euclid's algorithm on rounded numbers; 0 when that finds no unit.
double rounded_unit(const std::vector<double>& bytes_per_s) {
  const double largest = *std::max_element(bytes_per_s.begin(), bytes_per_s.end());
  double unit = 0;
  for (double rest : bytes_per_s) {
    while (rest > kRelativeRounding * largest) {
      const double remainder = unit - std::round(unit / rest) * rest;
      unit = std::exchange(rest, std::abs(remainder));
    }
  }
  // The largest bandwidth tells the unit more exactly than the last remainder does.
  if (unit > 0) unit = largest / std::round(largest / unit);
  return unit > 0 && is_unit(unit, bytes_per_s) ? unit : 0;
}

}  // namespace

CommonUnit in_common_unit(const std::vector<double>& bytes_per_s) {
  std::vector<double> used;
  std::int64_t common = 0;
  for (const double bandwidth : bytes_per_s) {
    const std::int64_t whole = std::llround(bandwidth);
    if (whole == 0) continue;
    used.push_back(bandwidth);
    common = std::gcd(common, whole);
  }
  CommonUnit result;
  result.multiples.assign(bytes_per_s.size(), 0);
  if (used.empty()) return result;
  double unit = rounded_unit(used);
  if (unit == 0) unit = static_cast<double>(common);
  bool is_first = true;
  for (std::size_t i = 0; i < bytes_per_s.size(); ++i) {
    const std::int64_t whole = std::llround(bytes_per_s[i]);
    if (whole == 0) continue;
    result.multiples[i] = std::llround(bytes_per_s[i] / unit);
    const Rational exact{Integer(whole), Integer(result.multiples[i])};
    if (is_first || exact > result.upper) result.upper = exact;
    if (is_first || exact < result.lower) result.lower = exact;
    is_first = false;
  }
  return result;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Exact arithmetic of the planner. Private to the room.

namespace espalier {

using Integer = boost::multiprecision::cpp_int;
using Rational = boost::multiprecision::cpp_rational;
/// For products of two 64-bit numbers.
__extension__ using Wide = __int128;

/// Bytes per second as a fraction of GB/s in lowest terms: "600/7", "75".
std::string exact_gbps(const Rational& bytes_per_s);
/// The same rounded to a double.
double rounded_gbps(const Rational& bytes_per_s);

/// A square matrix of whole numbers, row by row.
using Matrix = std::vector<std::vector<std::int64_t>>;

/// x with matrix * x = right, exactly; nothing when the matrix is singular. Fraction-free
/// elimination (Bareiss 1968).
std::optional<std::vector<Rational>> solve_exactly(const Matrix& matrix,
                                                   const std::vector<std::int64_t>& right);

/// Whether a basis (rows: what is full, columns: what is in use) can be solved in time, which grows
/// with its third power: square, not empty, not too large.
inline constexpr std::size_t kMaxExactEquations = 200;
bool is_soluble(const Matrix& basis);
/// The prices of a soluble basis's rows at which its columns cost `values`; nothing when singular.
std::optional<std::vector<Rational>> solve_prices(const Matrix& basis,
                                                  const std::vector<std::int64_t>& values);

/// The prices times the least number that makes all whole; those below 0, which come of a basis
/// that is slightly off, are 0.
std::vector<Integer> whole_prices(const std::vector<Rational>& prices);

}  // namespace espalier

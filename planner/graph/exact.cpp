// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/exact.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

using Row = std::vector<Integer>;

/// Brings the columns left of the last into triangular form; false when singular. Every entry stays
/// a minor of the matrix, so that the divisions leave no remainder.
bool eliminate(std::vector<Row>& rows) {
  const std::size_t n = rows.size();
  Integer previous = 1;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    while (pivot < n && rows[pivot][k] == 0) ++pivot;
    if (pivot == n) return false;
    std::swap(rows[pivot], rows[k]);
    for (std::size_t i = k + 1; i < n; ++i) {
      for (std::size_t j = k + 1; j <= n; ++j) {
        Integer entry = rows[i][j] * rows[k][k];
        if (rows[i][k] != 0 && rows[k][j] != 0) entry -= rows[i][k] * rows[k][j];
        if (previous != 1 && entry != 0) entry /= previous;
        rows[i][j] = std::move(entry);
      }
      rows[i][k] = 0;
    }
    previous = rows[k][k];
  }
  return true;
}

}  // namespace

std::string exact_gbps(const Rational& bytes_per_s) {
  const Rational gbps = bytes_per_s / 1'000'000'000;
  std::string text = numerator(gbps).str();
  if (denominator(gbps) != 1) text += "/" + denominator(gbps).str();
  return text;
}

double rounded_gbps(const Rational& bytes_per_s) {
  return static_cast<double>(Rational(bytes_per_s / 1'000'000'000));
}

std::optional<std::vector<Rational>> solve_exactly(const Matrix& matrix,
                                                   const std::vector<std::int64_t>& right) {
  const std::size_t n = matrix.size();
  CHECK(right.size() == n);
  std::vector<Row> rows(n);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(matrix[i].size() == n);
    rows[i].assign(matrix[i].begin(), matrix[i].end());
    rows[i].emplace_back(right[i]);
  }
  if (!eliminate(rows)) return std::nullopt;
  std::vector<Rational> x(n);
  if (n == 0) return x;
  // Back substitution on x = z / d with d the determinant, the last pivot: z is whole (Cramer).
  if (rows[n - 1][n - 1] < 0) {
    for (Integer& entry : rows[n - 1]) entry = -entry;
  }
  const Integer d = rows[n - 1][n - 1];
  std::vector<Integer> z(n);
  for (std::size_t i = n; i-- > 0;) {
    Integer sum = rows[i][n] * d;
    for (std::size_t j = i + 1; j < n; ++j) {
      if (rows[i][j] != 0) sum -= rows[i][j] * z[j];
    }
    z[i] = sum / rows[i][i];
    x[i] = Rational(z[i], d);
  }
  return x;
}

bool is_soluble(const Matrix& basis) {
  return !basis.empty() && basis.size() <= kMaxExactEquations && basis.size() == basis[0].size();
}

std::optional<std::vector<Rational>> solve_prices(const Matrix& basis,
                                                  const std::vector<std::int64_t>& values) {
  const std::size_t n = basis.size();
  Matrix turned(n, std::vector<std::int64_t>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) turned[i][j] = basis[j][i];
  }
  return solve_exactly(turned, values);
}

std::vector<Integer> whole_prices(const std::vector<Rational>& prices) {
  Integer scale = 1;
  for (const Rational& price : prices) scale = lcm(scale, denominator(price));
  std::vector<Integer> whole;
  for (const Rational& price : prices) {
    whole.push_back(price < 0 ? Integer(0) : numerator(price) * (scale / denominator(price)));
  }
  return whole;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/fit_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

namespace espalier {
namespace {

// Both directions together below this share of their sum: they share the link.
constexpr double kHalfDuplexShare = 0.75;
// Points of a logarithmic grid between the rates that each measurement alone would give.
constexpr int kGrid = 100;
constexpr double kNano = 1e-9;

/// Four digits: more were not measured.
double four_digits(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

double sum_of_squares(const ArithmeticFigures& figures, const MemoryRates& rates) {
  const double access_s = kNano / rates.gbps;
  const double addition_s = kNano / rates.reduce_gbps;
  const auto square = [](double predicted_s, double measured_s) {
    const double error = std::log(predicted_s / measured_s);
    return error * error;
  };
  double sum = square(2 * access_s, figures.copy_s);
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    const int k = ArithmeticFigures::kOperands[i];
    sum += square(std::max((k + 1) * access_s, (k - 1) * addition_s), figures.combine_s[i]);
  }
  return sum;
}

/// Rates from the least to the largest of `ends`, evenly in their logarithms.
std::vector<double> grid(const std::vector<double>& ends) {
  const auto [least, most] = std::ranges::minmax(ends);
  std::vector<double> points;
  for (int i = 0; i <= kGrid; ++i)
    points.push_back(least * std::pow(most / least, double(i) / kGrid));
  return points;
}

}  // namespace

double sane_gbps(double gbps) {
  return four_digits(std::isfinite(gbps) ? std::clamp(gbps, 1e-3, 1e5) : 1e5);
}

double sane_latency_s(double latency_s) {
  return std::isfinite(latency_s) ? four_digits(std::clamp(latency_s, 0.0, 1.0) * 1e6) * 1e-6 : 0;
}

void set_capacity(Link& link, double theory_gbps, double a_gbps, double b_gbps, double both_gbps) {
  const bool half = both_gbps > 0 && both_gbps < kHalfDuplexShare * (a_gbps + b_gbps);
  const double measured = sane_gbps(half ? both_gbps : std::min(a_gbps, b_gbps));
  if (half) link.duplex = Duplex::half;
  link.gbps = theory_gbps;
  // A little more than measured, which rounding must not take away again.
  if (link.gbps * link.count < measured) link.gbps = four_digits(1.001 * measured / link.count);
  link.measured_gbps = measured;
}

void set_link_profile(Profile& profile, const std::string& kind, double efficiency,
                      double overhead_s) {
  profile.links[kind] = {four_digits(std::clamp(efficiency, 1e-3, 1.0)),
                         sane_latency_s(overhead_s)};
}

MemoryRates fit_memory(const ArithmeticFigures& figures) {
  std::vector<double> rates{2 * kNano / figures.copy_s};
  std::vector<double> reductions;
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    const int k = ArithmeticFigures::kOperands[i];
    rates.push_back((k + 1) * kNano / figures.combine_s[i]);
    reductions.push_back((k - 1) * kNano / figures.combine_s[i]);
  }
  MemoryRates best;
  double least = std::numeric_limits<double>::infinity();
  const std::vector<double> reduce_grid = grid(reductions);
  for (const double gbps : grid(rates)) {
    for (const double reduce_gbps : reduce_grid) {
      const double sum = sum_of_squares(figures, {gbps, reduce_gbps});
      if (sum >= least) continue;
      least = sum;
      best = {gbps, reduce_gbps};
    }
  }
  return best;
}

}  // namespace espalier

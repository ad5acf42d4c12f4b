// SPDX-License-Identifier: Apache-2.0
#include "probe/fit_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

namespace espalier {
namespace {

// Both directions together below this share of twice the slower one: they share the link.
constexpr double kHalfDuplexShare = 0.75;
// Points of a logarithmic grid between the rates that each measurement alone would give.
constexpr int kGrid = 200;
// Errors up to this are noise, whose squares count; larger ones are disturbances, which count no
// more than in proportion.
constexpr double kNoise = 0.05;
constexpr double kNano = 1e-9;

/// Four digits: more were not measured.
double four_digits(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

/// Huber's loss of a relative error (Annals of Mathematical Statistics 35, 1964).
double loss(double predicted_s, double measured_s) {
  const double error = std::abs(std::log(predicted_s / measured_s));
  return error <= kNoise ? error * error : kNoise * (2 * error - kNoise);
}

double sum_of_losses(const ArithmeticFigures& figures, const MemoryRates& rates) {
  const double access_s = kNano / rates.gbps;
  const double addition_s = rates.reduce_gbps > 0 ? kNano / rates.reduce_gbps : 0;
  double sum = loss(2 * access_s, figures.copy_s);
  for (std::size_t i = 0; i < figures.combine_s.size(); ++i) {
    const int k = ArithmeticFigures::kOperands[i];
    sum += loss(std::max((k + 1) * access_s, (k - 1) * addition_s), figures.combine_s[i]);
  }
  return sum;
}

/// Rates from the least to the largest of `ends`, evenly in their logarithms.
std::vector<double> grid(const std::vector<double>& ends) {
  const auto [minimum, maximum] = std::ranges::minmax(ends);
  std::vector<double> points;
  for (int i = 0; i <= kGrid; ++i)
    points.push_back(minimum * std::pow(maximum / minimum, double(i) / kGrid));
  return points;
}

}  // namespace

double sane_gbps(double gbps) {
  return four_digits(std::isfinite(gbps) ? std::clamp(gbps, 1e-3, 1e5) : 1e5);
}

double sane_or_0(double gbps) { return gbps == 0 ? 0 : sane_gbps(gbps); }

double sane_latency_s(double latency_s) {
  return std::isfinite(latency_s) ? four_digits(std::clamp(latency_s, 0.0, 1.0) * 1e6) * 1e-6 : 0;
}

void set_capacity(Link& link, double theory_gbps, double a_gbps, double b_gbps, double both_gbps) {
  const bool half = both_gbps > 0 && both_gbps < kHalfDuplexShare * 2 * std::min(a_gbps, b_gbps);
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
  const std::vector<double> gbps_grid = grid(rates);
  const auto best_of = [&](const std::vector<double>& reduce_grid) {
    std::pair<double, MemoryRates> best{std::numeric_limits<double>::infinity(), {}};
    for (const double gbps : gbps_grid) {
      for (const double reduce_gbps : reduce_grid) {
        const double sum = sum_of_losses(figures, {gbps, reduce_gbps});
        if (sum < best.first) best = {sum, {gbps, reduce_gbps}};
      }
    }
    return best;
  };
  const auto [without_sum, without] = best_of({0});
  const auto [sum, with] = best_of(grid(reductions));
  return without_sum <= sum + kNoise * kNoise ? without : with;
}

}  // namespace espalier

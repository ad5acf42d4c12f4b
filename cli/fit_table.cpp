// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "cli/text.h"
#include "core/words.h"
#include "scenarios/fitted_file.h"

namespace espalier {
namespace {

constexpr int kBar = 20;  // columns of the plot of errors
constexpr int kTimeDigits = 9;
/// Errors are drawn at least at this scale, so that small ones look small.
constexpr double kLeastScale = 0.1;
/// Medians that grow by no more than this are as before.
constexpr double kWorse = 0.01;

std::string figure(double value) { return fmt::format("{:.4g}", value); }
std::string microseconds(double time_s) { return fit_number(time_s * 1e6, kTimeDigits); }
std::string percent(double error) { return fmt::format("{:+.1f}", 100 * error); }

void print_constants(const Console& console, const ProfileFit& fit) {
  Columns fitted("lrrll");
  fitted.add({"constant", "before", "fitted", "", "95 % interval"});
  Columns kept("lrll");
  std::size_t fitted_ones = 0;
  for (const FittedConstant& one : fit.constants) {
    if (one.is_changed()) {
      ++fitted_ones;
      const bool at_limit = one.fitted.determined == Determined::at_limit;
      fitted.add({one.constant.name(), figure(one.before), figure(one.fitted.value),
                  one.constant.unit, at_limit ? "at its limit" : interval_text(one)});
    } else {
      kept.add({one.constant.name(), figure(one.before), one.constant.unit,
                why_kept(one, fit.constants)});
    }
  }
  if (fitted_ones > 0) {
    console.out << fitted.render("# ") << "#\n";
  } else {
    console.out << "# no constant is determined by these times\n#\n";
  }
  if (fitted_ones == fit.constants.size()) return;
  console.out << "# not determined, kept as they are\n" << kept.render("#   ") << "#\n";
}

std::string cells(std::string_view size, std::string_view protocol, std::string_view measured,
                  std::string_view before, std::string_view error_before, std::string_view after,
                  std::string_view error_after, std::string_view plot) {
  return fmt::format("{:>12}  {:<6}  {:>9}  {:>9}  {:>7}  {:>9}  {:>7}  {}", size, protocol,
                     measured, before, error_before, after, error_after, plot);
}

void print_times(const Console& console, const ProfileFit& fit, const FitTable& table,
                 double scale) {
  console.out << fmt::format(
      "# {}\n# {} of {} ranks, {}\n#\n", table.title, to_string(table.collective), table.ranks,
      fit.times[table.first].measured.query.in_place ? "in place" : "out of place");
  console.out << header_line(cells("size", "proto", "measured", "before", "error", "fitted",
                                   "error", fmt::format("full bar: {:.3g} %", 100 * scale)))
              << header_line(cells("(B)", "", "(us)", "(us)", "(%)", "(us)", "(%)", ""));
  for (std::size_t i = table.first; i < table.first + table.count; ++i) {
    const FittedTime& time = fit.times[i];
    console.out << cells(fmt::format("{}", time.measured.query.size_bytes), time.protocol,
                         microseconds(time.measured.time_s), microseconds(time.before_s),
                         percent(time.error_before()), microseconds(time.after_s),
                         percent(time.error_after()),
                         bar(std::abs(time.error_after()) / scale, kBar))
                << '\n';
  }
  console.out << "#\n";
}

void print_bands(const Console& console, std::string_view of, std::span<const FittedTime> times) {
  Columns columns("lrrr");
  columns.add({std::string(of), "times", "before(%)", "fitted(%)"});
  const std::vector<BandDeviations> before = fitted_bands(times, &FittedTime::error_before);
  const std::vector<BandDeviations> after = fitted_bands(times, &FittedTime::error_after);
  for (std::size_t i = 0; i < after.size(); ++i) {
    columns.add({"  " + std::string(after[i].band->title), fmt::format("{}", after[i].times),
                 fmt::format("{:.1f}", 100 * before[i].median),
                 fmt::format("{:.1f}", 100 * after[i].median)});
  }
  console.out << columns.render("# ") << "#\n";
}

/// Where the constants that meet all times best meet some of them less well than before.
void print_losers(const Console& console, const ProfileFit& fit, const FitLogs& logs) {
  std::vector<std::string> losers;
  for (const FitTable& table : logs.tables) {
    const std::span<const FittedTime> times = table.times_of(fit);
    const std::vector<BandDeviations> before = fitted_bands(times, &FittedTime::error_before);
    const std::vector<BandDeviations> after = fitted_bands(times, &FittedTime::error_after);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i].median <= before[i].median + kWorse) continue;
      losers.push_back(fmt::format("{} {} ({:.1f} to {:.1f} %)", to_string(table.collective),
                                   after[i].band->title, 100 * before[i].median,
                                   100 * after[i].median));
    }
  }
  if (losers.empty()) return;
  console.out << wrap("met less well than before the fit: " + join(losers, ", "), console.width,
                      "# ")
              << "#\n";
}

}  // namespace

void print_fit(const Console& console, const ProfileFit& fit, const FitRequest& request,
               const FitLogs& logs) {
  console.out << fmt::format("# fitted profile {} on {} to {}, by {}\n#\n", request.profile,
                             request.machine.name, counted(fit.times.size(), "time"),
                             counted(static_cast<std::size_t>(fit.simulations), "simulation"));
  if (fit.budget && fit.budget->ran_out) {
    console.out << wrap(fmt::format(
                            "Time ran out (--budget {:g}): more time may find constants that "
                            "meet the times better, or more of them",
                            fit.budget->seconds),
                        console.width, "# ")
                << "#\n";
  }
  print_constants(console, fit);
  double scale = kLeastScale;
  for (const FittedTime& time : fit.times) scale = std::max(scale, std::abs(time.error_after()));
  for (const FitTable& table : logs.tables) print_times(console, fit, table, scale);
  for (const FitTable& table : logs.tables) {
    print_bands(console, fmt::format("median errors, {}", table.title), table.times_of(fit));
  }
  if (logs.tables.size() > 1) print_bands(console, "median errors, all", fit.times);
  print_losers(console, fit, logs);
}

}  // namespace espalier

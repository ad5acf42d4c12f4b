// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

constexpr std::size_t kMinColumns = 12;  // of algorithms

std::string cells(std::string_view size, std::string_view algorithm, std::size_t width,
                  std::string_view chunk, std::string_view predicted, std::string_view measured,
                  std::string_view spread, std::string_view error, std::string_view wrong) {
  return fmt::format("{:>12}  {:<{}}  {:>10}  {:>9}  {:>9}  {:>17}  {:>8}  {:>6}", size, algorithm,
                     width, chunk, predicted, measured, spread, error, wrong);
}

void print_header(const Console& console, const Comparison& first, std::string_view where,
                  std::string measured_by, std::size_t width) {
  const Query& query = first.measured.query;
  if (measured_by.empty()) {
    measured_by =
        fmt::format("backend {}, median of {} runs", first.measured.backend, query.run.iterations);
  }
  console.out << fmt::format(
      "# compared {} on {}, {}\n"
      "# predicted: simulated, profile {}; measured: {}\n#\n",
      to_string(query.collective), where, query.in_place ? "in place" : "out of place",
      query.profile, measured_by);
  const std::vector<std::string>& notes = first.measured.report.executed->notes;
  for (const std::string& note : notes) console.out << "# " << note << '\n';
  if (!notes.empty()) console.out << "#\n";
  console.out << '#'
              << cells("size", "algorithm", width, "chunk", "predicted", "measured", "min..max",
                       "error", "#wrong")
                     .substr(1)
              << '\n';
  const std::string units =
      '#' + cells("(B)", "", width, "(B)", "(us)", "(us)", "(us)", "(%)", "").substr(1);
  console.out << units.substr(0, units.find_last_not_of(' ') + 1) << '\n';
}

std::string time_text(double time_s) { return fit_number(time_s * 1e6, 8); }

/// A log has no single runs.
std::string spread_text(const ExecutedPart& measured) {
  if (measured.max_time_s == 0) return "-";
  return time_text(measured.min_time_s) + ".." + time_text(measured.max_time_s);
}

void print_row(const Console& console, const Comparison& one, std::size_t width) {
  const RunReport& measured = one.measured.report;
  const std::int64_t chunk = one.measured.chunk_bytes;
  console.out << cells(fmt::format("{}", measured.message_bytes), algorithm_label(one.measured),
                       width, chunk == 0 ? "-" : fmt::format("{}", chunk),
                       time_text(one.predicted.report.time_s),
                       time_text(measured.executed->median_time_s), spread_text(*measured.executed),
                       fmt::format("{:+.1f}", 100 * one.error()),
                       measured.executed->wrong ? fmt::format("{}", *measured.executed->wrong)
                                                : "N/A")
              << '\n'
              << std::flush;
}

std::string percent(std::optional<double> error) {
  return error ? fmt::format("{:.1f} %", 100 * *error) : "-";
}

}  // namespace

CompareTable::CompareTable(const Console& console, std::string where, std::size_t label_columns,
                           std::string measured_by)
    : console_(console),
      where_(std::move(where)),
      measured_by_(std::move(measured_by)),
      width_(std::max(kMinColumns, label_columns)) {}

void CompareTable::add(const Comparison& row) {
  if (!std::exchange(has_header_, true)) print_header(console_, row, where_, measured_by_, width_);
  print_row(console_, row, width_);
}

void CompareTable::finish(const Comparisons& comparisons) {
  if (!comparisons.rows.empty()) {
    console_.out << fmt::format("#\n# median error: {}; from 16 MiB on: {}\n",
                                percent(comparisons.median_error()),
                                percent(comparisons.median_error(kLargeMessage)));
  }
  print_table_notes(console_, comparisons.measured.outcomes);
}

}  // namespace espalier

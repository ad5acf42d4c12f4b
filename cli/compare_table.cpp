// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/benchmark_notes.h"
#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

constexpr std::size_t kMinColumns = 12;  // of algorithms

struct Cells {
  std::string size = {};
  std::string algorithm = {};
  std::string chunk = {};
  std::string predicted = {};
  std::string expected_error = {};  ///< of the prediction
  std::string measured = {};
  std::string spread = {};
  std::string error = {};
  std::string wrong = {};
  std::string speedup = {};
};

/// Whether there is a column of what is predicted of NCCL.
bool has_nccl(const Comparison& one) {
  const Query& query = one.predicted.query;
  return query.against_nccl && baseline_query(query);
}

std::string line(const Cells& cells, std::size_t width, bool has_nccl) {
  std::string text =
      fmt::format("{:>12}  {:<{}}  {:>10}  {:>9} {:>6}  {:>9}  {:>17}  {:>8}  {:>6}", cells.size,
                  cells.algorithm, width, cells.chunk, cells.predicted, cells.expected_error,
                  cells.measured, cells.spread, cells.error, cells.wrong);
  if (has_nccl) text += fmt::format("  {:>7}", cells.speedup);
  return text;
}

void print_header(const Console& console, const Comparison& first, std::string_view where,
                  std::string_view profile, std::string measured_by, std::size_t width) {
  const Query& query = first.measured.query;
  if (measured_by.empty()) {
    measured_by =
        fmt::format("backend {}, median of {} runs", first.measured.backend, query.run.iterations);
  }
  console.out << fmt::format(
      "# compared {} on {}, {}\n"
      "# predicted: simulated, profile {}{}; measured: {}\n#\n",
      to_string(query.collective), where, query.in_place ? "in place" : "out of place", profile,
      first.measured.benchmark_s > 0 ? fmt::format(", launch {}", to_string(query.launch)) : "",
      measured_by);
  const std::vector<std::string>& notes = first.measured.report.executed->notes;
  for (const std::string& note : notes) console.out << "# " << note << '\n';
  if (!notes.empty()) console.out << "#\n";
  console.out << header_line(line({"size", "algorithm", "chunk", "predicted", "+-", "measured",
                                   "min..max", "error", "#wrong", "vs nccl"},
                                  width, has_nccl(first)))
              << header_line(line({.size = "(B)",
                                   .chunk = "(B)",
                                   .predicted = "(us)",
                                   .measured = "(us)",
                                   .spread = "(us)",
                                   .error = "(%)"},
                                  width, has_nccl(first)));
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
  const std::optional<std::int64_t>& wrong = measured.executed->wrong;
  const std::optional<ExpectedError>& error = one.predicted.error;
  const std::optional<double> speedup = speedup_of(one.predicted);
  const Cells cells = {.size = fmt::format("{}", measured.message_bytes),
                       .algorithm = algorithm_label(one.measured),
                       .chunk = chunk == 0 ? "-" : fmt::format("{}", chunk),
                       .predicted = time_text(one.predicted_s()),
                       .expected_error = error_text(error ? error->relative : 0),
                       .measured = time_text(measured.executed->median_time_s),
                       .spread = spread_text(*measured.executed),
                       .error = fmt::format("{:+.1f}", 100 * one.error()),
                       .wrong = wrong ? fmt::format("{}", *wrong) : "N/A",
                       .speedup = speedup ? speedup_text(*speedup) : "-"};
  console.out << line(cells, width, has_nccl(one)) << '\n' << std::flush;
}

std::string percent(std::optional<double> error) {
  return error ? fmt::format("{:.1f} %", 100 * *error) : "-";
}

}  // namespace

CompareTable::CompareTable(const Console& console, std::string where, const TableHead& head,
                           std::string measured_by)
    : console_(console),
      where_(std::move(where)),
      measured_by_(std::move(measured_by)),
      profile_(head.profile),
      width_(std::max(kMinColumns, head.label_columns)) {}

void CompareTable::add(const Comparison& row) {
  if (!std::exchange(has_header_, true))
    print_header(console_, row, where_, profile_, measured_by_, width_);
  print_row(console_, row, width_);
  Outcome kept = row.predicted;
  kept.report = {};
  predicted_.push_back(std::move(kept));
}

void CompareTable::finish(const Comparisons& comparisons) {
  if (!comparisons.rows.empty()) {
    console_.out << fmt::format("#\n# median error: {}; from 16 MiB on: {}\n",
                                percent(comparisons.median_error()),
                                percent(comparisons.median_error(kLargeMessage)));
  }
  print_error_sources(console_, predicted_);
  print_nccl_note(console_, predicted_);
  print_profile_notes(console_, predicted_, profile_);
  print_table_notes(console_, comparisons.measured.outcomes);
}

}  // namespace espalier

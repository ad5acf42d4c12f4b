// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/benchmark_notes.h"
#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
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
  std::string library = {};           ///< its measured time
  std::string measured_speedup = {};  ///< over it
};

/// The columns beyond those that every comparison has.
struct Extra {
  bool nccl = false;     ///< what is predicted of it
  bool library = false;  ///< what was measured of a library
};

Extra extra_of(const Comparison& one) {
  const Query& query = one.predicted.query;
  return {.nccl = query.against_nccl && baseline_query(query), .library = one.library.has_value()};
}

std::string line(const Cells& cells, std::size_t width, const Extra& extra) {
  std::string text =
      fmt::format("{:>12}  {:<{}}  {:>10}  {:>9} {:>6}  {:>9}  {:>17}  {:>8}  {:>6}", cells.size,
                  cells.algorithm, width, cells.chunk, cells.predicted, cells.expected_error,
                  cells.measured, cells.spread, cells.error, cells.wrong);
  if (extra.nccl) text += fmt::format("  {:>7}", cells.speedup);
  if (extra.library) text += fmt::format("  {:>9}  {:>8}", cells.library, cells.measured_speedup);
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
  std::vector<std::string> notes = first.measured.report.executed->notes;
  if (first.library) {
    const std::vector<std::string>& of_library = first.library->report.executed->notes;
    notes.insert(notes.end(), of_library.begin(), of_library.end());
  }
  for (const std::string& note : notes) console.out << "# " << note << '\n';
  if (!notes.empty()) console.out << "#\n";
  console.out << header_line(line({"size", "algorithm", "chunk", "predicted", "+-", "measured",
                                   "min..max", "error", "#wrong", "vs nccl",
                                   first.library ? first.library->backend : "", "measured"},
                                  width, extra_of(first)))
              << header_line(line({.size = "(B)",
                                   .chunk = "(B)",
                                   .predicted = "(us)",
                                   .measured = "(us)",
                                   .spread = "(us)",
                                   .error = "(%)",
                                   .library = "(us)",
                                   .measured_speedup = "speed-up"},
                                  width, extra_of(first)));
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
  const std::optional<double> speedup = one.predicted_speedup();
  const std::optional<double> measured_speedup = one.measured_speedup();
  const Cells cells = {
      .size = fmt::format("{}", measured.message_bytes),
      .algorithm = algorithm_label(one.measured),
      .chunk = chunk == 0 ? "-" : fmt::format("{}", chunk),
      .predicted = time_text(one.predicted_s()),
      .expected_error = error_text(error ? error->relative : 0),
      .measured = time_text(measured.executed->median_time_s),
      .spread = spread_text(*measured.executed),
      .error = fmt::format("{:+.1f}", 100 * one.error()),
      .wrong = wrong ? fmt::format("{}", *wrong) : "N/A",
      .speedup = speedup ? speedup_text(*speedup) : "-",
      .library = one.library ? time_text(one.library->report.executed->median_time_s) : "",
      .measured_speedup = measured_speedup ? speedup_text(*measured_speedup) : "-"};
  console.out << line(cells, width, extra_of(one)) << (one.is_of_changed_machine() ? "  *" : "")
              << '\n'
              << std::flush;
}

/// What was measured of a library, and where its results were wrong.
void print_library_note(const Console& console, const Comparisons& comparisons) {
  if (comparisons.rows.empty() || !comparisons.rows.front().library) return;
  const std::string& name = comparisons.rows.front().library->backend;
  console.out << wrap(fmt::format("measured speed-up: the median time of {} over that of the "
                                  "program; both are graphs that are launched again and again, "
                                  "unless a note above says otherwise",
                                  name),
                      console.width, "# ");
  for (const Comparison& row : comparisons.rows) {
    const std::int64_t wrong = row.library->report.wrong_elements();
    if (wrong == 0) continue;
    console.out << fmt::format("# {} WRONG ELEMENTS IN RESULTS OF {} AT {} B\n", wrong, name,
                               row.measured.report.message_bytes);
  }
}

/// Rows one after the other, while which the machine was not as probed.
struct ChangedSpan {
  const Comparison* first = nullptr;
  const Comparison* last = nullptr;
  std::size_t rows = 0;
  std::vector<CheckedFigure> figures = {};  ///< each as it was off most
};

std::vector<ChangedSpan> changed_spans(const Comparisons& comparisons) {
  std::vector<ChangedSpan> spans;
  bool goes_on = false;
  for (const Comparison& row : comparisons.rows) {
    if (!std::exchange(goes_on, row.is_of_changed_machine()) && goes_on) {
      spans.push_back({.first = &row});
    }
    if (!goes_on) continue;
    ChangedSpan& span = spans.back();
    span.last = &row;
    ++span.rows;
    for (const CheckedFigure& one : *row.changed) {
      const auto known = std::ranges::find_if(span.figures, [&](const CheckedFigure& other) {
        return other.name == one.name && other.bytes == one.bytes;
      });
      if (known == span.figures.end()) {
        span.figures.push_back(one);
      } else if (known->factor() < one.factor()) {
        *known = one;
      }
    }
  }
  return spans;
}

std::string row_label(const Comparison& row) {
  return fmt::format("{} B {}", row.measured.report.message_bytes, algorithm_label(row.measured));
}

std::string describe_span(const ChangedSpan& span) {
  std::string text = span.rows == 1 ? row_label(*span.first)
                                    : fmt::format("{} to {} ({} rows)", row_label(*span.first),
                                                  row_label(*span.last), span.rows);
  char separator = ':';
  for (const CheckedFigure& one : span.figures) {
    text += fmt::format("{} {} {:.3g} GB/s, probed {:.3g} ({} of each rank)",
                        std::exchange(separator, ';'), one.name, one.now_gbps, one.probed_gbps,
                        describe_size(one.bytes));
  }
  return text;
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

namespace {

/// Where the machine was not as probed, and what the errors of the other rows are.
void print_changes(const Console& console, const Comparisons& comparisons) {
  if (!comparisons.are_checked()) return;
  const std::vector<ChangedSpan> spans = changed_spans(comparisons);
  if (spans.empty()) {
    console.out << "# before and after each row, the machine was as probed\n";
    return;
  }
  const auto as_probed = std::ranges::count_if(
      comparisons.rows, [](const Comparison& row) { return !row.is_of_changed_machine(); });
  console.out << fmt::format(
                     "# of the {} of {} rows with the machine as probed: {}; from 16 MiB on: {}\n",
                     as_probed, comparisons.rows.size(),
                     percent(comparisons.median_error_as_probed()),
                     percent(comparisons.median_error_as_probed(kLargeMessage)))
              << wrap(
                     "*: the machine was not as probed right before or after; the error says more "
                     "of that than of the model",
                     console.width, "# ");
  for (const ChangedSpan& span : spans) {
    console.out << wrap(describe_span(span), console.width, "#   ");
  }
}

}  // namespace

void CompareTable::finish(const Comparisons& comparisons) {
  if (!comparisons.rows.empty()) {
    console_.out << fmt::format("#\n# median error: {}; from 16 MiB on: {}\n",
                                percent(comparisons.median_error()),
                                percent(comparisons.median_error(kLargeMessage)));
    print_changes(console_, comparisons);
  }
  print_error_sources(console_, predicted_);
  print_nccl_note(console_, predicted_, "");
  print_library_note(console_, comparisons);
  print_profile_notes(console_, predicted_, profile_);
  print_table_notes(console_, comparisons.measured.outcomes);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/report.h"
#include "cli/text.h"
#include "core/error.h"
#include "core/median.h"

namespace espalier {

namespace {

constexpr int kAlgorithmColumns = 12;

std::string cells(std::string_view size, std::string_view algorithm, std::size_t width,
                  std::string_view chunk, std::string_view predicted, std::string_view measured,
                  std::string_view spread, std::string_view error, std::string_view wrong) {
  return fmt::format("{:>12}  {:<{}}  {:>10}  {:>9}  {:>9}  {:>17}  {:>8}  {:>6}", size, algorithm,
                     width, chunk, predicted, measured, spread, error, wrong);
}

void print_header(const Console& console, const Comparison& first, std::string_view where,
                  std::size_t width) {
  const Query& query = first.measured.query;
  console.out << fmt::format(
      "# compared {} on {}, {}\n"
      "# predicted: simulated, profile {}; measured: backend {}, the median of {} runs\n#\n",
      to_string(query.collective), where, query.in_place ? "in place" : "out of place",
      query.profile, first.measured.backend, query.run.iterations);
  for (const std::string& note : first.measured.report.executed->notes)
    console.out << "# " << note << '\n';
  if (!first.measured.report.executed->notes.empty()) console.out << "#\n";
  console.out << '#'
              << cells("size", "algorithm", width, "chunk", "predicted", "measured", "least..most",
                       "error", "#wrong")
                     .substr(1)
              << '\n';
  const std::string units =
      '#' + cells("(B)", "", width, "(B)", "(us)", "(us)", "(us)", "(%)", "").substr(1);
  console.out << units.substr(0, units.find_last_not_of(' ') + 1) << '\n';
}

std::string micros(double time_s) { return fit_number(time_s * 1e6, 8); }

void print_row(const Console& console, const Comparison& one, std::size_t width) {
  const RunReport& measured = one.measured.report;
  const std::int64_t chunk = one.measured.chunk_bytes;
  console.out
      << cells(fmt::format("{}", measured.message_bytes), algorithm_label(one.measured), width,
               chunk == 0 ? "-" : fmt::format("{}", chunk), micros(one.predicted.report.time_s),
               micros(measured.executed->median_time_s),
               micros(measured.executed->min_time_s) + ".." + micros(measured.executed->max_time_s),
               fmt::format("{:+.1f}", 100 * one.error()),
               measured.executed->wrong ? fmt::format("{}", *measured.executed->wrong) : "N/A")
      << '\n'
      << std::flush;
}

std::string percent(std::optional<double> error) {
  return error ? fmt::format("{:.1f} %", 100 * *error) : "-";
}

}  // namespace

double Comparison::error() const {
  const double measured_s = measured.report.executed->median_time_s;
  return measured_s > 0 ? predicted.report.time_s / measured_s - 1 : 0;
}

std::optional<double> median_error(const std::vector<Comparison>& comparisons,
                                   std::int64_t min_bytes) {
  std::vector<double> errors;
  for (const Comparison& one : comparisons) {
    if (one.measured.report.message_bytes >= min_bytes) errors.push_back(std::abs(one.error()));
  }
  if (errors.empty()) return std::nullopt;
  return median(std::move(errors));
}

std::vector<Comparison> compare_table(const Console& console, Study& predicting, Study& measuring,
                                      const std::vector<Query>& queries, std::string_view where,
                                      bool print, Answers& answers) {
  std::size_t width = kAlgorithmColumns;
  for (const Query& query : queries) width = std::max(width, widest_label(predicting, query));
  std::vector<Comparison> all;
  Progress progress(console, 2 * queries.size());
  for (const Query& query : queries) {
    progress.step("simulated " + progress_label(query));
    Outcome predicted = predicting.ask(query);
    progress.step(progress_label(query));
    Outcome measured = predicted.ran() ? measuring.ask(query) : predicted;
    progress.erase();
    for (const Diagnostic& problem : measured.problems) say(console, render(problem));
    answers.add(measured);
    if (!measured.ran()) continue;
    const bool is_first = all.empty();
    all.push_back({std::move(predicted), std::move(measured)});
    Comparison& one = all.back();
    one.predicted.program.reset();  // it may be large, and the next one is too
    one.measured.program.reset();
    if (!print) continue;
    if (is_first) print_header(console, one, where, width);
    print_row(console, one, width);
  }
  if (!print) return all;
  if (!all.empty()) {
    console.out << fmt::format("#\n# median error: {}; from 16 MiB on: {}\n",
                               percent(median_error(all, 0)),
                               percent(median_error(all, kLargeMessage)));
  }
  print_skipped(console, answers);
  return all;
}

std::string comparison_json(const std::vector<Comparison>& comparisons, const Answers& answers,
                            std::string_view where) {
  Json rows = Json::array();
  for (const Comparison& one : comparisons) {
    const Query& query = one.measured.query;
    const RunReport& measured = one.measured.report;
    rows.push_back(
        {{"collective", to_string(query.collective)},
         {"algorithm", query.algorithm},
         {"in_place", query.in_place},
         {"ranks", one.measured.ranks},
         {"size_bytes", measured.message_bytes},
         {"chunk_bytes", one.measured.chunk_bytes},
         {"predicted_s", rounded(one.predicted.report.time_s)},
         {"measured_s", rounded(measured.executed->median_time_s)},
         {"min_time_s", rounded(measured.executed->min_time_s)},
         {"max_time_s", rounded(measured.executed->max_time_s)},
         {"error", rounded(one.error())},
         {"wrong", measured.executed->wrong ? Json(*measured.executed->wrong) : Json()}});
    if (!one.measured.chosen.empty()) rows.back()["chosen"] = one.measured.chosen;
  }
  const auto or_null = [](std::optional<double> error) { return error ? rounded(*error) : Json(); };
  Json json;
  json["schema"] = "espalier.compare/1";
  json["machine"] = where;
  if (!comparisons.empty()) {
    json["profile"] = comparisons.front().measured.query.profile;
    json["backend"] = comparisons.front().measured.backend;
  }
  json["median_error"] = or_null(median_error(comparisons, 0));
  json["median_error_from_16MiB"] = or_null(median_error(comparisons, kLargeMessage));
  json["rows"] = std::move(rows);
  json["skipped"] = Json::array();
  for (const Skipped& one : answers.skipped) json["skipped"].push_back(skipped_json(one));
  return dump(json);
}

}  // namespace espalier

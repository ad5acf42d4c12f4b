// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cli/compare_table.h"
#include "cli/paging.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "core/units.h"
#include "formats/machine.h"
#include "formats/measured_machine.h"
#include "formats/measured_tables.h"
#include "nccl/choice.h"
#include "report/outcomes.h"
#include "scenarios/describe.h"
#include "scenarios/measured_log.h"
#include "scenarios/turns.h"
#include "sim/simulator.h"

namespace espalier {
namespace {

/// What the log decides where no option does: the collective of its first table that has one.
std::optional<Contract> asked_by(Arguments& arguments, const MeasuredTables& log) {
  const auto named = std::ranges::find_if(
      log.tables, [](const MeasuredTable& table) { return table.collective.has_value(); });
  if (named != log.tables.end()) {
    Contract contract;
    contract.collective = *named->collective;
    for (const MeasuredRow& row : named->rows) contract.root = std::max(0, row.root.value_or(0));
    return contract;
  }
  if (!arguments.given("--collective")) {
    std::string fits;
    for (const CollectiveFit& one : log.tables.front().fits) {
      fits += fmt::format("{}{}", fits.empty() ? "" : " or ", to_string(one.collective));
    }
    arguments.problem_of(
        "--measured", "the log does not say which collective it is about",
        fits.empty() ? "--collective says it" : "--collective says it; the figures fit " + fits);
  }
  return std::nullopt;
}

/// Options about an execution, of which there is none.
void refuse_execution(Arguments& arguments) {
  for (const char* option :
       {"--backend", "--devices", "--ranks", "--against", "--output", "--trace", "--trace-ops",
        "--iters", "--warmup", "--no-check", "--timeout", "--dtype", "--op"}) {
    if (arguments.given(option)) {
      arguments.problem_of(option, "nothing is run if --measured names a log");
    }
  }
  if (!arguments.given("--topology")) {
    arguments.problem("--measured needs the machine that was measured: --topology is missing",
                      "espalier list topologies");
  }
}

/// The measured time in place of the predicted one.
Outcome measured_outcome(const Outcome& predicted, const MeasuredTime& time) {
  Outcome measured = predicted;
  measured.backend = "log";
  measured.report = {};
  measured.report.message_bytes = predicted.report.message_bytes;
  measured.report.time_s = measured.benchmark_s = time.time_s;
  ExecutedPart part;
  part.median_time_s = time.time_s;
  if (time.wrong) part.wrong = static_cast<std::int64_t>(*time.wrong);
  measured.report.executed = part;
  return measured;
}

/// Says at which sizes the log is faster than the machine's links can be.
void say_impossible(const Console& console, const std::vector<Comparison>& rows) {
  std::map<std::int64_t, double> beaten;
  std::set<std::int64_t> all;
  for (const Comparison& row : rows) {
    if (!row.predicted.time_bound || !row.predicted.bound) continue;
    const double share = row.predicted.least_s() / row.measured.report.time_s;
    const std::int64_t bytes = row.measured.report.message_bytes;
    all.insert(bytes);
    if (share > 1 + kClockShare) beaten[bytes] = std::max(beaten[bytes], share);
  }
  if (beaten.empty()) return;
  const auto worst = std::ranges::max_element(
      beaten, {}, [](const std::pair<const std::int64_t, double>& one) { return one.second; });
  say(console,
      fmt::format("note: at {} of {} the log is faster than any schedule on this machine's links "
                  "(up to {:.2f} times, at {}): is it this machine?",
                  beaten.size(), counted(all.size(), "size"), worst->second,
                  describe_size(worst->first)));
}

class LogComparison {
 public:
  LogComparison(const Console& console, const Sweep& sweep, bool print)
      : console_(console), sweep_(sweep), print_(print), study_(simulator_, &simulator_) {}

  /// One half of one table, which it adds to all.
  Comparisons compare(const MeasuredTables& log, const MeasuredTable& table, const Query& question,
                      const MeasuredTimes& times) {
    Sweep sweep = sweep_;
    sweep.question = question;
    sweep.sizes.clear();
    for (const auto& [bytes, time] : times) sweep.sizes.push_back(bytes);
    const std::vector<Query> queries = sweep.queries();
    if (print_ && has_printed_) console_.out << '\n';
    Refusals refusals(console_);
    CompareTable shown(console_, question.topology, head_of(study_, queries),
                       who_measured(log, table));
    Progress progress(console_, queries.size());
    Turns turns(queries.size());
    Outcome predicted;
    const Comparisons found = compare_table(
        queries,
        [&](const Query& query) {
          progress.step("simulated " + progress_label(query));
          predicted = turns.take(query, [&] { return study_.ask(query); });
          return predicted;
        },
        [&](const Query& query) { return measured_outcome(predicted, times.at(query.size_bytes)); },
        [&](const Outcome& measured, const Comparison* row) {
          progress.erase();
          refusals.add(measured.problems);
          if (print_ && row != nullptr) shown.add(*row);
          has_printed_ = has_printed_ || row != nullptr;
        });
    if (print_) shown.finish(found);
    all_.rows.insert(all_.rows.end(), found.rows.begin(), found.rows.end());
    all_.measured.add(found.measured);
    return found;
  }

  const Comparisons& all() const { return all_; }
  Study& study() { return study_; }

 private:
  const Console& console_;
  const Sweep& sweep_;
  bool print_;
  bool has_printed_ = false;
  Simulator simulator_;
  Study study_;
  Comparisons all_;
};

/// What options choose of a log.
struct LogChoice {
  std::vector<std::int64_t> only_sizes;  ///< empty: all
  bool only_in_place = false;
  SaidOfLaunch of_launch;  ///< whatever the log says of it
};

/// Every half of every table that is about the collective; says what is left out.
void compare_tables(LogComparison& comparison, const Console& console, const MeasuredTables& log,
                    const Sweep& sweep, const LogChoice& choice) {
  const Topology machine = open_machine(sweep.question.topology);
  std::size_t left = log.tables.size();
  for (const MeasuredTable& table : log.tables) {
    const TimeLimit of_table = TimeLimit::share_of_rest(left--);
    const Collective asked = sweep.question.collective;
    if (table.collective && *table.collective != asked) {
      say(console, fmt::format("note: {}:{}: a table of {} is left out: --collective chooses",
                               log.file, table.line, to_string(*table.collective)));
      continue;
    }
    const auto fit = std::ranges::find(table.fits, asked, &CollectiveFit::collective);
    if (!table.collective && fit == table.fits.end()) {
      say(console,
          fmt::format("note: {}:{}: a table is left out, whose figures are not those of {}",
                      log.file, table.line, to_string(asked)));
      continue;
    }
    for (const std::string& note : table.notes) say(console, "note: " + printable(note));
    for (const std::string& note : {different_gpus(table, machine), unknown_gpus(table, machine)}) {
      if (!note.empty()) say(console, "note: " + note);
    }
    Query question = sweep.question;
    // Who knows the collective knows the ranks, where several collectives fit.
    const int ranks = table.ranks > 0 || fit == table.fits.end() ? table.ranks : fit->ranks;
    place_ranks_of(notes_to(console), table, ranks, machine, log.file, question);
    read_launch(notes_to(console), table, choice.of_launch, machine, question);
    std::vector<Comparison> rows;
    for (const bool in_place : {false, true}) {
      if (choice.only_in_place && !in_place) continue;
      const MeasuredTimes times = times_of(notes_to(console), table, in_place, choice.only_sizes);
      if (times.empty()) continue;
      if (in_place && !choice.only_in_place && !nccl_has_in_place(asked)) {
        say(console,
            fmt::format("note: {}:{}: times in place are left out: NCCL has no {} in place",
                        log.file, table.line, to_string(asked)));
        continue;
      }
      const TimeLimit of_half = TimeLimit::share_of_rest(in_place ? 1 : 2);
      question.in_place = in_place;
      const Comparisons half = comparison.compare(log, table, question, times);
      rows.insert(rows.end(), half.rows.begin(), half.rows.end());
    }
    say_impossible(console, rows);
  }
}

}  // namespace

int compare_with_log(Arguments& arguments, const Console& console) {
  refuse_execution(arguments);
  const auto log =
      arguments.reading("--measured", [&] { return read_measured(arguments.text("--measured")); });
  const Sweep sweep =
      read_sweep(arguments, log ? asked_by(arguments, *log) : std::optional<Contract>());
  const std::string json = arguments.output("--json");
  const std::string csv = arguments.output("--csv");
  const std::string html = arguments.output("--html");
  const TimeLimit limit(read_budget_s(arguments));
  arguments.finish();

  LogComparison comparison(console, sweep, arguments.prints_text());
  LogChoice choice;
  if (arguments.given("--size")) choice.only_sizes = sweep.sizes;
  choice.only_in_place = arguments.given("--in-place");
  choice.of_launch = {.mode = arguments.given("--launch"),
                      .version = std::ranges::all_of(sweep.algorithms, names_library_version)};
  compare_tables(comparison, console, *log, sweep, choice);
  const Comparisons& all = comparison.all();
  if (all.rows.empty() && all.measured.skipped.empty()) {
    throw Error(ErrorKind::input, {{"",
                                    fmt::format("the log has no times of {} to compare with",
                                                to_string(sweep.question.collective)),
                                    "",
                                    {log->file, 0, 0}}});
  }
  if (arguments.prints_text()) print_not_here(console, all.measured, sweep.all_algorithms);
  if (!json.empty()) {
    write_output(console, json, comparisons_json(all, sweep.question.topology));
  }
  if (!csv.empty()) write_output(console, csv, comparisons_csv(all, sweep.question.topology));
  if (!html.empty() && !all.rows.empty()) {
    // As of all pages, the verdict is about the fastest with the largest message.
    const auto best = std::ranges::min_element(all.rows, {}, [](const Comparison& row) {
      return std::pair(-row.measured.report.message_bytes, row.predicted.report.time_s);
    });
    write_page(console, html,
               page_of(arguments, all, sweep.question.topology,
                       {run_beside_log(comparison.study(), *best)}));
  }
  return conclude(all.measured, sweep.all_algorithms);
}

}  // namespace espalier

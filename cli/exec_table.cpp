// SPDX-License-Identifier: Apache-2.0
#include "cli/exec_table.h"

#include <fmt/format.h>

#include <utility>

#include "backends.h"
#include "cli/nccl_tests_output.h"
#include "cli/sim_table.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// Half a row: one way of running.
std::string half_row(std::string_view time, std::string_view algbw, std::string_view busbw,
                     std::string_view wrong) {
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, algbw, busbw, wrong);
}

void print_header(const Console& console, const Outcome& outcome) {
  const Query& query = outcome.query;
  const BackendEntry& entry = find_backend(outcome.backend);
  const std::string ranks = describe_ranks(query, outcome.ranks);
  console.out << fmt::format("# executed {} with {}", to_string(query.collective), query.algorithm)
              << (query.topology.empty() ? fmt::format(" ({})\n", ranks)
                                         : fmt::format(", the program for {}\n", ranks))
              << fmt::format("# ran on {} (backend {}){}\n", entry.runs_on, outcome.backend,
                             entry.has_devices || query.topology.empty()
                                 ? ""
                                 : fmt::format(", so times are not those of {}", query.topology))
              << fmt::format("# warmup iters: {} iters: {} validation: {}\n#\n", query.run.warmup,
                             query.run.iterations, query.run.check ? 1 : 0);
  for (const std::string& note : outcome.report.executed->notes)
    console.out << "# " << note << '\n';
  if (!outcome.report.executed->notes.empty()) console.out << "#\n";
  console.out << fmt::format("#{:>74}{:>33}\n", "out-of-place", "in-place");
  const std::string names = half_row("time", "algbw", "busbw", "#wrong");
  const std::string units = half_row("(us)", "(GB/s)", "(GB/s)", "");
  console.out << fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", "size", "count", "type",
                             "redop", "root", names, names);
  const std::string line = fmt::format("#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", "(B)",
                                       "(elements)", "", "", "", units, units);
  console.out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
}

std::string measured(const Outcome& outcome) {
  if (!outcome.ran()) return half_row("N/A", "N/A", "N/A", "N/A");
  const RunReport& report = outcome.report;
  return half_row(fit_number(report.time_s * 1e6, 7), fit_number(report.algbw_gbps(), 6),
                  fit_number(outcome.busbw_gbps(), 6),
                  report.executed->wrong ? fmt::format("{}", *report.executed->wrong) : "N/A");
}

std::string row(const Outcome& out_of_place, const Outcome& in_place) {
  const Outcome& any = out_of_place.ran() ? out_of_place : in_place;
  const MeasuredRow row = row_of(any);
  return fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}", row.bytes, row.count, row.type,
                     row.redop, *row.root, measured(out_of_place), measured(in_place));
}

/// Which algorithms were chosen for the rows, where they were: the table itself has no column for
/// it.
void print_choices(const Console& console, const std::vector<Outcome>& outcomes) {
  Columns columns("ll");
  for (const Outcome& outcome : outcomes) {
    if (outcome.chosen.empty()) continue;
    columns.add(
        {describe_size(outcome.query.size_bytes) + (outcome.query.in_place ? " in place" : ""),
         outcome.chosen});
  }
  console.out << columns.render("# chosen at ");
}

void print_footer(const Console& console, const std::vector<Outcome>& outcomes) {
  std::int64_t wrong = 0;
  double busbw_gbps = 0;
  for (const Outcome& outcome : outcomes) {
    wrong += outcome.report.wrong_elements();
    busbw_gbps += outcome.busbw_gbps();
  }
  if (outcomes.empty()) return;
  console.out << fmt::format("# Out of bounds values : {} {}\n", wrong,
                             wrong == 0 ? "OK" : "FAILED")
              << fmt::format("# Avg bus bandwidth    : {:g}\n#\n",
                             busbw_gbps / static_cast<double>(outcomes.size()));
}

}  // namespace

void ExecTable::add(const Outcome& out_of_place, const Outcome& in_place) {
  if (!out_of_place.ran() && !in_place.ran()) return;
  if (!std::exchange(has_header_, true)) {
    print_header(console_, out_of_place.ran() ? out_of_place : in_place);
  }
  console_.out << row(out_of_place, in_place) << '\n' << std::flush;
}

void ExecTable::finish(const Answers& answers) {
  print_choices(console_, answers.outcomes);
  print_table_notes(console_, answers.outcomes, ShownChoice::whole);
  print_footer(console_, answers.outcomes);
  if (!answers.outcomes.empty() && answers.outcomes.front().bound) {
    const bool elsewhere = !find_backend(answers.outcomes.front().backend).has_devices;
    console_.out << "# The bound of the named machine"
                 << (elsewhere ? ", which is not this computer:\n" : ":\n");
    print_bounds(console_, answers.outcomes);
  }
}

}  // namespace espalier

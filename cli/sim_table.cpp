// SPDX-License-Identifier: Apache-2.0
#include "cli/sim_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/benchmark_notes.h"
#include "cli/sweep.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "scenarios/asked_table.h"
#include "scenarios/describe.h"
#include "scenarios/tables.h"
#include "scenarios/turns.h"

namespace espalier {

namespace {

constexpr int kLinkBarColumns = 40;
/// Steps of a critical path shown at its beginning and at its end.
constexpr std::size_t kShownSteps = 16;
/// Of a certificate; JSON has all of it.
constexpr std::size_t kCertificateColumns = 800;

/// "1.074 GB": decimal, as bandwidths are.
std::string decimal_bytes(double bytes) {
  const double exponent = bytes >= 1e9 ? 9 : bytes >= 1e6 ? 6 : bytes >= 1e3 ? 3 : 0;
  const char* unit = bytes >= 1e9 ? "GB" : bytes >= 1e6 ? "MB" : bytes >= 1e3 ? "kB" : "B";
  return fmt::format("{:.1f} {}", bytes / std::pow(10, exponent), unit);
}

/// Narrower labels of algorithms make no narrower column, and wider ones only their own row wider:
/// with all columns but those of measured times, a table is then 120 columns wide.
constexpr std::size_t kMinLabelColumns = 9;
constexpr std::size_t kMaxLabelColumns = 23;

/// As nccl-tests prints it: over the sizes. Over several algorithms it would say nothing.
void print_average(const Console& console, const std::vector<Outcome>& outcomes) {
  double sum = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.query.algorithm != outcomes.front().query.algorithm) return;
    sum += outcome.busbw_gbps();
  }
  if (outcomes.empty()) return;
  console.out << fmt::format("# Avg bus bandwidth    : {:g}\n",
                             sum / static_cast<double>(outcomes.size()));
}

}  // namespace

namespace {

/// "at least 12.1 us + size / 68.57 GB/s, and at least 12.4 us", or nothing where both are 0.
std::string least_times(const Bound& bound, const TimeBound& time) {
  std::vector<std::string> terms;
  const double ends_us = (time.call_s + time.ends_s) * 1e6;
  const double way_us = (time.call_s + time.way_s) * 1e6;
  if (ends_us > 0) {
    terms.push_back(fmt::format("at least {:.4g} us + size / {} GB/s", ends_us,
                                format_gbps(bound.algbw_gbps / time.wire)));
  }
  if (way_us > ends_us) terms.push_back(fmt::format("at least {:.4g} us", way_us));
  return join(terms, ", and ");
}

/// Under each protocol that is the least somewhere.
void print_least_times(const Console& console, const std::vector<Outcome>& outcomes,
                       const std::string& links) {
  std::vector<std::string> printed;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.bound || links_used(outcome) != links) continue;
    const std::string times = least_times(*outcome.bound, *outcome.time_bound);
    if (times.empty()) continue;
    const std::string& protocol = outcome.time_bound->protocol;
    std::string line =
        fmt::format("Time ({}{}{}): {}", links, protocol.empty() ? "" : ", ", protocol, times);
    if (std::ranges::count(printed, line) > 0) continue;
    printed.push_back(line);
    console.out << wrap(line, console.width, "# ");
    const std::string& way = outcome.time_bound->certificate;
    if (!way.empty()) console.out << wrap(way, console.width, "#   ");
  }
}

}  // namespace

void print_bounds(const Console& console, const std::vector<Outcome>& outcomes) {
  // Runtimes and protocols differ in rates, and so in their bounds: the widest is that of all.
  std::vector<std::pair<std::tuple<LinkScope, bool, bool>, const Outcome*>> widest;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.bound || !std::isfinite(outcome.bound->algbw_gbps)) continue;
    const std::tuple key(outcome.bound_links, outcome.bound_helpers, outcome.bound_relays);
    const auto known =
        std::ranges::find(widest, key, [](const auto& entry) { return entry.first; });
    if (known == widest.end()) {
      widest.push_back({key, &outcome});
    } else if (outcome.bound->algbw_gbps > known->second->bound->algbw_gbps) {
      known->second = &outcome;
    }
  }
  for (const auto& [unused, outcome] : widest) {
    const Bound& bound = *outcome->bound;
    console.out << fmt::format(
        "# Bound ({}): {} GB/s algbw, {} GB/s busbw, proved by {}\n", links_used(*outcome),
        format_gbps(bound.algbw_gbps),
        format_gbps(bound.algbw_gbps * busbw_factor(outcome->query.collective, outcome->ranks)),
        proof_of(bound));
    console.out << wrap(shorten(bound.certificate, kCertificateColumns), console.width, "#   ");
    print_least_times(console, outcomes, links_used(*outcome));
  }
}

SimTable::SimTable(const Console& console, const TableHead& head, std::size_t most_rows)
    : console_(console),
      most_rows_(most_rows),
      label_width_(std::clamp(head.label_columns, kMinLabelColumns, kMaxLabelColumns)),
      has_benchmark_(has_benchmark(head.queries.front())),
      has_nccl_(head.queries.front().against_nccl && baseline_query(head.queries.front())),
      measured_(head.measured),
      profile_(head.profile) {
  for (const Query& query : head.queries) sizes_.push_back(query.size_bytes);
  const Query& first = head.queries.front();
  const CollectiveInfo& collective = info(first.collective);
  console_.out << fmt::format(
      "# simulated {}{} on {}\n# profile {}, links {}, {}{}\n#\n", collective.name,
      collective.rooted ? fmt::format(" (root {})", first.root) : "",
      describe_ranks(first, head.ranks), head.profile, to_string(first.links),
      first.in_place ? "in place" : "out of place",
      has_benchmark_ ? fmt::format(", launch {}", to_string(first.launch)) : "");
}

/// One line of the table; the header is made of the same columns.
struct SimTable::Cells {
  std::string size = {};
  std::string algorithm = {};
  std::string chunk = {};
  std::string protocol = {};
  std::string time = {};
  std::string error = {};
  std::string benchmark = {};
  std::string measured = {};
  std::string off = {};  ///< the simulated time from the measured one
  std::string algbw = {};
  std::string busbw = {};
  std::string share = {};
  std::string speedup = {};
  std::string links = {};
};

std::string SimTable::line(const Cells& cells) const {
  std::string text = fmt::format("{:>12}  {:<{}} {:>10} {:<6} {:>7}", cells.size, cells.algorithm,
                                 label_width_, cells.chunk, cells.protocol, cells.time);
  if (has_benchmark_) text += fmt::format(" {:>6} {:>7}", cells.error, cells.benchmark);
  if (measured_ != nullptr) text += fmt::format(" {:>8} {:>6}", cells.measured, cells.off);
  text += fmt::format("  {:>6}  {:>6} {:>6}", cells.algbw, cells.busbw, cells.share);
  if (has_nccl_) text += fmt::format(" {:>7}", cells.speedup);
  return text + fmt::format("  {:<8}", cells.links);
}

std::string SimTable::column_names() const {
  return header_line(line({"size", "algorithm", "chunk", "proto", "time", "+-", "bench", "measured",
                           "error", "algbw", "busbw", "%bound", "vs nccl", "links"})) +
         header_line(line({.size = "(B)",
                           .chunk = "(B)",
                           .time = "(us)",
                           .benchmark = "(us)",
                           .measured = "(us)",
                           .off = "(%)",
                           .algbw = "(GB/s)",
                           .busbw = "(GB/s)"}));
}

void SimTable::add(const Outcome& outcome) {
  if (outcome.ran()) {
    const RunReport& report = outcome.report;
    const std::optional<double> speedup = speedup_of(outcome);
    const double error = outcome.error ? outcome.error->relative : 0;
    const auto microseconds = [](double time_s) { return fit_number(time_s * 1e6, 7); };
    Cells cells = {
        .size = fmt::format("{}", report.message_bytes),
        .algorithm = algorithm_label(outcome),
        .chunk = outcome.chunk_bytes == 0 ? "-" : fmt::format("{}", outcome.chunk_bytes),
        .protocol = outcome.protocol.empty() ? "-" : outcome.protocol,
        .time = microseconds(report.time_s),
        .error = error_text(error),
        .benchmark = microseconds(outcome.benchmark_s),
        .algbw = fit_number(report.algbw_gbps(), 6),
        .busbw = fit_number(outcome.busbw_gbps(), 6),
        .share = outcome.fraction > 0 ? fmt::format("{:.1f}", 100 * outcome.fraction) : "-",
        .speedup = speedup ? speedup_text(*speedup) : "-",
        .links = links_used(outcome)};
    if (measured_ != nullptr) {
      const double measured_s = measured_->time_s.at(outcome.query.size_bytes);
      cells.measured = microseconds(measured_s);
      cells.off = fmt::format("{:+.1f}", 100 * (outcome.benchmark_s / measured_s - 1));
    }
    const std::string& that_ran = algorithm_that_ran(outcome);
    rows_.push_back({report.time_s, error, line(cells), ran_++,
                     fmt::format("{}, {}, {}", that_ran, cells.chunk, cells.protocol),
                     that_ran != outcome.query.algorithm});
  }
  const std::size_t next = ++answered_;
  if (next == sizes_.size() || sizes_[next] != sizes_[next - 1]) print_rows();
}

/// The fastest first. Where not all are to be shown, each program once, under its own name rather
/// than that of an algorithm which chose it.
std::vector<SimTable::Row> SimTable::best_rows() const {
  std::vector<Row> sorted = rows_;
  if (most_rows_ != kAllRows) {
    std::set<std::string> seen;
    std::ranges::stable_sort(sorted, {}, &Row::is_chosen);
    std::erase_if(sorted, [&](const Row& row) { return !seen.insert(row.program).second; });
    std::ranges::sort(sorted, {}, &Row::outcome);
  }
  std::ranges::stable_sort(sorted, {}, &Row::time_s);
  return sorted;
}

std::vector<std::string> SimTable::pending() const {
  if (rows_.empty()) return {};
  std::vector<Row> sorted = best_rows();
  if (sorted.size() > most_rows_) sorted.resize(most_rows_);
  std::vector<std::string> lines = split(column_names(), '\n');
  std::erase(lines, "");
  for (Row& row : sorted) lines.push_back(std::move(row.line));
  return lines;
}

/// All of one size, fastest first; the first is marked when there are others, and those that may be
/// as fast are marked as it is.
void SimTable::print_rows() {
  if (rows_.empty()) return;
  if (!std::exchange(has_names_, true)) console_.out << column_names();
  const std::vector<Row> all = std::exchange(rows_, best_rows());
  const Row first = rows_.front();
  const auto is_rival = [&](const Row& row) {
    return is_open(first.time_s, first.error, row.time_s, row.error);
  };
  const bool marks = rows_.size() > 1;
  const bool is_undecided = marks && std::any_of(rows_.begin() + 1, rows_.end(), is_rival);
  has_mark_ = has_mark_ || (marks && !is_undecided);
  has_open_ = has_open_ || is_undecided;
  const std::size_t shown = std::min(rows_.size(), most_rows_);
  for (std::size_t i = shown; i < rows_.size(); ++i) {
    has_open_left_out_ = has_open_left_out_ || is_rival(rows_[i]);
  }
  most_left_out_ = std::max(most_left_out_, rows_.size() - shown);
  rows_.resize(shown);
  for (const Row& row : all) {
    if (std::ranges::count(rows_, row.outcome, &Row::outcome) == 0) left_out_.insert(row.outcome);
  }
  for (Row& row : rows_) {
    const bool best = marks && &row == rows_.data();
    const bool open = is_undecided && (best || is_rival(row));
    if (best || open) row.line += open ? "~" : "*";
    row.line.erase(row.line.find_last_not_of(' ') + 1);
    console_.out << (best ? styled(console_, Style::good, row.line) : row.line) << '\n';
  }
  console_.out << std::flush;
  rows_.clear();
}

/// Without links and steps, which may be large and of which nothing is said below a table.
std::vector<Outcome> SimTable::shown_of(const std::vector<Outcome>& outcomes) const {
  std::vector<Outcome> shown;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (left_out_.contains(i)) continue;
    Outcome& one = shown.emplace_back(outcomes[i]);
    one.report.simulated->links.clear();
    one.report.simulated->critical_path.clear();
  }
  return shown;
}

void SimTable::print_left_out() const {
  if (left_out_.empty()) return;
  console_.out << wrap(
      fmt::format("The {} fastest of {} that were simulated{}: --algorithm all shows all",
                  most_rows_, most_rows_ + most_left_out_,
                  has_open_left_out_ ? ", of which more may be as fast" : ""),
      console_.width, "# ");
}

void SimTable::finish(const Answers& all) {
  Answers shown;
  if (!left_out_.empty()) shown.outcomes = shown_of(all.outcomes);
  const Answers& answers = left_out_.empty() ? all : shown;
  if (!answers.outcomes.empty()) console_.out << "#\n";
  print_left_out();
  if (has_mark_) console_.out << "# * is the fastest\n";
  if (has_open_) {
    console_.out
        << "# ~ may be the fastest: their times differ by less than both errors combined\n";
  }
  print_average(console_, answers.outcomes);
  if (has_benchmark_) print_benchmark_notes(console_, answers.outcomes);
  if (measured_ != nullptr) print_measured_note(console_, *measured_);
  // By one process the GPUs of a call start one after the other, and those of a benchmark don't.
  const bool is_single =
      !answers.outcomes.empty() && answers.outcomes.front().query.launch == LaunchMode::single;
  if (has_nccl_) {
    print_nccl_note(console_, answers.outcomes, is_single ? " of one call by itself" : "");
  }
  print_profile_notes(console_, answers.outcomes, profile_);
  print_table_notes(console_, answers.outcomes);
  print_bounds(console_, answers.outcomes);
  console_.out << std::flush;
}

namespace {

/// Answers to the questions of a table by their places: of workers or, where time is limited, of
/// the study in turns.
class TableAsker {
 public:
  /// All are borrowed.
  TableAsker(const Console& console, Study& study, StudyWorkers& workers,
             const std::vector<Query>& queries, LateQuestions late)
      : is_limited_(std::isfinite(time_left_s())),
        progress_(console, is_limited_ ? queries.size() : count_requests(study, queries)) {
    remind_of_engine(progress_, queries.front().run);
    if (is_limited_) {
      answers_ = answer_in_turns(study, queries, late, shown_);
    } else {
      asked_.emplace(study, workers, queries);
    }
  }

  Outcome next() {
    const std::size_t place = place_++;
    return asked_ ? asked_->answer(place, shown_) : std::move(answers_[place]);
  }
  Progress& progress() { return progress_; }

 private:
  const bool is_limited_;
  Progress progress_;
  const SweepProgress shown_ = {[this](std::string_view label) { progress_.resume(label); },
                                [this](std::string_view label) { progress_.step(label); }};
  std::optional<AskedTable> asked_;
  std::vector<Outcome> answers_;
  std::size_t place_ = 0;
};

}  // namespace

Answers simulate_table(const Console& console, Study& study, StudyWorkers& workers,
                       const std::vector<Query>& queries, bool print, LateQuestions late,
                       std::size_t most_rows) {
  study.machine(queries.front());  // a machine that can't be asked about has no table
  const TableHead head = head_of(study, queries);
  Refusals refusals(console);
  std::optional<SimTable> table;
  if (print) table.emplace(console, head, most_rows);
  TableAsker asker(console, study, workers, queries, late);
  Progress& progress = asker.progress();
  const auto ask = [&](const Query&) { return asker.next(); };
  Answers answers = ask_table(queries, ask, [&](const Outcome& outcome) {
    progress.erase();
    refusals.add(outcome.problems);
    if (table) {
      table->add(outcome);
      progress.show_above(table->pending());
    }
  });
  if (table) table->finish(answers);
  return answers;
}

void print_links(const Console& console, const Outcome& outcome, int maximum) {
  std::vector<LinkUse> links = outcome.report.simulated->links;
  std::erase_if(links, [](const LinkUse& link) { return link.bytes == 0; });
  std::ranges::stable_sort(links, std::ranges::greater{}, &LinkUse::utilization);
  console.out << fmt::format(
      "#\n# Links of {} at {}: share of the time during which they are busy\n",
      algorithm_label(outcome), describe_size(outcome.query.size_bytes));
  Columns columns("llrr");
  for (std::size_t i = 0; i < links.size() && i < static_cast<std::size_t>(maximum); ++i) {
    const LinkUse& link = links[i];
    const std::string alike = link.alike == 1 ? "" : fmt::format(" and {} alike", link.alike - 1);
    columns.add({link.name + alike, bar(link.utilization, kLinkBarColumns),
                 fmt::format("{:.1f}%", 100 * link.utilization), decimal_bytes(link.bytes)});
  }
  console.out << columns.render("#   ");
  if (links.size() > static_cast<std::size_t>(maximum)) {
    console.out << fmt::format("#   and {} more\n", links.size() - maximum);
  }
}

void print_critical_path(const Console& console, const Outcome& outcome) {
  const std::vector<CriticalStep>& steps = outcome.report.simulated->critical_path;
  const auto all_steps = static_cast<std::size_t>(outcome.report.simulated->critical_steps);
  console.out << fmt::format(
      "#\n# Critical path of {} at {}: {}{} steps\n", algorithm_label(outcome),
      describe_size(outcome.query.size_bytes),
      steps.size() < all_steps ? fmt::format("the last {} of ", steps.size()) : "", all_steps);
  Columns columns("rrrll");
  columns.add({"start(us)", "end(us)", "op", "what", "waited for"});
  const bool is_long = steps.size() > 2 * kShownSteps + 1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_long && i == kShownSteps) {
      columns.add(
          {"...", "...", "...", fmt::format("({} steps)", steps.size() - 2 * kShownSteps), ""});
      i = steps.size() - kShownSteps;
    }
    const CriticalStep& step = steps[i];
    columns.add({fmt::format("{:.2f}", step.start_s * 1e6), fmt::format("{:.2f}", step.end_s * 1e6),
                 fmt::format("{}", step.op), step.what, step.waited_for});
  }
  console.out << columns.render("#   ");
}

}  // namespace espalier

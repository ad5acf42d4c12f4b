// SPDX-License-Identifier: Apache-2.0
#include "cli/sim_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "cli/text.h"
#include "core/error.h"
#include "core/units.h"

namespace espalier {

namespace {

constexpr int kLinkBarColumns = 40;
/// Steps of a critical path shown at its beginning and at its end.
constexpr std::size_t kShownSteps = 16;
/// Of a certificate; JSON has all of it.
constexpr std::size_t kCertificateColumns = 800;

std::string links_used(const Outcome& outcome) {
  if (outcome.report.transfers == 0) return "-";
  return fmt::format("{}{}{}", outcome.bound_links == LinkScope::fabric ? "fabric" : "all",
                     outcome.bound_helpers ? "+host" : "", outcome.bound_relays ? "+relay" : "");
}

/// One line of the table; the header is made of the same columns.
std::string table_line(std::string_view size, std::string_view algorithm, std::size_t label_width,
                       std::string_view chunk, std::string_view time, std::string_view algbw,
                       std::string_view busbw, std::string_view share, std::string_view links) {
  return fmt::format("{:>12}  {:<{}}  {:>10}  {:>7}  {:>6}  {:>6}  {:>6}  {:<8}", size, algorithm,
                     label_width, chunk, time, algbw, busbw, share, links);
}

/// "1.074 GB": decimal, as bandwidths are.
std::string decimal_bytes(double bytes) {
  const double exponent = bytes >= 1e9 ? 9 : bytes >= 1e6 ? 6 : bytes >= 1e3 ? 3 : 0;
  const char* unit = bytes >= 1e9 ? "GB" : bytes >= 1e6 ? "MB" : bytes >= 1e3 ? "kB" : "B";
  return fmt::format("{:.1f} {}", bytes / std::pow(10, exponent), unit);
}

class Table {
 public:
  Table(const Console& console, Study& study, const std::vector<Query>& queries)
      : console_(console) {
    std::map<std::string, std::size_t> widths;
    for (const Query& query : queries) {
      if (!widths.contains(query.algorithm)) widths[query.algorithm] = widest_label(study, query);
      label_width_ = std::max(label_width_, widths[query.algorithm]);
      many_ = many_ || (query.size_bytes == queries.front().size_bytes &&
                        query.algorithm != queries.front().algorithm);
    }
  }

  void header(const Query& query, int ranks) const {
    const CollectiveInfo& collective = info(query.collective);
    console_.out << fmt::format(
        "# simulated {}{} on {}\n# profile {}, links {}, {}{}\n#\n", collective.name,
        collective.rooted ? fmt::format(" (root {})", query.root) : "",
        describe_ranks(query, ranks), query.profile,
        query.links == LinkScope::all ? "all" : "fabric",
        query.in_place ? "in place" : "out of place", many_ ? "; * is the fastest" : "");
  }

  void column_names() const {
    console_.out << header_line(table_line("size", "algorithm", label_width_, "chunk", "time",
                                           "algbw", "busbw", "%bound", "links"))
                 << header_line(table_line("(B)", "", label_width_, "(B)", "(us)", "(GB/s)",
                                           "(GB/s)", "", ""));
  }

  /// The outcomes of one size, fastest first; the first is marked when there are others.
  void rows(std::vector<const Outcome*> outcomes) {
    if (outcomes.empty()) return;
    if (!std::exchange(has_names_, true)) column_names();
    std::ranges::stable_sort(outcomes, {}, [](auto* outcome) { return outcome->report.time_s; });
    for (const Outcome* outcome : outcomes) {
      const RunReport& report = outcome->report;
      std::string line = table_line(
          fmt::format("{}", report.message_bytes), algorithm_label(*outcome), label_width_,
          outcome->chunk_bytes == 0 ? "-" : fmt::format("{}", outcome->chunk_bytes),
          fit_number(report.time_s * 1e6, 7), fit_number(report.algbw_gbps(), 6),
          fit_number(outcome->busbw_gbps(), 6),
          outcome->fraction > 0 ? fmt::format("{:.1f}", 100 * outcome->fraction) : "-",
          links_used(*outcome));
      const bool best = outcome == outcomes.front() && outcomes.size() > 1;
      if (best) line += "*";
      line.erase(line.find_last_not_of(' ') + 1);
      console_.out << (best ? styled(console_, Style::good, line) : line) << '\n';
    }
    console_.out << std::flush;
  }

 private:
  const Console& console_;
  std::size_t label_width_ = 9;
  bool many_ = false;  ///< several algorithms for one size
  bool has_names_ = false;
};

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

/// What is to be known about chunk sizes, once for the sizes it is true of.
void print_chunk_notes(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<std::string, std::string>> notes;  // and the sizes
  for (const Outcome& outcome : outcomes) {
    if (outcome.chunk_note.empty()) continue;
    const std::string note = fmt::format("{}: {}", algorithm_label(outcome), outcome.chunk_note);
    auto known = std::ranges::find(notes, note, [](const auto& one) { return one.first; });
    if (known == notes.end()) known = notes.insert(known, {note, ""});
    known->second += (known->second.empty() ? "" : ", ") + describe_size(outcome.query.size_bytes);
  }
  for (const auto& [note, sizes] : notes) {
    console.out << wrap(fmt::format("Chunks of {} ({})", note, sizes), console.width, "# ");
  }
}

}  // namespace

void print_bounds(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::tuple<LinkScope, bool, bool>> seen;
  for (const Outcome& outcome : outcomes) {
    if (!outcome.bound || !std::isfinite(outcome.bound->algbw_gbps)) continue;
    const std::tuple key(outcome.bound_links, outcome.bound_helpers, outcome.bound_relays);
    if (std::ranges::count(seen, key) > 0) continue;
    seen.push_back(key);
    const Bound& bound = *outcome.bound;
    console.out << fmt::format(
        "# Bound ({}): {} GB/s algbw, {} GB/s busbw, by a {}\n", links_used(outcome),
        format_gbps(bound.algbw_gbps),
        format_gbps(bound.algbw_gbps * busbw_factor(outcome.query.collective, outcome.ranks)),
        bound.kind);
    console.out << wrap(shorten(bound.certificate, kCertificateColumns), console.width, "#   ");
  }
}

void simulate_table(const Console& console, Study& study, const std::vector<Query>& queries,
                    bool print, Answers& answers) {
  study.machine(queries.front());  // a machine that can't be asked about has no table
  Progress progress(console, queries.size());
  const auto ask = [&](const Query& query) {
    progress.step(progress_label(query));
    return study.ask(query);
  };
  simulate_table(console, study, queries, {ask, progress}, print, answers);
}

void simulate_table(const Console& console, Study& study, const std::vector<Query>& queries,
                    const Asking& asking, bool print, Answers& answers) {
  const Query& first = queries.front();
  const int ranks = study.ranks(first);
  Table table(console, study, queries);
  Answers mine;
  asking.progress.erase();
  if (print) table.header(first, ranks);
  std::size_t printed = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    Outcome outcome = asking.ask(queries[i]);
    for (const Diagnostic& problem : outcome.problems) {
      asking.progress.erase();
      say(console, render(problem));
    }
    mine.add(std::move(outcome));
    const bool last_of_size =
        i + 1 == queries.size() || queries[i + 1].size_bytes != queries[i].size_bytes;
    if (!print || !last_of_size) continue;
    asking.progress.erase();
    std::vector<const Outcome*> rows;
    for (; printed < mine.outcomes.size(); ++printed) rows.push_back(&mine.outcomes[printed]);
    table.rows(std::move(rows));
  }
  asking.progress.erase();
  if (print) {
    if (!mine.outcomes.empty()) console.out << "#\n";
    print_average(console, mine.outcomes);
    print_chunk_notes(console, mine.outcomes);
    print_bounds(console, mine.outcomes);
    print_skipped(console, mine);
    console.out << std::flush;
  }
  answers.add(std::move(mine));
}

void print_links(const Console& console, const Outcome& outcome, int maximum) {
  std::vector<LinkUse> links = outcome.report.simulated->links;
  std::erase_if(links, [](const LinkUse& link) { return link.bytes == 0; });
  std::ranges::stable_sort(links, std::ranges::greater{}, &LinkUse::utilization);
  console.out << fmt::format("#\n# Links of {} at {}, share of the time they are busy\n",
                             algorithm_label(outcome), describe_size(outcome.query.size_bytes));
  Columns columns("llrr");
  for (std::size_t i = 0; i < links.size() && i < static_cast<std::size_t>(maximum); ++i) {
    const LinkUse& link = links[i];
    columns.add({link.name, bar(link.utilization, kLinkBarColumns),
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

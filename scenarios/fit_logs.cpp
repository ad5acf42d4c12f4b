// SPDX-License-Identifier: Apache-2.0
#include "scenarios/fit_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/units.h"
#include "core/words.h"
#include "formats/measured_machine.h"
#include "nccl/machine.h"
#include "nccl/version.h"
#include "planner/bounds.h"
#include "run/launch.h"
#include "scenarios/chooser.h"
#include "scenarios/describe.h"
#include "topologies/launch_costs.h"

namespace espalier {
namespace {

/// A log, and the collective of its tables that count; nothing: all.
struct AskedLog {
  std::string file;
  std::optional<Collective> collective;
};

/// "allgather=FILE" or "FILE", whose name may have such signs, too.
AskedLog asked_log(const std::string& word, std::optional<Collective> otherwise) {
  const std::size_t sign = word.find('=');
  if (sign != std::string::npos) {
    const auto named = parse_collective(std::string_view(word).substr(0, sign));
    if (named) return {word.substr(sign + 1), named};
  }
  return {word, otherwise};
}

class FitLogsReader {
 public:
  FitLogsReader(const SayNote& say, const FitLogsRequest& request, const Topology& machine,
                DiagnosticList& problems)
      : say_(say), request_(request), machine_(machine), problems_(problems) {}

  FitLogs read() {
    std::set<std::string> seen;
    for (const std::string& word : request_.files) {
      const AskedLog asked = asked_log(word, request_.collective);
      if (!seen.insert(asked.file).second) {
        problems_.add({}, fmt::format("{} is given twice", quote(asked.file)));
        continue;
      }
      collect([&] { read_file_of(asked); });
    }
    return std::move(logs_);
  }

 private:
  template <class Work>
  void collect(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      for (const Diagnostic& problem : error.diagnostics()) problems_.add(problem);
    }
  }

  void read_file_of(const AskedLog& asked) {
    const MeasuredTables log = read_measured(asked.file);
    const std::size_t tables = logs_.tables.size();
    const std::size_t known_problems = problems_.all().size();
    for (const MeasuredTable& table : log.tables) {
      collect([&] { read_table(log, table, asked.collective); });
    }
    if (logs_.tables.size() == tables && problems_.all().size() == known_problems) {
      problems_.add({asked.file, 0, 0},
                    fmt::format("there are no times {} here to fit to", wanted(asked.collective)),
                    request_.in_place ? "without --in-place, times out of place count" : "");
    }
  }

  std::string wanted(std::optional<Collective> asked) const {
    const std::string half = request_.in_place ? "in place" : "out of place";
    return asked ? fmt::format("of {}, {},", to_string(*asked), half) : half;
  }

  /// The collective of a table; nothing, and a problem or a note, where it does not count.
  std::optional<Collective> collective_of(const MeasuredTables& log, const MeasuredTable& table,
                                          std::optional<Collective> asked) const {
    const Location where{log.file, table.line, 0};
    if (table.collective && asked && *table.collective != *asked) {
      if (is_named(log, *asked)) {
        say_(fmt::format("{}:{}: a table of {} is left out: those of {} were asked for", log.file,
                         table.line, to_string(*table.collective), to_string(*asked)));
      } else {
        problems_.add(
            where,
            fmt::format("this is a log of {}, not of {}", to_string(*table.collective),
                        to_string(*asked)),
            fmt::format("without --collective {0} or {0}=, or without the log", to_string(*asked)));
      }
      return std::nullopt;
    }
    if (table.collective) return table.collective;
    std::vector<std::string> fits;
    for (const CollectiveFit& fit : table.fits) fits.emplace_back(to_string(fit.collective));
    if (!asked) {
      const std::string says = fmt::format("{}={} says it, or --collective of all logs",
                                           fits.empty() ? "allreduce" : fits.front(), log.file);
      problems_.add(where, "the log does not say which collective this is",
                    fits.empty() ? says : says + "; the figures fit " + join(fits, " or "));
      return std::nullopt;
    }
    if (std::ranges::count(table.fits, *asked, &CollectiveFit::collective) > 0) return asked;
    problems_.add(where, fmt::format("these figures are not those of {}", to_string(*asked)),
                  fits.empty() ? "" : "they fit " + join(fits, " or "));
    return std::nullopt;
  }

  static bool is_named(const MeasuredTables& log, Collective collective) {
    return std::ranges::any_of(
        log.tables, [&](const MeasuredTable& table) { return table.collective == collective; });
  }

  void read_table(const MeasuredTables& log, const MeasuredTable& table,
                  std::optional<Collective> asked) {
    const std::optional<Collective> collective = collective_of(log, table, asked);
    if (!collective) return;
    if (const std::string different = different_gpus(table, machine_); !different.empty()) {
      problems_.add({log.file, table.line, 0}, different, "--topology names the machine measured");
      return;
    }
    if (too_many_hosts(table, machine_)) {
      problems_.add(
          {log.file, table.line, 0},
          fmt::format("the ranks of the log were on {}, and {} has {}",
                      counted(static_cast<std::size_t>(table.hosts()), "host"), machine_.name,
                      machine_.hosts == 1 ? "one" : std::to_string(machine_.hosts)),
          "--topology names the machine measured; a cluster is NAME:nodes=N");
      return;
    }
    for (const std::string& note : table.notes) say_(printable(note));
    if (const std::string note = unknown_gpus(table, machine_); !note.empty()) say_(note);
    Query question = request_.question;
    question.collective = *collective;
    question.in_place = request_.in_place;
    const auto fit = std::ranges::find(table.fits, *collective, &CollectiveFit::collective);
    const int ranks = table.ranks > 0 || fit == table.fits.end() ? table.ranks : fit->ranks;
    place_ranks_of(say_, table, ranks, machine_, log.file, question);
    const bool says_version = names_library_version(question.algorithm);
    const bool launch_assumed = read_launch(
        say_, table, {.mode = request_.has_launch, .version = says_version}, machine_, question);
    const MeasuredTimes times = times_of(say_, table, request_.in_place, {});
    if (times.empty()) return;
    for (const MeasuredRow& row : table.rows) question.root = std::max(0, row.root.value_or(0));
    FitTable added;
    added.names_version = says_version || question.library_version != 0;
    added.launch_assumed = launch_assumed;
    add(log, table, question, times, added);
  }

  /// The times of a table, of whose `FitTable` all else is filled in.
  void add(const MeasuredTables& log, const MeasuredTable& table, const Query& question,
           const MeasuredTimes& times, FitTable added) {
    added.title = who_measured(log, table);
    added.where = {log.file, table.line, 0};
    added.collective = question.collective;
    added.first = logs_.times.size();
    added.count = times.size();
    const Router router(machine_, machine_.profile("ideal"), question.links);
    const Placement placement = place_ranks(router, question.gpus);
    added.ranks = static_cast<int>(placement.ranks.size());
    added.library = nccl_name(is_amd(machine_, placement));
    if (question.root >= added.ranks) {
      problems_.add({log.file, table.line, 0},
                    fmt::format("root {} is not one of the {} ranks", question.root, added.ranks));
      return;
    }
    for (const auto& [bytes, time] : times) {
      const auto row = std::ranges::find(table.rows, bytes, &MeasuredRow::bytes);
      Query query = question;
      query.size_bytes = bytes;
      logs_.times.push_back({std::move(query), time.time_s, log.file, row->line});
    }
    logs_.tables.push_back(added);
    const Router used(machine_, machine_.profile("ideal"), links_used(question, placement));
    require_possible(added, bandwidth_bound(question.collective, question.root, used, placement));
  }

  /// A library leaves host links alone where every two ranks have the GPU fabric between them.
  LinkScope links_used(const Query& question, const Placement& placement) const {
    if (is_chooser(question.algorithm)) return question.links;
    try {
      if (!is_library(parse_algorithm(question.algorithm))) return question.links;
    } catch (const Error&) {
      return question.links;  // check_algorithm says it
    }
    const Router fabric(machine_, machine_.profile("ideal"), LinkScope::fabric);
    for (const NodeId from : placement.ranks) {
      for (const NodeId to : placement.ranks) {
        if (from != to && fabric.route(from, to) == nullptr) return question.links;
      }
    }
    return LinkScope::fabric;
  }

  /// Nothing is faster than full bandwidth on all links: such times are of another machine.
  void require_possible(const FitTable& table, const Bound& bound) {
    const MeasuredTimeOf* worst = nullptr;
    std::size_t beaten = 0;
    const auto algbw = [](const MeasuredTimeOf& time) {
      return static_cast<double>(time.query.size_bytes) / time.time_s * 1e-9;
    };
    for (std::size_t i = table.first; i < table.first + table.count; ++i) {
      const MeasuredTimeOf& time = logs_.times[i];
      if (algbw(time) <= bound.algbw_gbps * (1 + kClockShare)) continue;
      ++beaten;
      if (worst == nullptr || algbw(time) > algbw(*worst)) worst = &time;
    }
    if (worst == nullptr) return;
    problems_.add(
        {worst->file, worst->line, 0},
        fmt::format("{} of {} of this table cannot be of {}, whose links allow {} GB/s (algbw) at "
                    "full bandwidth: {} moves {}",
                    beaten, counted(table.count, "time"), machine_.name,
                    format_gbps(bound.algbw_gbps), describe_size(worst->query.size_bytes),
                    format_gbps(algbw(*worst))),
        "--topology names the machine measured");
  }

  const SayNote& say_;
  const FitLogsRequest& request_;
  const Topology& machine_;
  DiagnosticList& problems_;
  FitLogs logs_;
};

/// A table and how its calls are simulated.
std::string source_of(const ProfileFit& fit, const FitTable& table) {
  const FittedTime& time = fit.times[table.first];
  const AlgorithmChoice choice = parse_algorithm(time.algorithm);
  std::string text = table.title;
  if (is_library(choice)) {
    text += fmt::format(", simulated as {} {}{}", table.library, version_text(time.library_version),
                        table.names_version ? "" : " (assumed)");
  }
  return text + fmt::format(", launch {}{}", to_string(time.measured.query.launch),
                            table.launch_assumed ? " (assumed)" : "");
}

}  // namespace

FitLogs read_fit_logs(const SayNote& say, const FitLogsRequest& request, const Topology& machine,
                      DiagnosticList& problems) {
  FitLogs logs = FitLogsReader(say, request, machine, problems).read();
  if (problems.empty() && logs.times.size() < kMinFitTimes) {
    problems.add({logs.times.empty() ? request.files.front() : logs.times.front().file, 0, 0},
                 fmt::format("a fit needs at least {} times {}, and the logs have {}", kMinFitTimes,
                             request.in_place ? "in place" : "out of place", logs.times.size()));
  }
  return logs;
}

void check_algorithm(const FitLogs& logs, const std::string& algorithm, DiagnosticList& problems) {
  for (const FitTable& table : logs.tables) {
    try {
      espalier::check_algorithm(algorithm, table.collective);
    } catch (const Error& error) {
      for (Diagnostic problem : error.diagnostics()) {
        if (problem.where.file.empty()) problem.where = table.where;
        problems.add(std::move(problem));
      }
    }
  }
}

void require_met(const ProfileFit& fit, const FitLogs& logs) {
  DiagnosticList problems;
  const auto add = [&](const Location& where, const std::string& reason) {
    problems.add(where, reason,
                 "are times in microseconds, as nccl-tests prints them, and is --topology the "
                 "machine measured?");
  };
  for (const std::string& reason : at_limits(fit)) add(logs.tables.front().where, reason);
  for (const FitTable& table : logs.tables) {
    for (const std::string& reason : why_not_met(table.times_of(fit))) add(table.where, reason);
  }
  problems.throw_if_any();
}

void require_changed(const ProfileFit& fit) {
  if (std::ranges::any_of(fit.constants, &FittedConstant::is_changed)) return;
  throw Error(ErrorKind::input, "no constant was fitted, so that there is no profile to write",
              fit.budget && fit.budget->ran_out ? "more time with --budget"
                                                : "logs of more sizes or collectives");
}

std::vector<std::string> sources_of(const ProfileFit& fit, const FitLogs& logs) {
  std::vector<std::string> sources;
  for (const FitTable& table : logs.tables) sources.push_back(source_of(fit, table));
  return sources;
}

}  // namespace espalier

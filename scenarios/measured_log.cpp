// SPDX-License-Identifier: Apache-2.0
#include "scenarios/measured_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/file.h"
#include "formats/format.h"
#include "nccl/machine.h"
#include "nccl/version.h"
#include "scenarios/chooser.h"
#include "topologies/launch_costs.h"
#include "topologies/library_version.h"

namespace espalier {
namespace {

/// The GPUs of the ranks of a table: host by host, where the machine has as many hosts, by the
/// number of the device there; otherwise the first ones.
std::vector<int> gpus_of(const MeasuredTable& table, const Topology& machine) {
  const int gpus = static_cast<int>(machine.gpus().size());
  const int per_host = gpus / std::max(1, machine.hosts);
  std::vector<int> chosen;
  std::map<std::string, int> hosts;
  std::map<std::string, std::vector<int>> devices;
  for (const MeasuredRank& one : table.listed) {
    if (one.group != table.listed.front().group) continue;
    const int host = hosts.try_emplace(one.host, static_cast<int>(hosts.size())).first->second;
    // A process that sees one GPU only calls it device 0, whichever it is.
    std::vector<int>& taken = devices[one.host];
    const int device =
        std::ranges::count(taken, one.device) > 0 ? static_cast<int>(taken.size()) : one.device;
    taken.push_back(device);
    chosen.push_back(host * per_host + device);
    if (device >= per_host || host >= machine.hosts) return {};
  }
  std::vector<int> sorted = chosen;
  std::ranges::sort(sorted);
  const bool distinct = std::ranges::adjacent_find(sorted) == sorted.end();
  if (static_cast<int>(chosen.size()) != table.ranks || !distinct) return {};
  return chosen;
}

/// DGX-2 and p2.16xlarge. A machine with more in one host is a rack, whose trays are hosts in logs.
constexpr int kMostGpusOfAHost = 16;

/// Of so many the first does not matter any more.
constexpr std::int64_t kMostTimedCalls = 1'000'000'000;

bool has_rccl(const Topology& machine) {
  return std::ranges::any_of(machine.gpus(),
                             [&](NodeId gpu) { return is_amd_gpu(machine.node(gpu).model); });
}

/// Of RCCL there is but one version whose rules are known, whatever was measured.
void say_rccl_version(const SayNote& say, int version) {
  if (version == 0) {
    say(fmt::format("the log does not name its RCCL: taken for {}, the only one that is known",
                    nccl_version_text(kKnownRccl)));
  } else if (minor_of(version) != kKnownRccl.minor) {
    say(fmt::format("the rules of RCCL {} are not known: those of {} are used",
                    version_text(version), nccl_version_text(kKnownRccl)));
  }
}

void read_version(const SayNote& say, const MeasuredTable& table, const SaidOfLaunch& said,
                  bool is_rccl, Query& question) {
  const std::size_t space = table.library.find(' ');
  const std::string version = space == std::string::npos ? "" : table.library.substr(space + 1);
  if (question.library_version == 0) {
    question.library_version = library_version(version).value_or(0);
  }
  if (said.version) return;
  if (is_rccl) {
    say_rccl_version(say, question.library_version);
    return;
  }
  if (question.library_version == 0) {
    say(
        fmt::format("the log does not name its NCCL: taken for {}; --nccl-version "
                    "or a version of --algorithm says otherwise",
                    nccl_version_text({kNewestNccl})));
  }
  say_version(say, question.library_version);
}

/// Whether the log says how calls were launched.
bool read_mode(const SayNote& say, const MeasuredTable& table, Query& question) {
  if (table.graph > 0) {
    question.launch = LaunchMode::graph;
    return true;
  }
  const int per_process = table.ranks_per_process();
  if (per_process == 0) {
    say(
        fmt::format("the log does not say how many processes there were: taken for "
                    "{}, --launch says otherwise",
                    question.launch == LaunchMode::per_gpu ? "one per GPU" : "one"));
    return false;
  }
  question.launch = per_process > 1 ? LaunchMode::single : LaunchMode::per_gpu;
  const int hosts = std::max(1, table.hosts());
  if (per_process > 1 && hosts * per_process < table.ranks) {
    say(fmt::format("the log has processes of {} GPUs each: taken for one per host", per_process));
  }
  return true;
}

/// How many calls share what the first one takes longer: seen where one process waits for all.
void read_timed_calls(const SayNote& say, const MeasuredTable& table, Query& question) {
  if (table.iterations > 0) {
    const std::int64_t calls = std::int64_t{table.iterations} * std::max(1, table.aggregated);
    question.timed_calls = static_cast<int>(std::min<std::int64_t>(calls, kMostTimedCalls));
  } else if (question.launch == LaunchMode::single) {
    say(fmt::format("the log does not say how many calls were timed together: taken for {}",
                    kTimedCalls));
  }
}

}  // namespace

MeasuredTables read_measured(const std::string& file) {
  const std::string text = read_file(file);
  const Format* format = recognise(text);
  if (format == nullptr || format->read_tables == nullptr) {
    throw Error(ErrorKind::input,
                {{"", "this is no output of nccl-tests or rccl-tests", "", {file, 0, 0}}});
  }
  return format->read_tables({text, file});
}

bool too_many_hosts(const MeasuredTable& table, const Topology& machine) {
  const auto gpus = static_cast<int>(machine.gpus().size());
  const bool is_rack = gpus > kMostGpusOfAHost * std::max(1, machine.hosts);
  return !is_rack && table.hosts() > machine.hosts;
}

void place_ranks_of(const SayNote& say, const MeasuredTable& table, int ranks,
                    const Topology& machine, const std::string& file, Query& question) {
  const int gpus = question.gpus.empty() ? static_cast<int>(machine.gpus().size())
                                         : static_cast<int>(question.gpus.size());
  if (ranks == 0) {
    say(fmt::format("the log does not say how many ranks there were: taken for {}", gpus));
    return;
  }
  if (ranks > gpus || (!question.gpus.empty() && ranks != gpus)) {
    const std::string what = question.gpus.empty()
                                 ? fmt::format("{} has {} GPUs", machine.name, gpus)
                                 : fmt::format("--gpus names {}", gpus);
    throw Error(ErrorKind::input, {{"",
                                    fmt::format("the log has {} ranks, but {}", ranks, what),
                                    question.gpus.empty() ? "a cluster has more: NAME:nodes=N" : "",
                                    {file, table.line, 0}}});
  }
  if (too_many_hosts(table, machine)) {
    say(fmt::format(
        "the ranks of the log were on {} hosts, and {} has {}: NAME:nodes=N is a cluster",
        table.hosts(), machine.name, machine.hosts));
  }
  if (ranks == gpus || !question.gpus.empty()) return;
  question.gpus = gpus_of(table, machine);
  if (question.gpus.empty()) {
    for (int rank = 0; rank < ranks; ++rank) question.gpus.push_back(rank);
    say(
        fmt::format("the log has {} ranks, the machine {} GPUs: its first ones are "
                    "taken",
                    ranks, gpus));
  }
}

MeasuredTimes times_of(const SayNote& say, const MeasuredTable& table, bool in_place,
                       const std::vector<std::int64_t>& only) {
  MeasuredTimes times;
  std::size_t empty = 0, again = 0;
  for (const MeasuredRow& row : table.rows) {
    const std::optional<MeasuredTime>& half = in_place ? row.in_place : row.out_of_place;
    if (!half) continue;
    if (!only.empty() && std::ranges::count(only, row.bytes) == 0) continue;
    if (row.bytes == 0 || half->time_s <= 0) {
      ++empty;
    } else if (!times.try_emplace(row.bytes, *half).second) {
      ++again;
    }
  }
  const std::string_view name = in_place ? "in place" : "out of place";
  if (empty > 0) {
    say(fmt::format("{}: left out {} without bytes or time", name, counted(empty, "row")));
  }
  if (again > 0) {
    say(fmt::format("{}: left out {} of a size that another has", name, counted(again, "row")));
  }
  return times;
}

std::string who_measured(const MeasuredTables& log, const MeasuredTable& table) {
  std::string text = fmt::format("{}:{}", log.file, table.line);
  for (const std::string* part : {&table.test, &table.tests, &table.library}) {
    if (!part->empty()) text += ", " + *part;
  }
  return printable(text) +
         (table.iterations > 0 ? fmt::format(", mean of {} runs", table.iterations) : "");
}

void say_version(const SayNote& say, int version) {
  if (version == 0) return;
  const NcclVersion known = nearest_nccl(version);
  if (library_version(2, known.minor) == version - patch_of(version)) return;
  say(fmt::format("the rules of NCCL {} are not known: those of {} are used", version_text(version),
                  nccl_version_text(known)));
}

bool names_library_version(const std::string& algorithm) {
  if (is_chooser(algorithm)) return false;
  try {
    return parse_algorithm(algorithm).parameters.contains(kLibraryVersion);
  } catch (const Error&) {
    return false;  // to be said by who asks for its times
  }
}

bool read_launch(const SayNote& say, const MeasuredTable& table, const SaidOfLaunch& said,
                 const Topology& machine, Query& question) {
  read_version(say, table, said, has_rccl(machine), question);
  const bool is_assumed = !said.mode && !read_mode(say, table, question);
  read_timed_calls(say, table, question);
  return is_assumed;
}

}  // namespace espalier

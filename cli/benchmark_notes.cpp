// SPDX-License-Identifier: Apache-2.0
#include "cli/benchmark_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "topologies/expected_error.h"
#include "topologies/launch_costs.h"

namespace espalier {
namespace {

/// Less is not worth a line.
constexpr double kLeastRuntimeGain = 1.02;

void add_once(std::vector<std::string>& all, std::string one) {
  if (std::ranges::count(all, one) == 0) all.push_back(std::move(one));
}

/// What of the library's choice decides most: its algorithm and protocol. Reports have all of it.
std::string short_choice(const Outcome& outcome) {
  if (!outcome.nccl) return "";
  AlgorithmChoice choice = parse_algorithm(outcome.nccl->algorithm);
  std::erase_if(choice.parameters, [](const auto& parameter) {
    return parameter.first != kLibraryAlgorithm && parameter.first != "proto";
  });
  return spec_of(choice);
}

std::string_view launched_by(LaunchMode mode) {
  switch (mode) {
    case LaunchMode::single:
      return "launched by one process for all GPUs of a host";
    case LaunchMode::per_gpu:
      return "launched by a process for every GPU";
    case LaunchMode::graph:
      return "as nodes of a CUDA graph";
  }
  return "";
}

}  // namespace

bool has_benchmark(const Query& query) {
  return !query.topology.empty() && profile_word(query.profile).runtime != "ideal";
}

std::string error_text(double relative) {
  return relative > 0 ? fmt::format("+-{:.0f} %", std::max(1.0, std::round(100 * relative))) : "-";
}

std::string speedup_text(double speedup) { return "x" + fit_number(speedup, 5); }

void print_benchmark_notes(const Console& console, const std::vector<Outcome>& outcomes) {
  if (outcomes.empty()) return;
  const LaunchMode launch = outcomes.front().query.launch;
  // Where the GPUs of a call by itself start one after the other, no log has such a time.
  const std::string benches = fmt::format(
      "time, algbw, busbw, %bound: of one call by itself; bench: the mean of calls back to back, "
      "{}, which nccl-tests calls time{}",
      launched_by(launch),
      launch == LaunchMode::single ? "; +-: of bench, as no log has the time of one call" : "");
  console.out << wrap(benches, console.width, "# ");
  print_error_sources(console, outcomes);
}

void print_error_sources(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<std::string, std::vector<std::string>>> sources;  // and their errors
  for (const Outcome& outcome : outcomes) {
    if (!outcome.error || outcome.error->relative <= 0) continue;
    const std::string& from = outcome.error->from;
    auto known = std::ranges::find(sources, from, [](const auto& source) { return source.first; });
    if (known == sources.end()) known = sources.insert(sources.end(), {from, {}});
    add_once(known->second, error_text(outcome.error->relative));
  }
  for (const auto& [from, errors] : sources) {
    console.out << wrap(fmt::format("{}: {}", join(errors, ", "), from), console.width, "# ");
  }
}

void print_measured_note(const Console& console, const MeasuredSeries& measured) {
  console.out << wrap(fmt::format("measured: {}; error: how far the simulated benchmark is from it",
                                  measured.source),
                      console.width, "# ");
  if (measured.fitted.empty()) return;
  console.out << wrap(fmt::format("fitted on these times: {}", measured.fitted), console.width,
                      "# ");
}

namespace {

/// A gain that is not worth a schedule of one's own.
constexpr double kHardlyAnyGain = 1.05;

/// How many times as fast as the library any schedule could be under the library's runtime, for
/// the largest message: by the bound of whichever answer has the lowest. 0: not known.
double most_gain(const std::vector<Outcome>& outcomes, std::int64_t size_bytes) {
  double most = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.query.size_bytes != size_bytes || !outcome.nccl || !outcome.time_bound) continue;
    const bool is_own = outcome.profile == profile_word(outcome.query.profile).runtime;
    const double least_s = outcome.least_s() * (is_own ? outcome.nccl->runtime_gain : 1);
    if (least_s > 0) most = std::max(most, outcome.nccl->time_s / least_s);
  }
  return most;
}

}  // namespace

void print_nccl_note(const Console& console, const std::vector<Outcome>& outcomes,
                     std::string_view of_what) {
  const auto compared = std::ranges::find_if(
      outcomes, [](const Outcome& outcome) { return outcome.nccl.has_value(); });
  if (compared == outcomes.end()) return;
  std::map<std::int64_t, std::string> choice_of;  // by size, of whichever row was compared
  for (const Outcome& outcome : outcomes) {
    if (outcome.nccl) choice_of.try_emplace(outcome.query.size_bytes, short_choice(outcome));
  }
  const auto choice = [&](const Outcome& outcome) {
    const auto known = choice_of.find(outcome.query.size_bytes);
    return known == choice_of.end() ? std::string() : known->second;
  };
  std::vector<std::string> choices;
  for (const SizeStretch& one : size_stretches(outcomes, choice)) {
    choices.push_back(fmt::format("{} for {}", one.what, one.sizes));
  }
  console.out << wrap(fmt::format("vs nccl: speed{} relative to {} {}, which chooses {}", of_what,
                                  compared->nccl->library, version_text(compared->nccl->version),
                                  join(choices, ", ")),
                      console.width, "# ");
  double gain = 1;
  for (const Outcome& outcome : outcomes) {
    const bool is_large = outcome.query.size_bytes > size_bands().back().above_bytes;
    if (is_large && speedup_of(outcome).value_or(0) > 1) {
      gain = std::max(gain, outcome.nccl->runtime_gain);
    }
  }
  if (gain >= kLeastRuntimeGain) {
    console.out << wrap(
        fmt::format("at large sizes x{:.2f} of that is the runtime's, not the schedule's: profile "
                    "{} moves so much more over the links between GPUs than {}'s kernels do",
                    gain, profile_word(outcomes.front().query.profile).runtime,
                    compared->nccl->library),
        console.width, "#   ");
  }
  const std::int64_t largest = std::ranges::max(outcomes, {}, [](const Outcome& one) {
                                 return one.query.size_bytes;
                               }).query.size_bytes;
  const double most = most_gain(outcomes, largest);
  if (largest <= size_bands().back().above_bytes || most <= 0 || most > kHardlyAnyGain) return;
  console.out << wrap(
      fmt::format(
          "under the same runtime no schedule is more than x{:.2f} as fast as {} at {}, by the "
          "bound",
          std::max(most, 1.0), compared->nccl->library, describe_size(largest)),
      console.width, "#   ");
}

}  // namespace espalier

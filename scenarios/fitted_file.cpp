// SPDX-License-Identifier: Apache-2.0
#include "scenarios/fitted_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/median.h"
#include "core/words.h"
#include "core/yaml.h"
#include "scenarios/benchmark.h"
#include "scenarios/chooser.h"
#include "topologies/profile_file.h"

namespace espalier {
namespace {

constexpr std::size_t kIndent = 4;    // of the keys of a profile
constexpr double kErrorSteps = 1000;  // errors are rounded up to 0.1 %
/// Of fewer times in a band their median says less than that of all times.
constexpr std::size_t kFewTimes = 5;
/// Logs of the same messages on alike hosts differ by about this much: 3 % (median) on two pairs of
/// hosts with H100, and 0.1 to 1.5 % from one half of a log to the other.
constexpr double kLeastError = 0.02;

/// "a.log, b.log and 2 more", without their folders.
std::string short_files(const std::vector<FittedTime>& times) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::string> names;
  for (const FittedTime& time : times) {
    const std::string& file = time.measured.file;
    const std::string name = printable(file.substr(file.rfind('/') + 1));
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  }
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

/// "nvlink3", as it is written in YAML.
std::string key_text(const std::string& key) {
  const bool is_plain = !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
  return is_plain && (key[0] < '0' || key[0] > '9') ? key : yaml_quoted(key);
}

/// What the comment about a constant says, whose keys after the first `written` stand in one line.
std::string comment_of(const FittedConstant& constant, std::size_t written,
                       const std::string& start, const std::string& files) {
  const std::string interval = constant.fitted.determined == Determined::at_limit
                                   ? "the limit of what is possible"
                                   : "interval " + interval_text(constant);
  const std::vector<std::string>& path = constant.constant.path;
  const std::vector<std::string> rest(path.begin() + static_cast<std::ptrdiff_t>(written),
                                      path.end());
  return fmt::format(
      "# {}fitted on {}, {}; {}: {:.4g}",
      rest.empty() ? "" : join(rest, ".") + " " + fmt::format("{:.4g}: ", constant.fitted.value),
      files, interval, start, constant.before);
}

/// The lines of a profile, with a comment above each line that has figures which were fitted. A
/// line has a key of the profile, or, further to the right, one within such a key.
std::string with_comments(const std::string& lines, const ProfileFit& fit,
                          const std::string& start) {
  const std::string files = short_files(fit.times);
  std::string text, section;
  for (const std::string& line : split(lines, '\n')) {
    if (line.empty()) continue;
    const std::size_t indent = line.find_first_not_of(' ');
    const std::string_view words = std::string_view(line).substr(indent);
    const bool is_outer = indent == kIndent;
    if (is_outer) section = words.substr(0, words.find(':'));
    const bool opens = words.ends_with(':');  // what is meant comes further below
    for (const FittedConstant& constant : fit.constants) {
      const std::vector<std::string>& path = constant.constant.path;
      if (opens || !constant.is_changed() || path.front() != section) continue;
      if (!is_outer && !words.starts_with(yaml_quoted(path[1]) + ":")) continue;
      text += fmt::format("{:{}}{}\n", "", indent,
                          comment_of(constant, is_outer ? 1 : 2, start, files));
    }
    text += line + "\n";
  }
  return text;
}

/// Which figures are known by these times, for whoever reads the file (graded_figures).
std::string grades_of(const ProfileFit& fit) {
  std::string names;
  for (const FittedConstant& one : fit.constants) {
    if (!one.is_changed()) continue;
    names += (names.empty() ? "" : ", ") + yaml_quoted(join(one.constant.path, "."));
  }
  if (names.empty()) return {};
  return fmt::format("grades:\n  fitted:\n    - {{of: [{}], grade: fitted, from: {}}}\n", names,
                     yaml_quoted(fmt::format("{}, {}", counted(fit.times.size(), "time"),
                                             short_files(fit.times))));
}

std::vector<std::string> listed(const std::set<std::string>& words) {
  return {words.begin(), words.end()};
}

/// A row about such times: their collectives, algorithms and launches, what of a library's choice
/// the fit forced, as few ranks as they had, and as many.
ComparedError row_of(const std::vector<FittedTime>& times, const Topology& machine) {
  std::set<std::string> collectives, algorithms, forced;
  std::set<LaunchMode> launches;
  ComparedError row;
  row.min_ranks = std::numeric_limits<int>::max();
  row.max_ranks = 0;
  for (const FittedTime& time : times) {
    const Query& query = time.measured.query;
    collectives.emplace(to_string(query.collective));
    launches.insert(query.launch);
    algorithms.insert(compared_name(parse_algorithm(time.algorithm)));
    const int ranks = static_cast<int>(chosen_gpus(machine, query.gpus).size());
    row.min_ranks = std::min(row.min_ranks, ranks);
    row.max_ranks = std::max(row.max_ranks, ranks);
    if (is_chooser(query.algorithm)) continue;
    const AlgorithmChoice asked = parse_algorithm(query.algorithm);
    for (const std::string& parameter : forcible_parameters(asked)) {
      if (asked.parameters.contains(parameter)) forced.insert(parameter);
    }
  }
  row.collectives = listed(collectives);
  row.algorithms = listed(algorithms);
  row.forced = listed(forced);
  row.launches.assign(launches.begin(), launches.end());
  return row;
}

/// The median of what the times would be off by, had each not been among those fitted.
double median_left_out(const std::vector<FittedTime>& times) {
  std::vector<double> errors;
  for (const FittedTime& time : times) errors.push_back(std::abs(time.error_left_out()));
  return median(errors);
}

/// The largest of the medians that the series of a band's times have, because that may be the next
/// user's: times of one file, collective and choice of GPUs are a series. A short one has no less
/// than the median of all times.
double largest_median(const std::vector<FittedTime>& of_band, double of_all) {
  using Series = std::tuple<std::string, Collective, std::vector<int>>;
  std::map<Series, std::vector<FittedTime>> by_series;
  for (const FittedTime& time : of_band) {
    const Query& query = time.measured.query;
    by_series[{time.measured.file, query.collective, query.gpus}].push_back(time);
  }
  double largest = kLeastError;
  for (const auto& [series, of_series] : by_series) {
    if (of_series.size() < kFewTimes) largest = std::max(largest, of_all);
    largest = std::max(largest, median_left_out(of_series));
  }
  return largest;
}

/// How far the times are from those simulated with the fitted figures: a row for each band of sizes
/// of the times that have GPUs, links and ops in common. Of large messages it does not matter how
/// they are launched.
std::vector<ComparedError> fitted_errors(const ProfileFit& fit, const Topology& machine) {
  using Kind = std::tuple<std::set<std::string>, bool, bool>;
  std::map<Kind, std::vector<FittedTime>> by_kind;
  for (const FittedTime& time : fit.times) {
    const Traffic& used = time.traffic;
    by_kind[{used.models, used.in_switch, used.in_fabric()}].push_back(time);
  }
  const double of_all = median_left_out(fit.times);
  std::vector<ComparedError> rows;
  for (const auto& [kind, times] : by_kind) {
    const auto& [models, in_switch, in_fabric] = kind;
    for (const BandDeviations& band : fitted_bands(times, &FittedTime::error_after)) {
      std::vector<FittedTime> of_band = times;
      std::erase_if(of_band, [&](const FittedTime& time) {
        return !is_in(*band.band, time.measured.query.size_bytes);
      });
      ComparedError row = row_of(of_band, machine);
      row.models = models.empty() ? std::vector<std::string>{"other"} : listed(models);
      row.in_switch = in_switch;
      row.in_fabric = in_fabric;
      if (band.band == &size_bands().back()) row.launches.clear();
      row.relative = std::ceil(largest_median(of_band, of_all) * kErrorSteps) / kErrorSteps;
      row.compared = fmt::format("{} of these sizes, on which it was fitted: {}",
                                 counted(band.times, "time"), short_files(times));
      rows.push_back(restricted_to(std::move(row), *band.band));
    }
  }
  return rows;
}

}  // namespace

std::string interval_text(const FittedConstant& constant) {
  if (constant.fitted.determined != Determined::yes) return {};
  return fmt::format("{:.4g} to {:.4g}", constant.fitted.low, constant.fitted.high);
}

std::string why_kept(const FittedConstant& constant, const std::vector<FittedConstant>& all) {
  switch (constant.fitted.determined) {
    case Determined::no_effect:
      return "no time depends on it";
    case Determined::uncertain:
      return "these times hardly depend on it";
    case Determined::one_time:
      return "only one time says what it is";
    case Determined::confounded:
      return "it cannot be told from " + all[*constant.fitted.confounded_with].constant.name();
    case Determined::not_tried:
      return "the time ran out before its effect was known";
    default:
      return {};
  }
}

std::string print_fitted_profile(const ProfileFit& fit, const FitRequest& request,
                                 const std::vector<std::string>& sources) {
  const std::string start = profile_word(request.profile).runtime;
  // A file is not referred to: it may be the very one that is written.
  const std::string like = names_profile_file(start) ? fit.profile.like : fit.profile.name;
  std::string text = "# Written by espalier fit.\nschema: espalier.profiles/1\nsources:\n";
  for (const std::string& source : sources) {
    text += fmt::format("  - {}\n", yaml_quoted(source));
  }
  if (names_profile_file(start)) {
    text += fmt::format("  - {}\n", yaml_quoted(start + ", for what has no comment below"));
  }
  text += "profiles:\n  fitted:\n";
  if (!like.empty()) text += fmt::format("{:{}}like: {}\n", "", kIndent, key_text(like));
  Profile written = fit.profile;
  written.title = fmt::format("{}, fitted on {} measured on {}", printable(start),
                              counted(fit.times.size(), "time"), request.machine.name);
  written.errors = fitted_errors(fit, request.machine);
  const auto base = request.machine.profiles.find(like);
  const Profile known = base == request.machine.profiles.end() ? Profile{} : base->second;
  return text + with_comments(print_profile(written, known), fit, printable(start)) +
         grades_of(fit);
}

}  // namespace espalier

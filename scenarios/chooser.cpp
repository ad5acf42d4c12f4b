// SPDX-License-Identifier: Apache-2.0
#include "scenarios/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/words.h"
#include "scenarios/study.h"
#include "scenarios/tuner.h"

namespace espalier {

namespace {

constexpr std::string_view kAutoOf = "auto:";
constexpr std::string_view kTuned = "tuned:";
constexpr std::string_view kOwners = "owners:";
constexpr std::string_view kAll = "all";

/// Whether it names an algorithm or a chooser, with or without parameters, or how gradients are
/// exchanged.
bool begins_algorithm(std::string_view text) {
  const std::string_view word = trim(text);
  const std::string_view name = word.substr(0, word.find_first_of(":|+"));
  return name == kAll || name == kAuto || word.starts_with(kTuned) || word.starts_with(kOwners) ||
         find_algorithm(name) != nullptr;
}

}  // namespace

bool is_auto(std::string_view algorithm) {
  return algorithm == kAuto || algorithm.starts_with(kAutoOf);
}

bool is_chooser(std::string_view algorithm) {
  return is_auto(algorithm) || algorithm.starts_with(kTuned);
}

std::vector<std::string> auto_candidates(std::string_view algorithm, Collective collective) {
  if (algorithm == kAuto) return tuning_candidates(collective);
  return split(algorithm.substr(kAutoOf.size()), '|');
}

std::optional<std::string> tuning_file(std::string_view algorithm) {
  if (!algorithm.starts_with(kTuned)) return std::nullopt;
  return std::string(algorithm.substr(kTuned.size()));
}

std::vector<std::string> split_algorithms(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& part : split(text, ',')) {
    const bool continues = !words.empty() && words.back().find(':') != std::string::npos &&
                           (words.back().starts_with(kTuned) || !begins_algorithm(part));
    if (continues) {
      words.back() += ',' + part;
    } else {
      words.emplace_back(trim(part));
    }
  }
  return words;
}

ExchangeWords exchange_words(const std::string& spec) {
  if (tuning_file(spec)) return {false, {spec}};
  const bool by_owners = spec.starts_with(kOwners);
  return {by_owners, split(by_owners ? std::string_view(spec).substr(kOwners.size()) : spec, '+')};
}

std::string to_string(const ExchangeWords& words) {
  return std::string(words.by_owners ? kOwners : "") + join(words.algorithms, "+");
}

std::string in_folder(const std::string& algorithm, const std::string& folder) {
  ExchangeWords words = exchange_words(algorithm);
  for (std::string& word : words.algorithms) {
    const std::filesystem::path file = tuning_file(word).value_or("");
    if (file.empty() || file.is_absolute() || folder.empty()) continue;
    word = std::string(kTuned) + (std::filesystem::path(folder) / file).lexically_normal().string();
  }
  return to_string(words);
}

TuningTable read_tuning(const std::string& file, Collective collective) {
  // Tables are read again for every table of results, which standard input can't be.
  if (file.empty() || file == "-") {
    throw Error(ErrorKind::usage, "tuned: needs the name of a file",
                "tuned:FILE, a table written by espalier tune --output FILE");
  }
  TuningTable table = parse_tuning(read_file(file), file);
  if (table.collective != collective) {
    throw Error(ErrorKind::usage,
                fmt::format("the tuning table {} is for {}, not for {}", quote(file),
                            to_string(table.collective), to_string(collective)),
                fmt::format("espalier tune --collective {}", to_string(collective)));
  }
  return table;
}

void check_concrete_algorithm(const std::string& spec, Collective collective) {
  if (is_chooser(spec)) {
    throw Error(ErrorKind::usage, fmt::format("{} is not an algorithm: it chooses one", spec),
                fmt::format("one of: {}", join(Study::applicable(collective), ", ")));
  }
  const Algorithm& algorithm = *parse_algorithm(spec).algorithm;
  if (std::ranges::count(algorithm.collectives, collective) == 0) {
    throw Error(
        ErrorKind::usage,
        fmt::format("algorithm '{}' does not serve {}", algorithm.name, to_string(collective)),
        fmt::format("one of: {}", join(Study::applicable(collective), ", ")));
  }
}

void check_algorithm(const std::string& spec, Collective collective) {
  if (const auto file = tuning_file(spec)) {
    read_tuning(*file, collective);
  } else if (is_auto(spec)) {
    DiagnosticList problems;
    for (const std::string& candidate : auto_candidates(spec, collective)) {
      try {
        check_concrete_algorithm(candidate, collective);
      } catch (const Error& error) {
        for (const Diagnostic& problem : error.diagnostics()) problems.add(problem);
      }
    }
    problems.throw_if_any(ErrorKind::usage);
  } else {
    check_concrete_algorithm(spec, collective);
  }
}

}  // namespace espalier

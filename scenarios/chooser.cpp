// SPDX-License-Identifier: Apache-2.0
#include "scenarios/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "algorithms/program_file.h"
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

/// Such that it is seen to be the name of one program file.
std::string as_program_file(const std::string& path) {
  const bool has_folder = path.find('/') != std::string::npos;
  return has_folder || (is_program_file(path) && path.find('+') == std::string::npos) ? path
                                                                                      : "./" + path;
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
    const std::string last = words.empty() ? std::string() : words.back();
    const bool has_parameters = last.find(':') != std::string::npos &&
                                (last.starts_with(kTuned) || !begins_algorithm(part));
    const bool is_open_path = is_program_file(last) && !ends_like_program(last);
    if (has_parameters || is_open_path) {
      words.back() += ',' + part;
    } else {
      words.emplace_back(trim(part));
    }
  }
  return words;
}

ExchangeWords exchange_words(const std::string& spec) {
  if (tuning_file(spec)) return {false, {spec}};
  ExchangeWords words;
  words.by_owners = spec.starts_with(kOwners);
  bool is_open = false;  // the last word is the beginning of a file's name
  for (const std::string& part :
       split(words.by_owners ? std::string_view(spec).substr(kOwners.size()) : spec, '+')) {
    if (is_open) {
      words.algorithms.back() += "+" + part;
    } else {
      words.algorithms.push_back(part);
    }
    const std::string& word = words.algorithms.back();
    is_open = !is_chooser(word) && is_program_file(word) && !ends_like_program(word);
  }
  return words;
}

std::string to_string(const ExchangeWords& words) {
  return std::string(words.by_owners ? kOwners : "") + join(words.algorithms, "+");
}

std::string in_folder(const std::string& algorithm, const std::string& folder) {
  const auto moved = [&](const std::string& file) {
    if (file.empty() || folder.empty() || std::filesystem::path(file).is_absolute()) return file;
    return (std::filesystem::path(folder) / file).lexically_normal().string();
  };
  const auto moved_program = [&](const std::string& word) {
    return is_program_file(word) ? as_program_file(moved(word)) : word;
  };
  ExchangeWords words = exchange_words(algorithm);
  for (std::string& word : words.algorithms) {
    if (const auto file = tuning_file(word)) {
      word = std::string(kTuned) + moved(*file);
    } else if (word.starts_with(kAutoOf)) {
      std::vector<std::string> candidates = split(word.substr(kAutoOf.size()), '|');
      std::ranges::transform(candidates, candidates.begin(), moved_program);
      word = std::string(kAutoOf) + join(candidates, "|");
    } else {
      word = moved_program(word);
    }
  }
  return to_string(words);
}

std::string as_seen_from(const std::string& folder, const std::string& algorithm) {
  const std::filesystem::path file(algorithm);
  if (!is_program_file(algorithm) || file.is_absolute()) return algorithm;
  std::error_code ignored;  // a path that leads nowhere is as good as it was
  const auto seen = std::filesystem::proximate(file, folder.empty() ? "." : folder, ignored);
  return seen.empty() ? algorithm : as_program_file(seen.string());
}

TuningTable read_tuning(const std::string& file, Collective collective) {
  // Tables are read again for every table of results, which standard input can't be.
  if (file.empty() || file == "-") {
    throw Error(ErrorKind::usage, "tuned: needs a file name",
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

std::optional<Diagnostic> not_served(const AlgorithmChoice& choice, Collective collective) {
  const Algorithm& algorithm = *choice.algorithm;
  if (std::ranges::count(algorithm.collectives, collective) > 0) return std::nullopt;
  if (choice.file) {
    const Program& program = choice.file->program;
    return Diagnostic{{},
                      fmt::format("the program does {}, and {} is asked for",
                                  to_string(program.contract.collective), to_string(collective)),
                      fmt::format("--collective {}", to_string(program.contract.collective)),
                      {choice.file->path, program.header_lines.collective, 0}};
  }
  return Diagnostic{
      {},
      fmt::format("algorithm '{}' does not support {}", algorithm.name, to_string(collective)),
      fmt::format("one of: {}", join(Study::applicable(collective), ", ")),
      {}};
}

void check_concrete_algorithm(const std::string& spec, Collective collective) {
  if (is_chooser(spec)) {
    throw Error(ErrorKind::usage, fmt::format("{} is not an algorithm, but chooses one", spec),
                fmt::format("one of: {}", join(Study::applicable(collective), ", ")));
  }
  if (auto problem = not_served(parse_algorithm(spec), collective)) {
    throw Error(ErrorKind::usage, {std::move(*problem)});
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

std::vector<std::shared_ptr<const ProgramFile>> program_files(Study& study, const Query& query) {
  std::vector<std::string> algorithms = {query.algorithm};
  if (const TuningTable* table = study.tuning_table(query)) {
    algorithms.clear();
    for (const TuningRow& row : table->rows) algorithms.push_back(row.algorithm);
  } else if (is_auto(query.algorithm)) {
    algorithms = auto_candidates(query.algorithm, query.collective);
  }
  std::vector<std::shared_ptr<const ProgramFile>> files;
  for (const std::string& algorithm : algorithms) {
    if (auto file = study.choice(algorithm).file) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace espalier

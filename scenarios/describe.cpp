// SPDX-License-Identifier: Apache-2.0
#include "scenarios/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/tuner.h"

namespace espalier {

namespace {

/// Columns that the values of the parameters an algorithm leaves open may take.
std::size_t open_columns(const AlgorithmChoice& choice) {
  std::size_t columns = 0;
  for (const AlgorithmParameter* parameter : open_parameters(choice)) {
    const std::string widest = fmt::format("{}={}", parameter->name, parameter->tried.back());
    columns += widest.size() + std::string_view(columns == 0 ? " ()" : ",").size();
  }
  return columns;
}

/// Columns that the label of a query's outcome may take.
std::size_t label_columns(Study& study, const Query& query) {
  const bool chooses = is_chooser(query.algorithm);
  if (!chooses && !is_portfolio(study.choice(query.algorithm))) {
    return query.algorithm.size() + open_columns(study.choice(query.algorithm));
  }
  std::size_t widest = 0;
  if (!chooses) {
    for (const std::string& name : Study::applicable(query.collective)) {
      widest = std::max(widest, name.size() + open_columns(study.choice(name)));
    }
    return query.algorithm.size() + widest + std::string_view(" ()").size();
  }
  if (const TuningTable* table = study.tuning_table(query)) {
    for (const TuningRow& row : table->rows) widest = std::max(widest, row.algorithm.size());
  } else {
    for (const std::string& candidate : auto_candidates(query.algorithm, query.collective)) {
      widest = std::max(widest, candidate.size() + open_columns(study.choice(candidate)));
    }
  }
  return query.algorithm.size() + widest + std::string_view(" ()").size();
}

}  // namespace

std::string describe_ranks(const Query& query, int ranks) {
  const std::string count = counted(ranks, "rank");
  if (query.topology.empty()) return count;
  const std::string relays = query.relays.empty() ? "" : ", relays " + format_ranges(query.relays);
  return fmt::format("{}, {} ({}){}", query.topology,
                     query.gpus.empty()       ? "all GPUs"
                     : query.gpus.size() == 1 ? fmt::format("GPU {}", query.gpus.front())
                                              : "GPUs " + format_ranges(query.gpus),
                     count, relays);
}

const std::string& algorithm_that_ran(const Outcome& outcome) {
  return outcome.chosen.empty() ? outcome.query.algorithm : outcome.chosen;
}

std::string algorithm_label(const Outcome& outcome) {
  const std::string& asked = outcome.query.algorithm;
  if (outcome.chosen.empty()) return asked;
  if (is_chooser(asked)) return fmt::format("{} ({})", asked, outcome.chosen);
  // The parameters that were open; the defaults are what everybody expects.
  const AlgorithmChoice chosen = parse_algorithm(outcome.chosen);
  if (chosen.algorithm != parse_algorithm(asked).algorithm) {
    return fmt::format("{} ({})", asked, outcome.chosen);
  }
  AlgorithmChoice unusual = parse_algorithm(asked);
  std::string text;
  for (const AlgorithmParameter* parameter : open_parameters(unusual)) {
    const std::int64_t value = chosen.parameters.at(parameter->name);
    if (value == parameter->default_value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", parameter->name, value);
  }
  return text.empty() ? asked : fmt::format("{} ({})", asked, text);
}

std::string links_used(const Outcome& outcome) {
  if (outcome.report.transfers == 0) return "-";
  return fmt::format("{}{}{}", to_string(outcome.bound_links), outcome.bound_helpers ? "+host" : "",
                     outcome.bound_relays ? "+relay" : "");
}

std::string proof_of(const Bound& bound) {
  return bound.kind == "lp" ? "linear programming" : "a " + bound.kind;
}

std::string table_profile(Study& study, const std::vector<Query>& queries) {
  const std::string& named = queries.front().profile;
  const std::string first = study.profile_used(queries.front());
  const bool is_named = first == profile_word(named).runtime;
  const bool is_same = std::ranges::all_of(
      queries, [&](const Query& query) { return study.profile_used(query) == first; });
  return is_same && !is_named ? first : named;
}

std::size_t widest_label(Study& study, const std::vector<Query>& queries) {
  std::size_t widest = 0;
  for (const Query& query : queries) widest = std::max(widest, label_columns(study, query));
  return widest;
}

std::string progress_label(const Query& query) {
  return fmt::format("{} {}", query.algorithm, describe_size(query.size_bytes));
}

std::string progress_label(const TrainingQuery& query) {
  return query.exchange.algorithm + " " + query.model->name;
}

}  // namespace espalier

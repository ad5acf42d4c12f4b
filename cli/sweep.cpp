// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/programs.h"
#include "cli/text.h"
#include "core/units.h"
#include "ir/program.h"
#include "scenarios/chooser.h"
#include "scenarios/tuner.h"
#include "topologies/load.h"

namespace espalier {

namespace {

bool takes(const Verb& verb, std::string_view option) {
  return std::ranges::count(verb.options, option, &OptionUse::name) > 0;
}

/// Reads --ranks where the verb takes it.
int read_ranks(Arguments& arguments, const Query& question) {
  if (!takes(arguments.verb(), "--ranks")) return 0;
  if (question.topology.empty()) {
    refuse_gpus(arguments);
    return static_cast<int>(arguments.integer("--ranks", 1, kMaxPlaces));
  }
  if (arguments.given("--ranks")) {
    arguments.problem("--ranks and --topology exclude each other",
                      "--gpus chooses ranks of a machine");
  }
  return 0;
}

void read_collective(Arguments& arguments, Query& question, int ranks) {
  std::vector<std::pair<std::string, Collective>> collectives;
  for (const CollectiveInfo& collective : all_collectives()) {
    collectives.emplace_back(collective.name, collective.id);
  }
  question.collective = arguments.choice("--collective", collectives);
  const int maximum = (ranks > 0 ? ranks : kMaxPlaces) - 1;
  question.root = static_cast<int>(arguments.integer("--root", 0, maximum));
  if (arguments.given("--root") && !info(question.collective).rooted) {
    arguments.problem_of("--root", fmt::format("{} has no root", to_string(question.collective)));
  }
}

void read_chooser(Arguments& arguments, const std::string& word, const Query& question) {
  if (is_auto(word) && question.ranks > 0) {
    arguments.problem_of("--algorithm", "auto chooses by simulating a machine, and none is named",
                         "--topology names one");
  }
  arguments.reading("--algorithm", [&] {
    check_algorithm(word, question.collective);
    return true;
  });
}

void check_word(Arguments& arguments, const std::string& word, const Query& question) {
  if (is_chooser(word)) {
    read_chooser(arguments, word, question);
  } else if (const auto choice =
                 arguments.reading("--algorithm", [&] { return parse_algorithm(word); })) {
    require_served(arguments, *choice, question.collective);
  }
}

void read_execution(Arguments& arguments, RunOptions& run) {
  constexpr std::int64_t kMaxIterations = 1'000'000;
  run.type = arguments.choice_among("--dtype", all_data_types());
  run.op = arguments.choice_among("--op", all_reduce_ops());
  run.iterations = static_cast<int>(arguments.integer("--iters", 1, kMaxIterations));
  run.warmup = static_cast<int>(arguments.integer("--warmup", 0, kMaxIterations));
  run.check = !arguments.flag("--no-check");
  run.timeout_s = arguments.number("--timeout", 0.001, 1e9);
}

/// Columns that the values of the parameters an algorithm leaves open may take.
std::size_t open_columns(const std::string& algorithm) {
  std::size_t columns = 0;
  for (const AlgorithmParameter* parameter : open_parameters(parse_algorithm(algorithm))) {
    const std::string widest = fmt::format("{}={}", parameter->name, parameter->tried.back());
    columns += widest.size() + std::string_view(columns == 0 ? " ()" : ",").size();
  }
  return columns;
}

}  // namespace

int read_machine(Arguments& arguments, Query& question) {
  std::optional<Topology> machine;
  question.topology = arguments.text("--topology");
  question.profile = arguments.text("--profile");
  if (!question.topology.empty()) {
    machine = arguments.reading("--topology", [&] { return load_topology(question.topology); });
  } else if (!takes(arguments.verb(), "--ranks") && !arguments.has_unknown()) {
    arguments.problem("which machine? --topology is missing", "espalier list topologies");
  }
  question.gpus = arguments.gpus("--gpus");
  const auto relays = read_relays(arguments, machine ? &*machine : nullptr, question.gpus);
  question.relays = relays.value_or(std::vector<int>{});
  question.links = arguments.choice<LinkScope>(
      "--links", {{"all", LinkScope::all}, {"fabric", LinkScope::fabric}});
  question.ranks = read_ranks(arguments, question);
  if (!machine) return question.ranks;
  arguments.reading("--profile", [&] { return &machine->profile(question.profile); });
  const auto gpus =
      arguments.reading("--gpus", [&] { return chosen_gpus(*machine, question.gpus); });
  return gpus ? static_cast<int>(gpus->size()) : 0;
}

void read_simulation(Arguments& arguments, Query& question) {
  const Verb& verb = arguments.verb();
  if (takes(verb, "--chunk")) question.chunk_bytes = arguments.chunk("--chunk");
  if (takes(verb, "--engine")) {
    question.run.engine = arguments.choice_among("--engine", all_sim_engines());
  }
}

AlgorithmWords read_algorithms(Arguments& arguments, Collective collective,
                               const std::function<void(const std::string& word)>& check) {
  AlgorithmWords words;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(words.names, name) == 0) words.names.push_back(name);
  };
  for (const std::string& word : arguments.words("--algorithm")) {
    if (word == "all") {
      words.all = true;
      continue;
    }
    check(word);
    add(word);
  }
  if (words.all) std::ranges::for_each(Study::applicable(collective), add);
  return words;
}

std::vector<Query> Sweep::queries() const {
  std::vector<Query> all;
  for (const std::int64_t size_bytes : sizes) {
    for (const std::string& algorithm : algorithms) {
      Query& query = all.emplace_back(question);
      query.size_bytes = size_bytes;
      query.algorithm = algorithm;
    }
  }
  return all;
}

Sweep read_sweep(Arguments& arguments) {
  Sweep sweep;
  const Verb& verb = arguments.verb();
  const int ranks = read_machine(arguments, sweep.question);
  read_collective(arguments, sweep.question, ranks);
  AlgorithmWords words = read_algorithms(
      arguments, sweep.question.collective,
      [&](const std::string& word) { check_word(arguments, word, sweep.question); });
  sweep.algorithms = std::move(words.names);
  sweep.all_algorithms = words.all;
  if (takes(verb, "--size")) sweep.sizes = arguments.sizes("--size");
  if (takes(verb, "--in-place")) sweep.question.in_place = arguments.flag("--in-place");
  read_simulation(arguments, sweep.question);
  if (takes(verb, "--iters")) read_execution(arguments, sweep.question.run);
  return sweep;
}

Skipped skipped_of(const Query& query, std::string reason, std::string instead) {
  Skipped one;
  one.topology = query.topology;
  one.profile = query.profile;
  one.gpus = query.gpus;
  one.relays = query.relays;
  one.links = query.links;
  one.collective = to_string(query.collective);
  one.algorithm = query.algorithm;
  one.reason = std::move(reason);
  one.instead = std::move(instead);
  return one;
}

void Answers::skip(const Skipped& one) {
  if (std::ranges::count(skipped, one) == 0) skipped.push_back(one);
}

void Answers::refuse(const std::string& algorithm) {
  if (std::ranges::count(broken, algorithm) == 0) broken.push_back(algorithm);
}

void Answers::add(Outcome outcome) {
  const std::string& algorithm = outcome.query.algorithm;
  if (outcome.skipped) {
    skip(skipped_of(outcome.query, *outcome.skipped, outcome.instead));
  } else if (!outcome.verified) {
    refuse(algorithm);
  } else {
    outcome.program.reset();
    outcome.report.timeline.clear();
    outcomes.push_back(std::move(outcome));
  }
}

void Answers::add(Answers more) {
  std::ranges::move(more.outcomes, std::back_inserter(outcomes));
  for (const Skipped& one : more.skipped) skip(one);
  for (const std::string& one : more.broken) refuse(one);
}

void Answers::label(const AskedBy& asked_by) {
  for (Outcome& outcome : outcomes) outcome.asked_by = asked_by;
  for (Skipped& one : skipped) one.asked_by = asked_by;
}

const Outcome* Answers::best() const {
  const Outcome* best = nullptr;
  for (const Outcome& outcome : outcomes) {
    const auto order = [](const Outcome& one) {
      return std::pair(-one.query.size_bytes, one.report.time_s);
    };
    if (best == nullptr || order(outcome) < order(*best)) best = &outcome;
  }
  return best;
}

void print_skipped(const Console& console, const Answers& answers) {
  for (const Skipped& one : answers.skipped) {
    console.out << wrap(fmt::format("Not here: {}: {}", one.algorithm, one.reason), console.width,
                        "# ");
  }
}

int verdict(const Answers& answers) {
  const bool wrong = std::ranges::any_of(
      answers.outcomes, [](const Outcome& outcome) { return outcome.report.wrong_elements() > 0; });
  return wrong || !answers.broken.empty() ? 1 : 0;
}

int conclude(const Answers& answers, bool all_algorithms) {
  DiagnosticList refused;
  if (!all_algorithms || answers.outcomes.empty()) {
    for (const Skipped& one : answers.skipped) {
      refused.add({}, fmt::format("{} is not possible here: {}", one.algorithm, one.reason),
                  one.instead);
    }
  }
  refused.throw_if_any(ErrorKind::unsupported);
  return verdict(answers);
}

std::string_view to_string(LinkScope links) { return links == LinkScope::all ? "all" : "fabric"; }

std::string format_ranges(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last == i + 1) last = i;
    if (!text.empty()) text += ',';
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

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

std::string describe_size(std::int64_t size_bytes) {
  std::string text = format_bytes(size_bytes);
  return parse_bytes(text) == size_bytes ? text : fmt::format("{} bytes", size_bytes);
}

std::string algorithm_label(const Outcome& outcome) {
  const std::string& asked = outcome.query.algorithm;
  if (outcome.chosen.empty()) return asked;
  if (is_chooser(asked)) return fmt::format("{} ({})", asked, outcome.chosen);
  // The parameters that were open; the defaults are what everybody expects.
  const AlgorithmChoice chosen = parse_algorithm(outcome.chosen);
  AlgorithmChoice unusual = parse_algorithm(asked);
  std::string text;
  for (const AlgorithmParameter* parameter : open_parameters(unusual)) {
    const std::int64_t value = chosen.parameters.at(parameter->name);
    if (value == parameter->default_value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", parameter->name, value);
  }
  return text.empty() ? asked : fmt::format("{} ({})", asked, text);
}

std::size_t widest_label(Study& study, const Query& query) {
  if (!is_chooser(query.algorithm)) return query.algorithm.size() + open_columns(query.algorithm);
  std::size_t widest = 0;
  if (const TuningTable* table = study.tuning_table(query)) {
    for (const TuningRow& row : table->rows) widest = std::max(widest, row.algorithm.size());
  } else {
    for (const std::string& candidate : auto_candidates(query.algorithm, query.collective)) {
      widest = std::max(widest, candidate.size() + open_columns(candidate));
    }
  }
  return query.algorithm.size() + widest + std::string_view(" ()").size();
}

std::string progress_label(const Query& query) {
  return fmt::format("{} {}", query.algorithm, describe_size(query.size_bytes));
}

}  // namespace espalier

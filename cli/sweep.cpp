// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "cli/programs.h"
#include "cli/table_notes.h"
#include "cli/text.h"
#include "core/units.h"
#include "formats/machine.h"
#include "ir/program.h"
#include "scenarios/chooser.h"
#include "scenarios/study_workers.h"
#include "scenarios/tuner.h"
#include "topologies/load.h"
#include "topologies/placement.h"

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

/// What is not given and `contract` says, it decides.
void read_collective(Arguments& arguments, const std::optional<Contract>& contract, int ranks,
                     Query& question) {
  std::vector<std::pair<std::string, Collective>> collectives;
  for (const CollectiveInfo& collective : all_collectives()) {
    collectives.emplace_back(collective.name, collective.id);
  }
  question.collective = contract && !arguments.given("--collective")
                            ? contract->collective
                            : arguments.choice("--collective", collectives);
  const int maximum = (ranks > 0 ? ranks : kMaxPlaces) - 1;
  question.root = static_cast<int>(arguments.integer("--root", 0, maximum));
  if (contract && !arguments.given("--root")) question.root = contract->root;
  if (arguments.given("--root") && !info(question.collective).rooted) {
    arguments.problem_of("--root", fmt::format("{} has no root", to_string(question.collective)));
  }
}

void read_chooser(Arguments& arguments, const std::string& word, const Query& question) {
  if (is_auto(word) && question.ranks > 0) {
    arguments.problem_of("--algorithm", "auto chooses by simulating a machine, but none is named",
                         "name one with --topology");
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

/// Whether it is an error that an algorithm does not apply: it was named, or nothing ran at all.
template <class AnyAnswers>
bool is_error(const Skipped& one, const AnyAnswers& answers, bool all_algorithms) {
  return !one.is_refused && !one.is_half && !one.budget &&
         (!all_algorithms || answers.outcomes.empty());
}

template <class AnyAnswers>
void require_possible(const AnyAnswers& answers, bool all_algorithms) {
  DiagnosticList impossible;
  for (const Skipped& one : answers.skipped) {
    if (!is_error(one, answers, all_algorithms)) continue;
    impossible.add({}, fmt::format("{} is not possible here: {}", one.algorithm, one.reason),
                   one.instead);
  }
  impossible.throw_if_any(ErrorKind::unsupported);
}

template <class AnyAnswers>
void print_tolerated(const Console& console, const AnyAnswers& answers, bool all_algorithms) {
  std::vector<Skipped> tolerated = answers.skipped;
  std::erase_if(tolerated,
                [&](const Skipped& one) { return is_error(one, answers, all_algorithms); });
  print_skipped(console, tolerated);
}

/// Where nobody chose among GPUs of which some have no way to others: those of the largest set that
/// is connected, which is said.
void leave_out_unconnected(Arguments& arguments, const Topology& machine, Query& question) {
  const bool is_chosen = !question.gpus.empty() || !question.relays.empty();
  if (is_chosen || question.links != LinkScope::all) return;
  const Router router(machine, machine.profile(question.profile), question.links);
  const Placement all = place_ranks(router, {});
  if (!unreachable_pair(router, all)) return;
  const std::vector<int> connected = most_connected(router, all);
  if (connected.size() < 2) return;
  question.gpus = connected;
  arguments.remark(fmt::format("not all GPUs are connected: the most that are take part, --gpus {}",
                               format_ranges(connected)));
}

}  // namespace

int read_machine(Arguments& arguments, Query& question) {
  std::optional<Topology> machine;
  question.topology = arguments.text("--topology");
  question.profile = arguments.text("--profile");
  if (!question.topology.empty()) {
    machine = arguments.reading("--topology", [&] { return open_machine(question.topology); });
    for (const std::string& note : machine ? machine->notes : std::vector<std::string>()) {
      arguments.remark(note);
    }
  } else if (!takes(arguments.verb(), "--ranks") && !arguments.has_unknown()) {
    arguments.problem("no machine is given: --topology is missing", "espalier list topologies");
  }
  question.gpus = arguments.gpus("--gpus");
  if (takes(arguments.verb(), "--relay")) {
    const auto relays = read_relays(arguments, machine ? &*machine : nullptr, question.gpus);
    question.relays = relays.value_or(std::vector<int>{});
  }
  question.links = arguments.choice_among("--links", all_link_scopes());
  question.ranks = read_ranks(arguments, question);
  if (!machine) return question.ranks;
  if (arguments.reading("--profile", [&] { return machine->profile(question.profile); })) {
    leave_out_unconnected(arguments, *machine, question);
  }
  const auto gpus =
      arguments.reading("--gpus", [&] { return chosen_gpus(*machine, question.gpus); });
  return gpus ? static_cast<int>(gpus->size()) : 0;
}

int read_nccl_version(Arguments& arguments) {
  if (!arguments.given("--nccl-version")) return 0;
  const std::string word = arguments.text("--nccl-version");
  const std::optional<int> version = library_version(word);
  if (!version) {
    arguments.problem_of("--nccl-version", quote(word) + " is no version of NCCL",
                         "such as 2.18 or 2.18.3");
  }
  return version.value_or(0);
}

int read_jobs(Arguments& arguments) {
  return static_cast<int>(arguments.integer("--jobs", 0, kMaxJobs));
}

void read_simulation(Arguments& arguments, Query& question) {
  const Verb& verb = arguments.verb();
  if (takes(verb, "--no-merge")) question.merge = !arguments.flag("--no-merge");
  if (takes(verb, "--launch")) {
    question.launch = arguments.choice_among("--launch", all_launch_modes());
    question.against_nccl = !arguments.flag("--no-nccl");
  }
  if (takes(verb, "--nccl-version")) question.library_version = read_nccl_version(arguments);
  if (takes(verb, "--chunk")) question.chunk_bytes = arguments.chunk("--chunk");
  if (takes(verb, "--engine")) {
    question.run.engine = arguments.choice_among("--engine", all_sim_engines());
  }
}

void remind_of_engine(Progress& progress, const RunOptions& run) {
  if (run.engine != SimEngine::simgrid) return;
  progress.remind(std::chrono::seconds(5),
                  "note: SimGrid may take a hundred times as long as the other engine where many "
                  "transfers are in flight; --engine classes finds the same times");
}

double read_budget_s(Arguments& arguments) {
  constexpr double kMaxBudget_s = 1e9;
  return arguments.given("--budget") ? arguments.number("--budget", 0, kMaxBudget_s)
                                     : std::numeric_limits<double>::infinity();
}

AlgorithmWords read_algorithms(Arguments& arguments, Collective collective,
                               const std::function<void(const std::string& word)>& check) {
  AlgorithmWords words;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(words.names, name) == 0) words.names.push_back(name);
  };
  for (const std::string& word : arguments.algorithms()) {
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

Sweep read_sweep(Arguments& arguments, const std::optional<Contract>& asked) {
  Sweep sweep;
  const Verb& verb = arguments.verb();
  const std::optional<Contract> contract = asked ? asked : contract_in(arguments.algorithms());
  int ranks = read_machine(arguments, sweep.question);
  if (contract && sweep.question.ranks > 0 && !arguments.given("--ranks")) {
    sweep.question.ranks = ranks = contract->ranks;
  }
  read_collective(arguments, contract, ranks, sweep.question);
  AlgorithmWords words = read_algorithms(
      arguments, sweep.question.collective,
      [&](const std::string& word) { check_word(arguments, word, sweep.question); });
  sweep.algorithms = std::move(words.names);
  sweep.all_algorithms = words.all;
  if (takes(verb, "--size")) sweep.sizes = arguments.sizes("--size");
  if (takes(verb, "--in-place")) {
    sweep.question.in_place = arguments.flag("--in-place") || (contract && contract->in_place);
  }
  read_simulation(arguments, sweep.question);
  if (takes(verb, "--iters")) read_execution(arguments, sweep.question.run);
  return sweep;
}

void print_not_here(const Console& console, const Answers& answers, bool all_algorithms) {
  print_tolerated(console, answers, all_algorithms);
  print_unasked(console, answers);
}

void print_not_here(const Console& console, const TrainingAnswers& answers, bool all_algorithms) {
  print_tolerated(console, answers, all_algorithms);
}

int conclude(const Answers& answers, bool all_algorithms) {
  require_possible(answers, all_algorithms);
  return answers.all_right() ? 0 : 1;
}

int conclude(const TrainingAnswers& answers, bool all_algorithms) {
  require_possible(answers, all_algorithms);
  return std::ranges::any_of(answers.skipped, &Skipped::is_refused) ? 1 : 0;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/program_file.h"
#include "core/activity.h"
#include "core/interruption.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "ir/rounds.h"
#include "ir/unfold.h"
#include "run/blocks.h"
#include "scenarios/benchmark.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "scenarios/forecast.h"
#include "scenarios/interpreted.h"
#include "scenarios/stated_protocol.h"
#include "scenarios/study_cache.h"
#include "scenarios/tuner.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

void add_note(Outcome& outcome, const std::string& note) {
  if (note.empty()) return;
  outcome.program_note += (outcome.program_note.empty() ? "" : "; ") + note;
}

}  // namespace

Study::Study(Backend& backend, Backend* simulator, std::int64_t search_work)
    : backend_(backend),
      simulator_(simulator),
      search_work_(search_work),
      cache_(std::make_unique<Cache>(simulator == &backend)) {}
Study::~Study() = default;

std::vector<std::string> Study::applicable(Collective collective) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (std::ranges::count(algorithm->collectives, collective) > 0) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

std::shared_ptr<Study::Prepared> Study::prepare(const Query& query, Machine& machine) {
  const Cache::ProgramKey key = cache_->program_key(query, machine);
  if (auto known = cache_->known_program(key, asked_)) return known;
  const Stopwatch stopwatch(shared_s_);
  cache_->forget_programs_if_large();
  const TimeLimit own(std::numeric_limits<double>::infinity());
  const auto made = std::make_shared<Prepared>(cache_->kept_ops);
  made->had_s = time_left_s();
  made->question = asked_;
  made->choice = choice(query.algorithm);
  Built built;
  const Cache::ProgramKey whole = cache_->program_key(query, machine, /*folds=*/false);
  bool is_whole = false;
  const FewRounds few = few_rounds(query, machine, made->choice);
  auto of_group = build_rounds(few, *made, [&](std::int64_t left_out) {
    return build_folded(query, machine, left_out, *made);
  });
  if (of_group) {
    built = std::move(*of_group);
  } else if (auto of_groups = build_of_groups(query, machine, *made)) {
    built = std::move(*of_groups);
  } else {
    if (auto known = cache_->known_program(whole, asked_)) {
      return cache_->programs.insert_or_assign(key, std::move(known)).first->second;
    }
    const MakeProgram make = cache_->builder(machine, made->choice, asked_);
    built = *build_rounds(few, *made, [&](std::int64_t left_out) {
      return build_on(machine, made->choice, query, make, &cache_->kept_programs,
                      {.rounds_left_out = left_out});
    });
    is_whole = true;
  }
  finish(*made, std::move(built), query, machine);
  made->is_cut_short = own.has_cut_short();
  if (is_whole) cache_->programs.insert_or_assign(whole, made);
  return cache_->programs.insert_or_assign(key, made).first->second;
}

Study::FewRounds Study::few_rounds(const Query& query, const Machine& machine,
                                   const AlgorithmChoice& choice) const {
  if (!cache_->may_leave_out_rounds(query)) return {};
  const std::int64_t enough =
      cache_->enough_rounds(cache_->program_key(query, machine, /*folds=*/false));
  return {enough, rounds_to_leave_out(machine, choice, query, enough)};
}

/// As `build` does, which is told how many rounds to leave out: those, or none where it turns out
/// that other rounds come again.
std::optional<Built> Study::build_rounds(const FewRounds& few, Prepared& made,
                                         const BuildWithout& build) {
  if (few.left_out == 0) return build(0);
  std::optional<Built> built = build(few.left_out);
  if (!built) return std::nullopt;
  const auto rounds = built->program ? find_rounds(*built->program) : std::nullopt;
  // Those that the algorithm speaks of, and not parts of them. Of groups that share ranks all are
  // simulated.
  const bool are_those = rounds && rounds->count >= few.enough &&
                         rounds->count <= few.enough + kMultipleOfRounds &&
                         !built->program->fold.shares_ranks();
  if (!are_those) {
    made.rotation = nullptr;
    made.may_be_cut = true;
    return build(0);
  }
  made.rounds_left_out = few.left_out;
  return built;
}

void Study::finish(Prepared& made, Built built, const Query& query, const Machine& machine) {
  made.skipped = std::move(built.why_not);
  made.is_unroutable = built.is_routing;
  made.instead = std::move(built.instead);
  if (made.skipped) return;
  if (built.verification) {
    made.uncut = std::make_shared<KeptProgram>();
    made.uncut->program = std::move(built.program);
    made.uncut->verdict = std::move(built.verification);
  } else {
    made.uncut = cache_->kept_programs.shared(std::move(built.program));
  }
  made.whole = made.uncut->program;
  made.count_ops();
  made.notes = std::move(built.notes);
  if (is_library(made.choice)) {
    made.blocks = library_call(made.choice, request_for(query, machine)).blocks;
  }
  if (made.is_wrong()) return;
  if (!built.ways) {
    built.ways = cache_->kept_programs.ways(*made.whole, static_cast<int>(made.groups()));
  }
  made.longest_transfer = built.ways->longest_units;
  made.links = links_used(*made.whole, machine, *built.ways);
  const Protocol& protocol = machine.router->profile().protocol;
  if (made.links.over_host && !protocol.over_host_links) {
    made.skipped = fmt::format(
        "protocol {} needs the GPU fabric or a network between GPUs, and "
        "these transfers cross a host's links",
        protocol.name);
  }
  // The simulator asks for routes alone, which there are.
  if (simulator_ == &backend_) made.simulable.insert(0);
}

const AlgorithmChoice& Study::choice(const std::string& algorithm) {
  return cache_->choice(algorithm);
}

void Study::know_program(const std::string& name, std::shared_ptr<const ProgramFile> file) {
  AlgorithmChoice choice;
  choice.algorithm = &file->record;
  choice.file = std::move(file);
  choice.label = name;
  cache_->choices.insert_or_assign(name, std::move(choice));
}

const TuningTable* Study::tuning_table(const Query& query) {
  const auto file = tuning_file(query.algorithm);
  if (!file) return nullptr;
  const Cache::TableKey key{*file, query.collective};
  auto known = cache_->tables.find(key);
  if (known == cache_->tables.end()) {
    known = cache_->tables.emplace(key, read_tuning(*file, query.collective)).first;
  }
  const TuningTable& table = known->second;
  if (const int ranks = this->ranks(query); table.ranks != ranks) {
    throw Error(ErrorKind::usage,
                fmt::format("the tuning table {} is for {} ranks, not for {}", quote(*file),
                            table.ranks, ranks),
                "make one for these GPUs with espalier tune");
  }
  return &table;
}

/// The query with the algorithm that its chooser names, or with the best values of the parameters
/// that it leaves open; nothing when none applies.
std::optional<Query> Study::resolve(const Query& query) {
  Query concrete = query;
  if (const TuningTable* table = tuning_table(query)) {
    const TuningRow& row = table->row_for(query.size_bytes);
    concrete.algorithm = row.algorithm;
    concrete.chunk_bytes = query.chunk_bytes.value_or(row.chunk_bytes);
    return concrete;
  }
  if (simulator_ == nullptr || query.topology.empty()) {
    throw Error(ErrorKind::usage, "auto chooses by simulating a machine, but none is named",
                "name one with --topology");
  }
  if (!is_chooser(query.algorithm)) {
    const Prediction prediction = predict(query);
    if (prediction.skipped) return std::nullopt;
    concrete.algorithm = prediction.algorithm;
    return concrete;
  }
  const auto choice =
      choose_algorithm(*this, query, auto_candidates(query.algorithm, query.collective));
  if (!choice) return std::nullopt;
  concrete.algorithm = choice->prediction.algorithm;  // what chunks are best is remembered
  return concrete;
}

const Study::Limits& Study::limits(const Query& query, Machine& machine, const Prepared& prepared) {
  const auto& [links, through_gpus, over_host, in_switch] = prepared.links;
  const bool helpers = prepared.whole->hosts > 0;
  const bool relays = prepared.choice.algorithm->uses_relays;
  const Cache::BoundKey key{&machine, query.collective, query.root,  links,
                            helpers,  relays,           through_gpus};
  const auto known = cache_->bounds.find(key);
  if (known != cache_->bounds.end() && (!known->second.is_cut_short || is_time_up())) {
    return known->second;
  }
  const Stopwatch stopwatch(shared_s_);
  const Activity activity("proving the bound");
  const TimeLimit own(std::numeric_limits<double>::infinity());
  const Router* router = machine.router.get();
  if (links != query.links) {
    router =
        &cache_->other_routers
             .try_emplace({&machine, links}, *machine.topology, router->shared_profile(), links)
             .first->second;
  }
  Placement placement = machine.placement;
  if (!relays) placement.relays.clear();
  Limits made{
      bandwidth_bound(query.collective, query.root, *router, placement, {.helpers = helpers}), {}};
  for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
    const std::shared_ptr<const Profile> profile = machine.runtime(runtime).shared_profile();
    const Router of_runtime(*machine.topology, profile, links);
    made.times.push_back(time_bound(query.collective, query.root, of_runtime, placement,
                                    {.through_gpus = through_gpus}));
    made.times.back().wire = profile->protocol.wire / router->profile().protocol.wire;
  }
  made.is_cut_short = own.has_cut_short();
  return cache_->bounds.insert_or_assign(key, std::move(made)).first->second;
}

const std::string& Study::possible_instead(const Query& query, const Machine& machine) {
  const Cache::RootKey key{&machine, query.collective, query.root, query.in_place};
  const auto [known, is_new] = cache_->instead.try_emplace(key);
  if (is_new) known->second = possible_here(machine, query);
  return known->second;
}

void Study::require_room(const Query& query) {
  if (is_chooser(query.algorithm)) return;
  Machine& machine = this->machine(query);
  const std::shared_ptr<const Prepared> held = prepare(query, machine);
  const Prepared& prepared = *held;
  if (prepared.skipped || prepared.is_wrong()) return;
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  backend_.require_room(
      *prepared.whole, {machine.router.get(), machine.placement, prepared.rotation.get()}, options);
}

bool Study::simulates(const Query& query) const {
  return simulator_ != nullptr && !query.topology.empty();
}

/// The question that is left when libraries, choosers, files and simulations have decided what the
/// query leaves open; nothing where it leaves nothing open, or nothing applies.
std::optional<Query> Study::decide(const Query& query, const Machine& machine) {
  if (auto decided = decided_by_library(query, machine)) return decided;
  if (is_chooser(query.algorithm)) return resolve(query);
  const AlgorithmChoice& asked = choice(query.algorithm);
  if (auto stated = under_stated_protocol(query, asked, machine)) return stated;
  const bool is_open = !open_parameters(asked).empty() || is_portfolio(asked);
  return simulates(query) && is_open ? resolve(query) : std::nullopt;
}

/// NCCL is asked about the question as a whole: what decides the rest of it, such as a version of
/// NCCL itself, is what is compared.
Outcome Study::ask(const Query& query) {
  check_interruption();
  ++asked_;
  // A search takes all the time that there is: NCCL comes first.
  const auto nccl = query.against_nccl ? baseline_query(query) : std::nullopt;
  const bool hurries = nccl && simulator_ == &backend_ && std::isfinite(time_left_s());
  const bool is_early =
      hurries && time_left_s() > 0 && Forecasts(*this).of(*nccl).takes_s <= time_left_s();
  if (is_early) {
    const TimeLimit share = TimeLimit::share_of_rest(2);
    baseline(query);
  }
  const TimeLimit own(std::numeric_limits<double>::infinity());
  Outcome outcome = answer(query);
  if (outcome.ran()) outcome.budget = own.granted();
  if (!query.against_nccl || !outcome.report.simulated) return outcome;
  outcome.nccl_left_out = hurries && !is_early;
  if (!outcome.nccl_left_out) outcome.nccl = baseline(query);
  return outcome;
}

void Study::make_room() { cache_->forget_machines_if_large(); }

Outcome Study::answer(const Query& query) {
  Machine& machine = this->machine(query);
  Outcome outcome;
  outcome.query = query;
  outcome.backend = backend_.name();
  outcome.profile = profile_word(query.profile).runtime;
  outcome.ranks = machine.ranks();
  if (const auto decided = decide(query, machine)) {
    outcome = answer(*decided);
    outcome.query = query;
    if (decided->algorithm != query.algorithm) outcome.chosen = decided->algorithm;
    return outcome;
  }
  if (is_chooser(query.algorithm)) {
    outcome.skipped = "none of the algorithms is possible here";
    return outcome;
  }
  const BlockProgram* const blocks = interpreted_blocks(query, machine);
  if (blocks != nullptr) {
    const auto why = why_not_used(*choice(query.algorithm).file->foreign, machine, query);
    if (why) return ask_library(query, *why);
  }
  std::shared_ptr<Prepared> held = prepare(query, machine);
  if (held->rounds_left_out > 0) {
    predict(query);  // until it has rounds enough
    held = prepare(query, machine);
  }
  Prepared& prepared = *held;
  outcome.skipped = prepared.skipped;
  outcome.instead = prepared.is_unroutable ? possible_instead(query, machine) : prepared.instead;
  if (outcome.skipped) return outcome;
  outcome.program_note = join(prepared.notes, "; ");
  if (prepared.is_wrong()) {
    outcome.problems = prepared.uncut->verdict->problems;
    return outcome;
  }
  if (blocks != nullptr) return ask_blocks(query, *blocks, machine, prepared, std::move(outcome));
  if (!cut_and_verify(query, prepared, outcome)) return outcome;
  std::size_t runtime = 0;
  const bool may_be_stuck = machine.router->profile().fifo_steps > 0;
  if (simulates(query) && (may_be_stuck || !machine.other_runtimes.empty())) {
    const Prediction prediction = predict(query);
    outcome.skipped = prediction.skipped;
    if (outcome.skipped) return outcome;
    runtime = prediction.runtime;
    add_note(outcome, prediction.note);
  }
  return run(query, machine, prepared, runtime, std::move(outcome));
}

/// The program that the outcome has by now, unless a search has simulated just that.
Outcome Study::run(const Query& query, Machine& machine, Prepared& prepared, std::size_t runtime,
                   Outcome outcome) {
  const Router& router = machine.runtime(runtime);
  outcome.protocol = router.profile().protocol.name;
  const Target target{&router, machine.placement, prepared.rotation.get()};
  // The simulator asks for routes alone: pieces share them with the whole, and sizes change none.
  if (simulator_ != &backend_ || !prepared.simulable.contains(runtime)) {
    outcome.skipped = backend_.unsupported(*outcome.program, target);
    if (outcome.skipped) return outcome;
    prepared.simulable.insert(runtime);
  }
  RunOptions options = options_of(query, machine, router, prepared, *outcome.program);
  const bool is_together = options.starts_s.empty();
  if (const RunReport* known = is_together ? simulated_before(query, prepared, runtime) : nullptr) {
    outcome.report = *known;
  } else {
    if (!put_on_blocks(query, target, options, outcome)) return outcome;
    outcome.report = backend_.run(*outcome.program, target, options);
    if (is_unsteady(outcome.report)) {  // ranks that begin one after the other take longer to be
      cache_->build_more_rounds(query, machine);
      return answer(query);
    }
  }
  rate(query, machine, router, prepared, outcome);
  return outcome;
}

/// How the back end runs the program.
RunOptions Study::options_of(const Query& query, const Machine& machine, const Router& router,
                             const Prepared& prepared, const Program& program) {
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.blocks = prepared.blocks;
  options.only_times = query.only_times;
  options.details = !query.only_times || query.run.timeline;
  options.more_rounds = prepared.rounds_left_out;
  if (&program == prepared.whole.get()) options.found = prepared.uncut->found;
  options.starts_s = starts_of(machine, router, query, program, prepared.rotation.get());
  return options;
}

/// What follows from the report: what a benchmark prints, how far off it may be, and how near the
/// bound.
void Study::rate(const Query& query, Machine& machine, const Router& router,
                 const Prepared& prepared, Outcome& outcome) {
  if (outcome.report.simulated) {
    outcome.library_version = query.library_version;
    outcome.benchmark_s = benchmark_of(machine, router, outcome);
    outcome.error = error_of(machine, router, prepared.choice, prepared.links, outcome);
  }
  if (query.judge) judge(query, machine, prepared, outcome);
}

/// What a search for the best chunks found out about the question, where it is the same simulation.
const RunReport* Study::simulated_before(const Query& query, const Prepared& prepared,
                                         std::size_t runtime) const {
  const auto known = prepared.fastest.find(query.size_bytes);
  const bool is_simulation = simulator_ == &backend_ && !query.run.timeline && query.merge &&
                             query.run.engine != SimEngine::simgrid && !query.run.limits;
  if (!is_simulation || known == prepared.fastest.end()) return nullptr;
  const auto& [chunking, its_runtime, report, has_details] = known->second;
  if (!has_details && !query.only_times) return nullptr;
  return its_runtime == runtime && chunking == prepared.chosen ? &report : nullptr;
}

/// The program as it is to be run. False when the verifier refuses it.
bool Study::cut_and_verify(const Query& query, Prepared& prepared, Outcome& outcome) {
  const std::int64_t chunk_bytes = choose_chunk(query, prepared, outcome);
  const std::int64_t max_ops = prepared.max_ops(query.chunk_bytes.has_value());
  const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes, max_ops);
  prepared.chosen = chunking;
  KeptProgram& cut = prepared.cut(chunking);
  if (!leaves_whole(chunking)) {
    outcome.chunk_bytes =
        std::max(chunk_bytes, largest_piece_bytes(*cut.program, query.size_bytes));
  }
  if (query.chunk_bytes && chunking != prepared.chunking(query.size_bytes, chunk_bytes, kAnyOps)) {
    outcome.chunk_note = chunk_note_raised(*query.chunk_bytes, outcome.chunk_bytes, max_ops);
  }
  // What `chunk` makes of a right program is right (ir/chunk.cpp), so for a simulation the verdict
  // on the whole one will do. Where data is moved, what moves it is verified itself.
  const Verification& verdict = verdict_on(simulator_ == &backend_ ? *prepared.uncut : cut);
  outcome.program = cut.program;
  // A timeline names every op that is run.
  const bool is_written_out = query.run.timeline && prepared.groups() > 1;
  if (is_written_out) outcome.program = std::make_shared<const Program>(unfold(*cut.program));
  outcome.verified = verdict.ok();
  outcome.order_consistent = verdict.order_consistent;
  outcome.problems = verdict.problems;
  return outcome.verified;
}

/// The program as it is run: as many lanes as there are blocks. False when the verifier refuses it.
bool Study::put_on_blocks(const Query& query, const Target& target, RunOptions& options,
                          Outcome& outcome) {
  if (!query.merge) {
    if (auto problem = too_many_lanes(*outcome.program, target)) {
      const auto& file = choice(query.algorithm).file;
      if (file && problem->where.line > 0) problem->where.file = file->path;
      throw Error(ErrorKind::usage, {std::move(*problem)});
    }
  }
  if (simulator_ == nullptr || query.topology.empty()) return true;
  // A simulation puts lanes onto blocks as it goes.
  if (simulator_ == &backend_ && !query.run.timeline) return true;
  std::optional<Program> merged = simulator_->on_blocks(*outcome.program, target, options);
  if (!merged) return true;
  Verification verification = verify(*merged);
  outcome.program = std::make_shared<const Program>(std::move(*merged));
  options.found = nullptr;
  outcome.verified = verification.ok();
  outcome.problems = std::move(verification.problems);
  return outcome.verified;
}

void Study::judge(const Query& query, Machine& machine, const Prepared& prepared,
                  Outcome& outcome) {
  outcome.bound_links = prepared.links.scope;
  outcome.bound_helpers = prepared.whole->hosts > 0;
  outcome.bound_relays =
      prepared.choice.algorithm->uses_relays && !machine.placement.relays.empty();
  const Limits& known = limits(query, machine, prepared);
  outcome.bound = known.bandwidth;
  const auto bytes = static_cast<double>(outcome.report.message_bytes);
  outcome.time_bound = *std::ranges::min_element(known.times, {}, [&](const TimeBound& bound) {
    return bound.least_s(bytes, known.bandwidth);
  });
  if (outcome.report.time_s > 0) outcome.fraction = outcome.least_s() / outcome.report.time_s;
}

}  // namespace espalier

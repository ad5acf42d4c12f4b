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
#include "core/check.h"
#include "core/words.h"
#include "formats/machine.h"
#include "nccl/version.h"
#include "run/blocks.h"
#include "scenarios/benchmark.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "scenarios/interpreted.h"
#include "scenarios/study_cache.h"
#include "scenarios/tuner.h"
#include "topologies/launch_costs.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

/// If there is no machine, one that can do everything takes its place; only its shape matters then.
std::string machine_spec(const Query& query) {
  return query.topology.empty() ? fmt::format("full:n={},host_gbps=25", query.ranks)
                                : query.topology;
}

/// Programs with many more lanes than the profile has blocks are not weighed against others: lanes
/// that share a block wait for each other.
constexpr int kMaxLanesPerBlock = 3;

constexpr double kAnyTime = std::numeric_limits<double>::infinity();

/// Plans that take no more than this many times the time of the best are tried in all their forms.
constexpr double kNearBest = 1.25;

bool crowds_blocks(const Program& program, const Profile& profile) {
  if (profile.blocks == 0) return false;
  return std::ranges::max(moving_lanes(program)) > kMaxLanesPerBlock * profile.blocks;
}

/// Pieces of an executing back end when no machine is named that could be simulated.
constexpr std::int64_t kUnguidedPieceBytes = std::int64_t{1} << 20;
}  // namespace

Study::Study(Backend& backend, Backend* simulator, std::int64_t search_work)
    : backend_(backend),
      simulator_(simulator),
      search_work_(search_work),
      cache_(std::make_unique<Cache>()) {}
Study::~Study() = default;

void Study::know_machine(const std::string& name, Topology machine) {
  cache_->topologies[name] = std::make_shared<const Topology>(std::move(machine));
  cache_->given.insert(name);
}

Machine& Study::machine(const Query& query) {
  Machine& machine = load(query);
  if (query.root < 0 || query.root >= machine.ranks()) {
    throw Error(ErrorKind::usage,
                fmt::format("root {} is not one of the {} ranks", query.root, machine.ranks()),
                fmt::format("0 to {}", machine.ranks() - 1));
  }
  return machine;
}

Machine& Study::load(const Query& query) {
  const std::string spec = machine_spec(query);
  const Cache::MachineKey key{spec, query.gpus, query.relays, query.profile, query.links};
  if (const auto known = cache_->machines.find(key); known != cache_->machines.end()) {
    return known->second;
  }
  Machine made;
  made.topology = topology(query);
  made.is_sized_by_ranks = cache_->given.contains(spec);
  made.router =
      std::make_unique<Router>(*made.topology, made.topology->profile(query.profile), query.links);
  made.placement = place_ranks(*made.router, query.gpus, query.relays);
  const Profile& in_use = made.router->profile();
  if (const auto gpu = lacking_gpu(in_use.protocol, *made.topology, made.placement)) {
    const Node& node = made.topology->node(*gpu);
    throw Error(ErrorKind::usage,
                fmt::format("{} ({}) cannot use protocol {} of profile {}", node.name, node.model,
                            in_use.protocol.name, profile_word(query.profile).runtime),
                "leave the protocol open, or name another one");
  }
  for (const std::string& open : made.topology->open_profiles(query.profile)) {
    const Profile profile = made.topology->profile(open);
    if (profile.protocol.name == made.router->profile().protocol.name) continue;
    if (lacking_gpu(profile.protocol, *made.topology, made.placement)) continue;
    made.other_runtimes.push_back(std::make_unique<Router>(*made.topology, profile, query.links));
  }
  require_connected(made, query);
  return cache_->machines.emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const Topology> Study::topology(const Query& query) {
  const std::string spec = machine_spec(query);
  auto& topology = cache_->topologies[spec];
  if (!topology) topology = std::make_shared<const Topology>(open_machine(spec));
  return topology;
}

int Study::ranks(const Query& query) {
  return static_cast<int>(chosen_gpus(*topology(query), query.gpus).size());
}

std::vector<std::string> Study::applicable(Collective collective) {
  std::vector<std::string> names;
  for (const Algorithm* algorithm : all_algorithms()) {
    if (std::ranges::count(algorithm->collectives, collective) > 0) {
      names.push_back(algorithm->name);
    }
  }
  return names;
}

Study::Prepared& Study::prepare(const Query& query, Machine& machine) {
  const Cache::ProgramKey key = cache_->program_key(query, machine);
  if (const auto known = cache_->programs.find(key); known != cache_->programs.end()) {
    return known->second;
  }
  cache_->forget_programs_if_large();
  Prepared made;
  made.choice = choice(query.algorithm);
  Built built =
      build_on(machine, made.choice, query, [&](const BuildRequest& request) -> const Forest& {
        return cache_->plan(machine, made.choice, request);
      });
  made.skipped = std::move(built.why_not);
  made.is_unroutable = built.is_routing;
  made.instead = std::move(built.instead);
  if (!made.skipped) {
    made.whole = std::move(built.program);
    made.notes = std::move(built.notes);
    if (is_library(made.choice)) {
      made.blocks = library_call(made.choice, request_for(query, machine)).blocks;
    }
    made.uncut = {made.whole, std::move(built.verification)};
  }
  if (!made.skipped && !made.is_wrong()) {
    made.longest_transfer = longest_transfer_units(*made.whole);
    made.links = links_used(*made.whole, machine);
    const Protocol& protocol = machine.router->profile().protocol;
    if (made.links.over_host && !protocol.over_host_links) {
      made.skipped = fmt::format(
          "protocol {} needs the GPU fabric or a network between GPUs, and "
          "these transfers cross a host's links",
          protocol.name);
    }
  }
  return cache_->programs.emplace(key, std::move(made)).first->second;
}

const AlgorithmChoice& Study::choice(const std::string& algorithm) {
  return cache_->choice(algorithm);
}

std::vector<std::string> Study::explain(const Query& query) {
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return {};
  const BuildRequest request = request_for(query, machine(query));
  std::vector<std::string> lines = split(espalier::explain(library_choice(query), request), '\n');
  std::erase(lines, "");
  return lines;
}

std::string Study::profile(const Query& query) {
  const std::string named = profile_word(query.profile).runtime;
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return named;
  const std::string library = topology(query)->profile(query.profile).library;
  return library.empty() ? named : library;
}

/// A library with what the query says of it elsewhere than in its parameters.
AlgorithmChoice Study::library_choice(const Query& query) {
  AlgorithmChoice asked = choice(query.algorithm);
  const auto force = [&](const std::string& parameter, const std::string& value) {
    if (value.empty() || asked.parameters.contains(parameter)) return;
    const std::string separator = asked.parameters.empty() ? ":" : ",";
    asked = choice(spec_of(asked) + separator + parameter + "=" + value);
  };
  force("proto", profile_word(query.profile).protocol);
  force("version",
        query.library_version == 0 ? "" : version_text(nearest_nccl(query.library_version)));
  return asked;
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

/// What a library decides about the query: its choice in full, under the profile that it runs
/// under. Nothing where the query says all that already, names no library, or one that can't.
std::optional<Query> Study::decided_by_library(const Query& query, const Machine& machine) {
  if (is_chooser(query.algorithm) || !is_library(choice(query.algorithm))) return std::nullopt;
  const AlgorithmChoice asked = library_choice(query);
  const BuildRequest request = request_for(query, machine);
  if (unsupported(asked, request)) return std::nullopt;
  const LibraryCall call = library_call(asked, request);
  Query concrete = query;
  concrete.algorithm = spec_of(decided(asked, call));
  concrete.profile = profile(query);
  const Profile runtime = machine.topology->profile(concrete.profile);
  if (std::ranges::count(runtime.protocols, call.protocol, &Protocol::name) > 0) {
    concrete.profile += ":" + call.protocol;
  }
  concrete.chunk_bytes = 0;
  concrete.library_version = call.version;
  const bool is_same = concrete.algorithm == query.algorithm && concrete.profile == query.profile;
  return is_same ? std::nullopt : std::optional(concrete);
}

const Study::Limits& Study::limits(const Query& query, Machine& machine, const Prepared& prepared) {
  const auto& [links, through_gpus, over_host, in_switch] = prepared.links;
  const bool helpers = prepared.whole->hosts > 0;
  const bool relays = prepared.choice.algorithm->uses_relays;
  const Cache::BoundKey key{&machine, query.collective, query.root,  links,
                            helpers,  relays,           through_gpus};
  if (const auto known = cache_->bounds.find(key); known != cache_->bounds.end()) {
    return known->second;
  }
  const Router* router = machine.router.get();
  if (links != query.links) {
    router = &cache_->other_routers
                  .try_emplace({&machine, links}, *machine.topology, router->profile(), links)
                  .first->second;
  }
  Placement placement = machine.placement;
  if (!relays) placement.relays.clear();
  Limits made{
      bandwidth_bound(query.collective, query.root, *router, placement, {.helpers = helpers}), {}};
  for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
    const Profile& profile = machine.runtime(runtime).profile();
    const Router of_runtime(*machine.topology, profile, links);
    made.times.push_back(time_bound(query.collective, query.root, of_runtime, placement,
                                    {.through_gpus = through_gpus}));
    made.times.back().wire = profile.protocol.wire / router->profile().protocol.wire;
  }
  return cache_->bounds.emplace(key, std::move(made)).first->second;
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
  const Prepared& prepared = prepare(query, machine);
  if (prepared.skipped || prepared.is_wrong()) return;
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  backend_.require_room(*prepared.whole, {machine.router.get(), machine.placement}, options);
}

bool Study::simulates(const Query& query) const {
  return simulator_ != nullptr && !query.topology.empty();
}

/// The question that is left when libraries, choosers and simulations have decided what the query
/// leaves open; nothing where it leaves nothing open, or nothing applies.
std::optional<Query> Study::decide(const Query& query, const Machine& machine) {
  if (auto decided = decided_by_library(query, machine)) return decided;
  if (is_chooser(query.algorithm)) return resolve(query);
  const AlgorithmChoice& asked = choice(query.algorithm);
  const bool is_open = !open_parameters(asked).empty() || is_portfolio(asked);
  return simulates(query) && is_open ? resolve(query) : std::nullopt;
}

/// NCCL is asked about the question as a whole: what decides the rest of it, such as a version of
/// NCCL itself, is what is compared.
Outcome Study::ask(const Query& query) {
  Outcome outcome = answer(query);
  if (query.against_nccl && outcome.report.simulated) outcome.nccl = baseline(query);
  return outcome;
}

Outcome Study::answer(const Query& query) {
  Machine& machine = this->machine(query);
  Outcome outcome;
  outcome.query = query;
  outcome.backend = backend_.name();
  outcome.profile = profile_word(query.profile).runtime;
  outcome.ranks = machine.ranks();
  if (const std::optional<Query> decided = decide(query, machine)) {
    outcome = answer(*decided);
    outcome.query = query;
    outcome.chosen = decided->algorithm;
    return outcome;
  }
  if (is_chooser(query.algorithm)) {
    outcome.skipped = "none of the algorithms is possible here";
    return outcome;
  }
  const BlockProgram* const blocks = interpreted_blocks(query, machine);
  if (blocks != nullptr) {
    if (const auto why = why_not_used(*blocks, machine, query)) return ask_library(query, *why);
  }
  Prepared& prepared = prepare(query, machine);
  outcome.skipped = prepared.skipped;
  outcome.instead = prepared.is_unroutable ? possible_instead(query, machine) : prepared.instead;
  if (outcome.skipped) return outcome;
  outcome.program_note = join(prepared.notes, "; ");
  if (prepared.is_wrong()) {
    outcome.problems = prepared.uncut.verification->problems;
    return outcome;
  }

  if (blocks != nullptr) return ask_blocks(query, *blocks, machine, prepared, std::move(outcome));

  const Program* program = cut_and_verify(query, prepared, outcome);
  if (program == nullptr) return outcome;
  std::size_t runtime = 0;
  const bool may_be_stuck = machine.router->profile().fifo_steps > 0;
  if (simulates(query) && (may_be_stuck || !machine.other_runtimes.empty())) {
    const Prediction prediction = predict(query);
    outcome.skipped = prediction.skipped;
    if (outcome.skipped) return outcome;
    runtime = prediction.runtime;
  }
  const Router& router = machine.runtime(runtime);
  outcome.protocol = router.profile().protocol.name;
  const Target target{&router, machine.placement};
  outcome.skipped = backend_.unsupported(*program, target);
  if (outcome.skipped) return outcome;
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.blocks = prepared.blocks;
  if (!put_on_blocks(query, target, options, outcome)) return outcome;
  outcome.report = backend_.run(*outcome.program, target, options);
  rate(query, machine, router, prepared, outcome);
  return outcome;
}

/// What follows from the report: what a benchmark prints, how far off it may be, and how near the
/// bound.
void Study::rate(const Query& query, Machine& machine, const Router& router,
                 const Prepared& prepared, Outcome& outcome) {
  if (outcome.report.simulated) {
    outcome.library_version = query.library_version;
    outcome.benchmark_s = benchmark_of(machine, router, outcome);
    outcome.error = error_of(machine, router, prepared.links, outcome);
  }
  if (query.judge) judge(query, machine, prepared, outcome);
}

/// Once for a message. What the library cannot do here has no time.
std::optional<Baseline> Study::baseline(const Query& query) {
  const std::optional<Query> asked = baseline_query(query);
  if (!asked) return std::nullopt;
  try {
    return baseline_of(*asked);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return std::nullopt;
  }
}

const std::optional<Baseline>& Study::baseline_of(const Query& asked) {
  const Cache::BaselineKey key{&machine(asked), asked.collective, asked.root,
                               asked.in_place,  asked.size_bytes, asked.library_version};
  const auto [known, is_new] = cache_->baselines.try_emplace(key);
  if (!is_new) return known->second;
  const Outcome outcome = ask(asked);
  if (!outcome.ran()) return known->second;
  known->second = {outcome.report.time_s, outcome.chosen.empty() ? asked.algorithm : outcome.chosen,
                   outcome.library_version, outcome.error->relative};
  return known->second;
}

/// The program as it is to be run; null when the verifier refuses it.
const Program* Study::cut_and_verify(const Query& query, Prepared& prepared, Outcome& outcome) {
  const std::int64_t chunk_bytes = choose_chunk(query, prepared, outcome);
  const std::int64_t max_ops = max_ops_when_cut(*prepared.whole, query.chunk_bytes.has_value());
  const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes, max_ops);
  Cut& cut = prepared.cut(chunking);
  if (!leaves_whole(chunking)) {
    outcome.chunk_bytes =
        std::max(chunk_bytes, largest_piece_bytes(*cut.program, query.size_bytes));
  }
  if (query.chunk_bytes && chunking != prepared.chunking(query.size_bytes, chunk_bytes, kAnyOps)) {
    outcome.chunk_note = chunk_note_raised(*query.chunk_bytes, outcome.chunk_bytes, max_ops);
  }
  if (!cut.verification) cut.verification = verify(*cut.program);
  outcome.program = cut.program;
  outcome.verified = cut.verification->ok();
  outcome.order_consistent = cut.verification->order_consistent;
  outcome.problems = cut.verification->problems;
  return outcome.verified ? cut.program.get() : nullptr;
}

/// The program as it is run: as many lanes as there are blocks. False when the verifier refuses it.
bool Study::put_on_blocks(const Query& query, const Target& target, const RunOptions& options,
                          Outcome& outcome) {
  if (!query.merge) {
    if (auto problem = too_many_lanes(*outcome.program, target)) {
      const auto& file = choice(query.algorithm).file;
      if (file && problem->where.line > 0) problem->where.file = file->path;
      throw Error(ErrorKind::usage, {std::move(*problem)});
    }
  }
  if (simulator_ == nullptr || query.topology.empty()) return true;
  std::optional<Program> merged = simulator_->on_blocks(*outcome.program, target, options);
  if (!merged) return true;
  Verification verification = verify(*merged);
  outcome.program = std::make_shared<const Program>(std::move(*merged));
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

// What the simulator is asked before a question is answered: chunk sizes and weighed parameters.

/// Those that can carry out a program: protocols that the machine's GPUs and links have.
std::vector<std::size_t> Study::runtimes(const Machine& machine, const Prepared& prepared) const {
  std::vector<std::size_t> usable = {0};
  for (std::size_t other = 1; other <= machine.other_runtimes.size(); ++other) {
    const Profile& profile = machine.runtime(other).profile();
    if (prepared.links.over_host && !profile.protocol.over_host_links) continue;
    if (prepared.links.in_switch && profile.in_switch.empty()) continue;
    usable.push_back(other);
  }
  return usable;
}

/// As it is: weighed parameters left open have their defaults. Under every runtime that can be the
/// fastest one: links carry the same under all of them, times the bytes on the wire.
Prediction Study::simulate(const Query& query, Machine& machine) {
  const BlockProgram* const blocks = interpreted_blocks(query, machine);
  if (blocks != nullptr && why_not_used(*blocks, machine, query)) {
    Prediction own = predict(by_library(query));
    own.algorithm = query.algorithm;
    own.runtime = 0;
    return own;
  }
  Prepared& prepared = prepare(query, machine);
  if (prepared.skipped) return {prepared.skipped};
  if (prepared.is_wrong()) {
    const Diagnostic& problem = prepared.uncut.verification->problems.front();
    return {fmt::format("the verifier refuses the program: {} ({}:{})", problem.message,
                        problem.where.file, problem.where.line)};
  }
  if (blocks != nullptr) return simulate_blocks(query, *blocks, machine, prepared);
  Met met;
  Prediction best = simulate(query, machine, prepared, 0, kAnyTime, met);
  const double wire = machine.router->profile().protocol.wire;
  for (const std::size_t runtime : runtimes(machine, prepared)) {
    const Profile& profile = machine.runtime(runtime).profile();
    const double least_s = profile.call_overhead_s + met.busy_s * profile.protocol.wire / wire;
    if (runtime == 0 || least_s >= best.best.time_s) continue;
    Met unused;
    const Prediction other = simulate(query, machine, prepared, runtime, best.best.time_s, unused);
    if (shorter(other.best.time_s, best.best.time_s)) best = other;
  }
  if (std::isinf(best.best.time_s)) {
    best.skipped = met.stuck;
  }
  return best;
}

Prediction Study::simulate(const Query& query, Machine& machine, Prepared& prepared,
                           std::size_t runtime, double at_most_s, Met& met) {
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.blocks = prepared.blocks;
  options.timeline = false;
  const std::int64_t max_ops = max_ops_when_cut(*prepared.whole, query.chunk_bytes.has_value());
  const Target target{&machine.runtime(runtime), machine.placement};
  const auto with_pieces = [&](std::int64_t chunk_bytes, const SimLimits& limits) {
    options.limits = limits;
    const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes, max_ops);
    RunReport report = simulator_->run(*prepared.cut(chunking).program, target, options);
    for (const LinkUse& link : report.simulated->links) {
      if (link.is_link) met.busy_s = std::max(met.busy_s, link.busy_s);
    }
    if (report.simulated->end == SimEnd::stuck) met.stuck = report.simulated->stuck;
    return report;
  };
  if (!query.chunk_bytes && prepared.choice.algorithm->pipelined) {
    return {
        {},
        query.algorithm,
        runtime,
        search_chunk({query.size_bytes, longest_share(*prepared.whole), search_work_, at_most_s},
                     with_pieces)};
  }
  const std::int64_t asked_bytes = query.chunk_bytes.value_or(0);
  const RunReport report = with_pieces(asked_bytes, {.time_s = at_most_s});
  const bool is_cut = !leaves_whole(prepared.chunking(query.size_bytes, asked_bytes, max_ops));
  const bool is_done = report.simulated->end == SimEnd::finished;
  const double time_s = is_done ? report.time_s : std::numeric_limits<double>::infinity();
  return {{},
          query.algorithm,
          runtime,
          {is_cut ? asked_bytes : 0, {}, time_s, is_done ? report.algbw_gbps() : 0}};
}

/// The plan itself and the rest of the catalogue: the fastest.
Prediction Study::predict_portfolio(const Query& query) {
  AlgorithmChoice itself = choice(query.algorithm);
  itself.parameters[std::string(kPlanItself)] = 1;
  std::vector<std::string> candidates = {spec_of(itself)};
  for (const std::string& name : applicable(query.collective)) {
    // A library is not in the portfolio, but what it is compared with.
    if (name != itself.algorithm->name && !is_library(choice(name))) candidates.push_back(name);
  }
  const auto best = choose_algorithm(*this, query, candidates);
  if (best) return best->prediction;
  Query asked = query;
  asked.algorithm = candidates.front();
  return predict(asked);
}

/// What plans there are, and then how those near the best are written: both matter, and a plan that
/// is a little slower as it is usually written may be the fastest when it is written otherwise.
/// Values that make the same program are tried once.
Prediction Study::weigh(const Query& query, Machine& machine) {
  AlgorithmChoice choice = this->choice(query.algorithm);
  const std::vector<const AlgorithmParameter*> open = open_parameters(choice);
  for (const AlgorithmParameter* parameter : open) {
    choice.parameters[parameter->name] = parameter->default_value;
  }
  std::vector<std::shared_ptr<const Program>> tried;
  std::optional<Prediction> best;
  const auto time_of = [&](const AlgorithmChoice& one) {
    Query asked = query;
    asked.algorithm = spec_of(one);
    const Prepared& prepared = prepare(asked, machine);
    const auto is_same = [&](const auto& program) {
      return same_program(*program, *prepared.whole);
    };
    if (prepared.whole && std::ranges::any_of(tried, is_same)) return kAnyTime;
    const bool is_crowded = prepared.whole && !tried.empty() &&
                            crowds_blocks(*prepared.whole, machine.router->profile());
    if (is_crowded) return kAnyTime;
    if (prepared.whole) tried.push_back(prepared.whole);
    const Prediction made = predict(asked);
    const bool is_better =
        !made.skipped && (!best || best->skipped || shorter(made.best.time_s, best->best.time_s));
    if (!best || is_better) best = made;
    return made.skipped ? kAnyTime : made.best.time_s;
  };
  // One after the other, those before at their best.
  std::vector<std::pair<double, AlgorithmChoice>> plans = {{time_of(choice), choice}};
  for (const AlgorithmParameter* parameter : open) {
    if (!parameter->of_plan) continue;
    const AlgorithmChoice base =
        std::ranges::min_element(plans, {}, [](const auto& one) { return one.first; })->second;
    for (const std::int64_t value : parameter->tried) {
      AlgorithmChoice other = base;
      other.parameters[parameter->name] = value;
      plans.emplace_back(time_of(other), other);
    }
  }
  const double best_s = best->best.time_s;
  for (const auto& [time_s, plan] : plans) {
    if (time_s > kNearBest * best_s) continue;
    for (const AlgorithmParameter* parameter : open) {
      if (parameter->of_plan) continue;
      for (const std::int64_t value : parameter->tried) {
        AlgorithmChoice other = plan;
        other.parameters[parameter->name] = value;
        time_of(other);
      }
    }
  }
  return *best;
}

Prediction Study::predict(const Query& query) {
  CHECK(simulator_ != nullptr && !query.topology.empty());
  Machine& machine = this->machine(query);
  if (const std::optional<Query> decided = decided_by_library(query, machine)) {
    Prediction made = predict(*decided);
    made.algorithm = query.algorithm;
    return made;
  }
  auto& known = cache_->predictions[{cache_->program_key(query, machine), query.chunk_bytes}];
  if (const auto found = known.find(query.size_bytes); found != known.end()) return found->second;
  const AlgorithmChoice& asked = choice(query.algorithm);
  const bool is_open = !open_parameters(asked).empty();
  const Prediction made = is_portfolio(asked) ? predict_portfolio(query)
                          : is_open           ? weigh(query, machine)
                                              : simulate(query, machine);
  return known.emplace(query.size_bytes, made).first->second;
}

double Study::shortest_time_s(const Query& query) {
  const auto known =
      cache_->predictions.find({cache_->program_key(query, machine(query)), query.chunk_bytes});
  double least_s = 0;
  if (known == cache_->predictions.end()) return least_s;
  for (const auto& [size_bytes, prediction] : known->second) {
    const double share = size_bytes <= query.size_bytes ? 1
                                                        : static_cast<double>(query.size_bytes) /
                                                              static_cast<double>(size_bytes);
    least_s = std::max(least_s, prediction.best.time_s * share);
  }
  return least_s;
}

std::int64_t Study::choose_chunk(const Query& query, const Prepared& prepared, Outcome& outcome) {
  if (query.chunk_bytes) return *query.chunk_bytes;
  if (!prepared.choice.algorithm->pipelined || query.size_bytes == 0) return 0;
  if (simulator_ == nullptr || query.topology.empty()) return kUnguidedPieceBytes;
  const auto ops = static_cast<std::int64_t>(prepared.whole->ops.size());
  if (2 * ops * kWorkPerOp > search_work_) {
    outcome.chunk_note =
        chunk_note_too_costly(largest_piece_bytes(*prepared.whole, query.size_bytes) / 2);
    return 0;
  }
  const Prediction prediction = predict(query);
  outcome.chunk_note = prediction.best.note;
  return prediction.best.chunk_bytes;
}

}  // namespace espalier

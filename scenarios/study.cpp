// SPDX-License-Identifier: Apache-2.0
#include "scenarios/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/words.h"
#include "ir/chunk.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "scenarios/tuner.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// Pieces are larger where a program would have more ops than these.
constexpr std::int64_t kMostOps = 4'000'000;
/// Pieces of an executing back end when no machine is named that could be simulated.
constexpr std::int64_t kUnguidedPieceBytes = std::int64_t{1} << 20;
/// Programs kept between queries, in ops; more than these are forgotten and built again.
constexpr std::size_t kMostKeptOps = std::size_t{1} << 22;

bool leaves_whole(const Chunking& chunking) {
  return chunking.split == 1 && chunking.piece_units == kMaxUnits;
}

/// A root that copies its own whole message says nothing about the pieces others pass on.
std::int64_t longest_transfer_units(const Program& program) {
  std::uint32_t longest = 0;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op,
                      [&](PlaceId, PlaceId) { longest = std::max(longest, op.length); });
  }
  return longest;
}

/// Of the message: the longest transfer.
double longest_share(const Program& program) {
  return static_cast<double>(longest_transfer_units(program)) /
         static_cast<double>(program.contract.units);
}

/// Chunks are larger than asked for where the program would have more than kMostOps ops.
std::int64_t largest_piece_bytes(const Program& program, std::int64_t size_bytes) {
  const double share = longest_share(program);
  // What divides evenly is not to be rounded up because a product of doubles is not exact.
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(size_bytes) * share * (1 - 1e-12)));
}

/// Without a machine, one that can do everything stands in for it: only its shape counts then.
std::string machine_spec(const Query& query) {
  return query.topology.empty() ? fmt::format("full:n={},host_gbps=25", query.ranks)
                                : query.topology;
}

}  // namespace

struct Study::Cut {
  std::shared_ptr<const Program> program;
  std::optional<Verification> verification;
};

/// An algorithm built for a machine.
struct Study::Prepared {
  AlgorithmChoice choice;
  std::optional<std::string> skipped;
  bool is_unroutable = false;  ///< skipped because the machine can't carry the program out
  std::shared_ptr<const Program> whole;
  bool only_fabric = false;
  std::int64_t longest_transfer = 0;
  /// The whole program and the latest way of cutting it.
  Cut uncut;
  Cut latest;
  Chunking latest_chunking;

  Cut& cut(const Chunking& chunking) {
    if (leaves_whole(chunking)) return uncut;
    if (!latest.program || latest_chunking != chunking) {
      latest = {std::make_shared<Program>(chunk(*whole, chunking)), std::nullopt};
      latest_chunking = chunking;
    }
    return latest;
  }

  /// {1, kMaxUnits} whenever nothing has to be cut.
  Chunking chunking(std::int64_t size_bytes, std::int64_t chunk_bytes) const {
    if (chunk_bytes == 0 || size_bytes == 0) return {};
    const Chunking planned =
        plan_chunking(*whole, static_cast<double>(size_bytes), static_cast<double>(chunk_bytes),
                      kMostOps, choice.algorithm->staggered);
    const bool whole_fits = planned.split == 1 && planned.piece_units >= longest_transfer;
    return whole_fits ? Chunking{} : planned;
  }
};

struct Study::Cache {
  using MachineKey =
      std::tuple<std::string, std::vector<int>, std::vector<int>, std::string, LinkScope>;
  using ProgramKey = std::tuple<const Machine*, Collective, int, bool, std::string>;
  /// By the chunk size asked for.
  using PredictionKey = std::pair<ProgramKey, std::optional<std::int64_t>>;
  using TableKey = std::pair<std::string, Collective>;  ///< the file
  using RootKey = std::tuple<const Machine*, Collective, int, bool>;
  using BoundKey = std::tuple<const Machine*, Collective, int, LinkScope, bool, bool>;

  std::map<std::string, std::shared_ptr<const Topology>> topologies;
  std::map<MachineKey, Machine> machines;
  std::map<const Machine*, Router> fabric_routers;
  std::map<ProgramKey, Prepared> programs;
  std::map<PredictionKey, std::map<std::int64_t, Prediction>> predictions;  ///< by message size
  std::map<TableKey, TuningTable> tables;
  std::map<BoundKey, Bound> bounds;
  std::map<RootKey, std::string> instead;

  static ProgramKey program_key(const Query& query, const Machine& machine) {
    return {&machine, query.collective, query.root, query.in_place, query.algorithm};
  }

  /// Called between queries, when nobody holds a reference into `programs`.
  void forget_programs_if_large() {
    std::size_t kept_ops = 0;
    for (const auto& [key, prepared] : programs) {
      if (prepared.whole) kept_ops += prepared.whole->ops.size();
      if (prepared.latest.program) kept_ops += prepared.latest.program->ops.size();
    }
    if (kept_ops > kMostKeptOps) programs.clear();
  }
};

Study::Study(Backend& backend, Backend* simulator, std::int64_t search_work)
    : backend_(backend),
      simulator_(simulator),
      search_work_(search_work),
      cache_(std::make_unique<Cache>()) {}
Study::~Study() = default;

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
  auto& topology = cache_->topologies[spec];
  if (!topology) topology = std::make_shared<const Topology>(load_topology(spec));
  Machine made;
  made.topology = topology;
  made.router = std::make_unique<Router>(*topology, topology->profile(query.profile), query.links);
  made.placement = place_ranks(*made.router, query.gpus, query.relays);
  require_connected(made, query);
  return cache_->machines.emplace(key, std::move(made)).first->second;
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
  const Cache::ProgramKey key = Cache::program_key(query, machine);
  if (const auto known = cache_->programs.find(key); known != cache_->programs.end()) {
    return known->second;
  }
  cache_->forget_programs_if_large();
  Prepared made;
  made.choice = parse_algorithm(query.algorithm);
  Built built = build_on(machine, made.choice, query);
  made.skipped = std::move(built.why_not);
  made.is_unroutable = built.is_routing;
  if (!made.skipped) {
    made.whole = std::move(built.program);
    made.uncut.program = made.whole;
    made.longest_transfer = longest_transfer_units(*made.whole);
    made.only_fabric = uses_only_fabric(*made.whole, machine);
  }
  return cache_->programs.emplace(key, std::move(made)).first->second;
}

Prediction Study::simulate(const Query& query, const Machine& machine, Prepared& prepared) {
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.timeline = false;
  const auto with_pieces = [&](std::int64_t chunk_bytes, const SimLimits& limits) {
    options.limits = limits;
    const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes);
    return simulator_->run(*prepared.cut(chunking).program,
                           {machine.router.get(), machine.placement}, options);
  };
  if (!query.chunk_bytes && prepared.choice.algorithm->pipelined) {
    return {{},
            search_chunk({query.size_bytes, longest_share(*prepared.whole), search_work_},
                         with_pieces)};
  }
  const std::int64_t asked_bytes = query.chunk_bytes.value_or(0);
  const RunReport report = with_pieces(asked_bytes, {});
  const bool is_cut = !leaves_whole(prepared.chunking(query.size_bytes, asked_bytes));
  return {{}, {is_cut ? asked_bytes : 0, {}, report.time_s, report.algbw_gbps()}};
}

Prediction Study::predict(const Query& query) {
  CHECK(simulator_ != nullptr && !query.topology.empty());
  Machine& machine = this->machine(query);
  auto& known = cache_->predictions[{Cache::program_key(query, machine), query.chunk_bytes}];
  if (const auto found = known.find(query.size_bytes); found != known.end()) return found->second;
  Prepared& prepared = prepare(query, machine);
  const Prediction made =
      prepared.skipped ? Prediction{prepared.skipped} : simulate(query, machine, prepared);
  return known.emplace(query.size_bytes, made).first->second;
}

double Study::least_time_s(const Query& query) {
  const auto known =
      cache_->predictions.find({Cache::program_key(query, machine(query)), query.chunk_bytes});
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

const TuningTable* Study::tuning_table(const Query& query) {
  const auto file = tuning_file(query.algorithm);
  if (!file) return nullptr;
  const Cache::TableKey key{*file, query.collective};
  auto known = cache_->tables.find(key);
  if (known == cache_->tables.end()) {
    known = cache_->tables.emplace(key, read_tuning(*file, query.collective)).first;
  }
  const TuningTable& table = known->second;
  if (const int ranks = machine(query).ranks(); table.ranks != ranks) {
    throw Error(ErrorKind::usage,
                fmt::format("the tuning table {} is for {} ranks, not for {}", quote(*file),
                            table.ranks, ranks),
                "espalier tune makes one for these GPUs");
  }
  return &table;
}

/// The query with the algorithm that its chooser names, or nothing when none applies.
std::optional<Query> Study::resolve(const Query& query) {
  Query concrete = query;
  if (const TuningTable* table = tuning_table(query)) {
    const TuningRow& row = table->row_for(query.size_bytes);
    concrete.algorithm = row.algorithm;
    concrete.chunk_bytes = query.chunk_bytes.value_or(row.chunk_bytes);
    return concrete;
  }
  if (simulator_ == nullptr || query.topology.empty()) {
    throw Error(ErrorKind::usage, "auto chooses by simulating a machine, and none is named",
                "--topology names one");
  }
  const auto choice = choose_algorithm(*this, query, tuning_candidates(query.collective));
  if (!choice) return std::nullopt;
  concrete.algorithm = choice->algorithm;  // the prediction of its chunk size is remembered
  return concrete;
}

const Bound& Study::bound(const Query& query, Machine& machine, const Prepared& prepared) {
  const LinkScope links = prepared.only_fabric ? LinkScope::fabric : query.links;
  const bool helpers = prepared.whole->hosts > 0;
  const bool relays = prepared.choice.algorithm->uses_relays;
  const Cache::BoundKey key{&machine, query.collective, query.root, links, helpers, relays};
  if (const auto known = cache_->bounds.find(key); known != cache_->bounds.end()) {
    return known->second;
  }
  const Router* router = machine.router.get();
  if (links != query.links) {
    router =
        &cache_->fabric_routers.try_emplace(&machine, *machine.topology, router->profile(), links)
             .first->second;
  }
  Placement placement = machine.placement;
  if (!relays) placement.relays.clear();
  return cache_->bounds
      .emplace(key, bandwidth_bound(query.collective, query.root, *router, placement,
                                    {.helpers = helpers}))
      .first->second;
}

const std::string& Study::possible_instead(const Query& query, const Machine& machine) {
  const Cache::RootKey key{&machine, query.collective, query.root, query.in_place};
  const auto [known, is_new] = cache_->instead.try_emplace(key);
  if (is_new) known->second = possible_here(machine, query);
  return known->second;
}

Outcome Study::ask(const Query& query) {
  Machine& machine = this->machine(query);
  Outcome outcome;
  outcome.query = query;
  outcome.backend = backend_.name();
  outcome.ranks = machine.ranks();
  if (is_chooser(query.algorithm)) {
    const std::optional<Query> concrete = resolve(query);
    if (!concrete) {
      outcome.skipped = "none of the algorithms is possible here";
      return outcome;
    }
    outcome = ask(*concrete);
    outcome.query = query;
    outcome.chosen = concrete->algorithm;
    return outcome;
  }
  Prepared& prepared = prepare(query, machine);
  outcome.skipped = prepared.skipped;
  if (prepared.is_unroutable) outcome.instead = possible_instead(query, machine);
  if (outcome.skipped) return outcome;

  const std::int64_t chunk_bytes = choose_chunk(query, prepared, outcome);
  const Chunking chunking = prepared.chunking(query.size_bytes, chunk_bytes);
  Cut& cut = prepared.cut(chunking);
  if (!leaves_whole(chunking)) {
    outcome.chunk_bytes =
        std::max(chunk_bytes, largest_piece_bytes(*cut.program, query.size_bytes));
  }
  if (!cut.verification) cut.verification = verify(*cut.program);
  outcome.program = cut.program;
  outcome.verified = cut.verification->ok();
  outcome.order_consistent = cut.verification->order_consistent;
  outcome.problems = cut.verification->problems;
  if (!outcome.verified) return outcome;

  const Target target{machine.router.get(), machine.placement};
  outcome.skipped = backend_.unsupported(*cut.program, target);
  if (outcome.skipped) return outcome;
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  outcome.report = backend_.run(*cut.program, target, options);

  if (query.judge) {
    outcome.bound_links = prepared.only_fabric ? LinkScope::fabric : query.links;
    outcome.bound_helpers = prepared.whole->hosts > 0;
    outcome.bound_relays =
        prepared.choice.algorithm->uses_relays && !machine.placement.relays.empty();
    outcome.bound = bound(query, machine, prepared);
    const double limit = outcome.bound->algbw_gbps;
    if (std::isfinite(limit) && limit > 0) outcome.fraction = outcome.report.algbw_gbps() / limit;
  }
  return outcome;
}

}  // namespace espalier

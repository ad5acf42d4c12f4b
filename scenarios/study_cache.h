// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "core/time_limit.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "scenarios/buildable.h"
#include "scenarios/chunk_search.h"
#include "scenarios/folding.h"
#include "scenarios/kept_programs.h"
#include "scenarios/study.h"
#include "topologies/load.h"

// What a study remembers between queries. Private to this room.

namespace espalier {

/// Programs kept between queries, in ops; more than these are forgotten and built again.
inline constexpr std::size_t kMaxKeptOps = std::size_t{1} << 22;
/// The same of machines, in nodes and links, but for a few; and what counts as many, for what else
/// is known of any.
inline constexpr std::size_t kMaxKeptParts = std::size_t{1} << 16;
inline constexpr std::size_t kPartsOfAny = 256;
inline constexpr std::size_t kMinKeptMachines = 16;

/// Adds the time it lives to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum_s) : sum_s_(sum_s) {}
  ~Stopwatch() {
    sum_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_s_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline bool leaves_whole(const Chunking& chunking) {
  return chunking.split == 1 && chunking.piece_units == kMaxUnits;
}

/// A root that copies its own whole message does not matter for the size of the pieces that others
/// pass on.
inline std::int64_t longest_transfer_units(const Program& program) {
  std::uint32_t longest = 0;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op,
                      [&](PlaceId, PlaceId) { longest = std::max(longest, op.length); });
  }
  return longest;
}

/// Of the message: the longest transfer.
inline double longest_share(const Program& program) {
  return static_cast<double>(longest_transfer_units(program)) /
         static_cast<double>(program.contract.units);
}

/// Chunks are larger than asked for where the program would have too many ops: see
/// max_ops_when_cut.
inline std::int64_t largest_piece_bytes(const Program& program, std::int64_t size_bytes) {
  const double share = longest_share(program);
  // A size that divides evenly must not be rounded up because a product of doubles is inexact.
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(size_bytes) * share * (1 - 1e-12)));
}

/// Of a sum that is kept up to date, the part that is this one's.
class PartOfSum {
 public:
  explicit PartOfSum(std::shared_ptr<std::size_t> sum) : sum_(std::move(sum)) {}
  ~PartOfSum() { set(0); }
  PartOfSum(const PartOfSum&) = delete;
  PartOfSum& operator=(const PartOfSum&) = delete;
  void set(std::size_t part) {
    *sum_ += part - part_;
    part_ = part;
  }

 private:
  std::shared_ptr<std::size_t> sum_;
  std::size_t part_ = 0;
};

/// Whether it was of a program with too few rounds (RunOptions::more_rounds).
inline bool is_unsteady(const RunReport& report) {
  return report.simulated && report.simulated->end == SimEnd::unsteady;
}

/// An algorithm built for a machine.
struct Study::Prepared {
  /// `kept_ops`: see Cache.
  explicit Prepared(std::shared_ptr<std::size_t> kept_ops) : ops(std::move(kept_ops)) {}

  AlgorithmChoice choice;
  std::optional<std::string> skipped;
  bool is_unroutable = false;  ///< skipped because the machine can't carry the program out
  std::string instead;         ///< skipped, and it is known what would fit
  std::shared_ptr<const Program> whole;
  std::vector<std::string> notes;  ///< what to tell about it
  LinksUsed links;
  std::int64_t rounds_left_out = 0;  ///< RunOptions::more_rounds
  /// Of a folded program; null: the ops of all groups are run.
  std::shared_ptr<const Rotation> rotation;
  bool may_be_cut = true;  ///< see espalier::may_be_cut
  std::int64_t longest_transfer = 0;
  BlockUse blocks;
  /// The fastest way of simulating it that was tried for a message, so that who asks for that need
  /// not simulate again.
  struct Simulated {
    Chunking chunking;
    std::size_t runtime = 0;
    RunReport report;
    bool has_details = false;  ///< RunOptions::details
  };
  std::map<std::int64_t, Simulated> fastest;  ///< by size of the message
  std::set<std::size_t> simulable;  ///< runtimes under which the simulator can carry it out
  bool is_cut_short = false;        ///< the time ran out before the plan was known to be the best
  double had_s = 0;                 ///< what there was of it then
  std::int64_t question = 0;        ///< that it was prepared for
  Chunking chosen;                  ///< for the question that is being answered
  std::shared_ptr<KeptProgram> uncut;   ///< the whole program
  std::shared_ptr<KeptProgram> latest;  ///< as it was cut last; null: it was not
  Chunking latest_chunking;
  PartOfSum ops;

  void count_ops() { ops.set(whole->ops.size() + (latest ? latest->program->ops.size() : 0)); }

  /// A program from a file that the verifier refuses: nothing more is to be done with it.
  bool is_wrong() const { return uncut && uncut->verdict && !uncut->verdict->ok(); }

  KeptProgram& cut(const Chunking& chunking) {
    if (leaves_whole(chunking)) return *uncut;
    if (!latest || latest_chunking != chunking) {
      latest = std::make_shared<KeptProgram>();
      latest->program = std::make_shared<const Program>(chunk(*whole, chunking));
      latest_chunking = chunking;
      count_ops();
    }
    return *latest;
  }

  void keep_if_fastest(std::int64_t size_bytes, const Chunking& chunking, std::size_t runtime,
                       const RunReport& report, bool has_details) {
    // Reports of large machines take much memory: then those of a few messages are kept.
    constexpr std::size_t kMostLinks = 50'000;
    const auto known = fastest.find(size_bytes);
    if (known != fastest.end() && known->second.report.time_s <= report.time_s) return;
    if (fastest.size() * report.simulated->links.size() > kMostLinks) fastest.clear();
    fastest.insert_or_assign(size_bytes, Simulated{chunking, runtime, report, has_details});
  }

  std::int64_t groups() const { return groups_run(*whole, rotation.get()); }
  /// How many ops are run at most when it is cut.
  std::int64_t max_ops(bool is_asked) const {
    return max_ops_when_cut(groups() * static_cast<std::int64_t>(whole->ops.size()), is_asked);
  }

  /// {1, kMaxUnits} whenever nothing has to be cut. `most_ops`: how many may be run.
  Chunking chunking(std::int64_t size_bytes, std::int64_t chunk_bytes,
                    std::int64_t most_ops) const {
    if (chunk_bytes == 0 || size_bytes == 0) return {};
    const Chunking planned =
        plan_chunking(*whole, static_cast<double>(size_bytes), static_cast<double>(chunk_bytes),
                      most_ops / groups(), choice.algorithm->staggered);
    const bool whole_fits = planned.split == 1 && planned.piece_units >= longest_transfer;
    return whole_fits ? Chunking{} : planned;
  }
};

/// What no schedule can beat.
struct Study::Limits {
  Bound bandwidth;
  std::vector<TimeBound> times;  ///< by runtime of the machine
  bool is_cut_short = false;     ///< the time ran out before the bandwidth's bound was known
};

struct Study::Cache {
  /// The machine's name, GPUs, relays, the profile and links in scope.
  using MachineKey =
      std::tuple<std::string, std::vector<int>, std::vector<int>, std::string, LinkScope>;
  /// With the size of the message where programs depend on it, 0 elsewhere; and with how ranks
  /// begin, where that decides on whether they are folded; and whether rounds may be left out.
  using ProgramKey = std::tuple<const Machine*, Collective, int, bool, std::string, std::int64_t,
                                bool, LaunchMode, bool>;
  using PlanKey = std::tuple<const Machine*, Collective, int, std::string>;
  /// By the chunk size asked for.
  using PredictionKey = std::pair<ProgramKey, std::optional<std::int64_t>>;
  using TableKey = std::pair<std::string, Collective>;  ///< the file
  using RootKey = std::tuple<const Machine*, Collective, int, bool>;
  using BoundKey = std::tuple<const Machine*, Collective, int, LinkScope, bool, bool, bool>;

  using BaselineKey =
      std::tuple<const Machine*, Collective, int, bool, std::int64_t, int, LaunchMode>;

  explicit Cache(bool is_simulated_) : is_simulated(is_simulated_) {}

  const bool is_simulated;  ///< nothing is executed, so that nobody needs the ops of all ranks
  std::map<std::string, std::shared_ptr<const Topology>> topologies;
  std::set<std::string> given;  ///< those not loaded by name
  std::map<std::string, AlgorithmChoice> choices;
  std::map<MachineKey, Machine> machines;
  using MachineEntry = std::pair<const MachineKey, Machine>;
  /// Some of these, no two of which share ways; the most recently used first. What-ifs mostly go
  /// those of a known machine.
  std::deque<const MachineEntry*> with_own_ways;
  std::map<std::pair<const Machine*, LinkScope>, Router> other_routers;  ///< than its own
  /// A program that does not fold is the same for who wants it folded and who does not.
  std::map<ProgramKey, std::shared_ptr<Prepared>> programs;
  std::shared_ptr<std::size_t> kept_ops = std::make_shared<std::size_t>(0);  ///< of programs
  std::size_t kept_parts = 0;                                                ///< of machines
  struct Plan {
    Forest forest;
    bool is_cut_short = false;
    double had_s = 0;           ///< time there was for it
    std::int64_t question = 0;  ///< that it was made for
  };
  std::map<PlanKey, Plan> plans;
  std::map<PredictionKey, std::map<std::int64_t, Prediction>> predictions;  ///< by message size
  /// Predictions that were cut short: the time that there was, and the question they were for.
  std::map<std::pair<PredictionKey, std::int64_t>, std::pair<double, std::int64_t>> hurried;
  std::map<TableKey, TuningTable> tables;
  std::map<BoundKey, Limits> bounds;
  std::map<RootKey, std::string> instead;
  std::map<BaselineKey, std::optional<Baseline>> baselines;
  std::map<ProgramKey, std::int64_t> rounds_built;  ///< where the first ones were too few
  KeptPrograms kept_programs;

  /// If there is no machine, one that can do everything takes its place; only its shape matters
  /// then.
  static std::string machine_spec(const Query& query);
  static MachineKey machine_key(const Query& query) {
    return {machine_spec(query), query.gpus, query.relays, query.profile, query.links};
  }

  /// What `parse_algorithm` makes of a word, read once.
  const AlgorithmChoice& choice(const std::string& algorithm) {
    auto known = choices.find(algorithm);
    if (known == choices.end()) {
      known = choices.emplace(algorithm, parse_algorithm(algorithm)).first;
    }
    return known->second;
  }

  /// Nothing is asked for that needs every op, or another engine. Ways that a plan names can't be
  /// written out for all groups (unfold).
  bool may_fold(const Query& query) {
    const bool is_planned = choice(query.algorithm).algorithm->folds_of_plan != nullptr;
    const bool is_cut = query.chunk_bytes.value_or(0) > 0;
    if (is_cut && !folds_when_cut(choice(query.algorithm))) return false;
    return is_simulated && query.may_fold && query.run.engine != SimEngine::simgrid &&
           !(query.run.timeline && is_planned);
  }
  bool may_fold(const Query& query, const Machine& machine) {
    return may_fold(query) && (query.only_times || machine.ranks() >= kMinFoldedRanks);
  }

  bool may_leave_out_rounds(const Query& query) const {
    return is_simulated && espalier::may_leave_out_rounds(query);
  }

  /// `folds`: of the program that is folded where that is possible; else with all ops.
  ProgramKey program_key(const Query& query, const Machine& machine, bool folds) {
    const bool by_size = is_library(choice(query.algorithm));
    return {&machine,
            query.collective,
            query.root,
            query.in_place,
            query.algorithm,
            by_size ? query.size_bytes : 0,
            folds,
            folds ? query.launch : LaunchMode::per_gpu,
            by_size && may_leave_out_rounds(query)};
  }
  ProgramKey program_key(const Query& query, const Machine& machine) {
    return program_key(query, machine, may_fold(query, machine));
  }

  /// What is predicted is a time alone.
  PredictionKey prediction_key(Query query, const Machine& machine) {
    query.only_times = true;
    return {program_key(query, machine, may_fold(query)), query.chunk_bytes};
  }

  /// So many of the program's rounds are built as long as nothing else is known.
  std::int64_t enough_rounds(const ProgramKey& key) const {
    const auto known = rounds_built.find(key);
    return known == rounds_built.end() ? kFirstRounds : known->second;
  }
  /// They are too few to see how they go on: the program has more of them when it is prepared anew.
  /// From `kMostRounds` on it has them all: what has not settled by then seldom does.
  void build_more_rounds(const Query& query, const Machine& machine) {
    constexpr std::int64_t kTimes = 4;
    constexpr std::int64_t kMostRounds = 256;
    const ProgramKey whole = program_key(query, machine, /*folds=*/false);
    std::erase_if(programs, [&](const auto& known) {  // however ranks begin
      return known.second->rounds_left_out > 0 && is_same_but_for_folds(known.first, whole);
    });
    const std::int64_t built = enough_rounds(whole);
    rounds_built.insert_or_assign(whole, built < kMostRounds ? kTimes * built : kAllRounds);
  }

  static bool is_same_but_for_folds(ProgramKey a, const ProgramKey& b) {
    constexpr std::size_t kFolds = 6, kLaunch = 7;
    std::get<kFolds>(a) = std::get<kFolds>(b);
    std::get<kLaunch>(a) = std::get<kLaunch>(b);
    return a == b;
  }
  static bool is_same_but_for_size(ProgramKey a, const ProgramKey& b) {
    constexpr std::size_t kSize = 5;
    std::get<kSize>(a) = std::get<kSize>(b);
    return a == b;
  }

  /// The plan that a choice's programs follow. One that was cut short is made again for another
  /// question with more time, and the better one is kept.
  const Forest& plan(const Machine& machine, const AlgorithmChoice& choice,
                     const BuildRequest& request, std::int64_t question) {
    AlgorithmChoice planned = choice;
    for (const AlgorithmParameter& parameter : choice.algorithm->parameters) {
      if (!parameter.of_plan) planned.parameters.erase(parameter.name);
    }
    const PlanKey key{&machine, request.collective, request.root, spec_of(planned)};
    const auto known = plans.find(key);
    const bool is_new = known == plans.end();
    const bool is_better_possible = !is_new && known->second.is_cut_short &&
                                    known->second.question != question &&
                                    time_left_s() > known->second.had_s;
    if (!is_new && !is_better_possible) {
      if (known->second.is_cut_short) note_cut_short();
      return known->second.forest;
    }
    const TimeLimit own(std::numeric_limits<double>::infinity());
    Plan made;
    made.had_s = time_left_s();
    made.question = question;
    made.forest = plan_in_time(choice, request);
    made.is_cut_short = own.has_cut_short();
    if (!is_new && known->second.forest.algbw_gbps > made.forest.algbw_gbps) {
      made.forest = std::move(known->second.forest);
    }
    return plans.insert_or_assign(key, std::move(made)).first->second.forest;
  }

  /// Builds the programs of a choice. Refers to its arguments.
  MakeProgram builder(const Machine& machine, const AlgorithmChoice& choice,
                      std::int64_t question) {
    return [this, &machine, &choice, question](const BuildRequest& request) {
      const auto shared = [](Program program) {
        return std::make_shared<const Program>(std::move(program));
      };
      const Algorithm& algorithm = *choice.algorithm;
      if (auto known = kept_programs.built(choice, request)) return known;
      return shared(algorithm.plan == nullptr
                        ? build(choice, request)
                        : build(choice, request, plan(machine, choice, request, question)));
    };
  }

  /// What depends on the constants of profiles: all but the programs of libraries, if these
  /// are kept.
  void forget_times(bool keeps_libraries) {
    other_routers.clear();
    plans.clear();
    predictions.clear();
    hurried.clear();
    bounds.clear();
    instead.clear();
    baselines.clear();
    rounds_built.clear();
    std::erase_if(programs, [&](const auto& known) {
      const bool is_folded = known.second->rotation != nullptr;  // of the topology that was
      return !keeps_libraries || is_folded || !is_library(known.second->choice);
    });
    for (auto& [key, prepared] : programs) {
      prepared->fastest.clear();
      prepared->simulable.clear();
    }
  }

  void forget_programs_of(const Machine& machine) {
    std::erase_if(programs,
                  [&](const auto& known) { return std::get<0>(known.first) == &machine; });
  }

  /// What is known of a program; nothing where there is more time now than its plan had, which was
  /// cut short. Never while the question is being answered that it was made for: what was found out
  /// of it would no longer be true.
  std::shared_ptr<Prepared> known_program(const ProgramKey& key, std::int64_t question) const {
    const auto known = programs.find(key);
    if (known == programs.end()) return nullptr;
    const Prepared& made = *known->second;
    const bool has_more_time = time_left_s() > made.had_s;
    if (made.is_cut_short && made.question != question && has_more_time) return nullptr;
    if (made.is_cut_short) note_cut_short();
    return known->second;
  }

  void forget_programs_if_large() {
    if (*kept_ops <= kMaxKeptOps) return;
    forget_programs();
    plans.clear();
  }

  /// Those that somebody still holds count no longer.
  void forget_programs() {
    programs.clear();
    kept_ops = std::make_shared<std::size_t>(0);
  }

  Machine& keep(const MachineKey& key, Machine made) {
    kept_parts += kPartsOfAny + made.topology->nodes.size() + made.topology->links.size();
    auto& kept = *machines.emplace(key, std::move(made)).first;
    note_ways(kept);
    return kept.second;
  }

  /// To be called for a machine that is new, or was replaced in place.
  void note_ways(const MachineEntry& entry) {
    constexpr std::size_t kMost = 8;
    std::erase(with_own_ways, &entry);
    const bool is_known = std::ranges::any_of(with_own_ways, [&](const auto* other) {
      return entry.second.router->shares_ways(*other->second.router);
    });
    if (is_known) return;
    if (with_own_ways.size() == kMost) with_own_ways.pop_back();
    with_own_ways.push_front(&entry);
  }

  /// A known machine with the same GPUs whose routes go the router's ways; null: there is none.
  const Machine* routed_alike(const MachineKey& key, const Router& router) {
    const auto alike = std::ranges::find_if(with_own_ways, [&](const auto* known) {
      const auto& [spec, gpus, relays, profile, links] = known->first;
      return gpus == std::get<1>(key) && relays == std::get<2>(key) &&
             router.goes_as(*known->second.router);
    });
    if (alike == with_own_ways.end()) {
      return same_machine(key, [&](const Router& known) { return router.goes_as(known); });
    }
    std::rotate(with_own_ways.begin(), alike, alike + 1);  // the last one is the one to drop
    return &with_own_ways.front()->second;
  }

  /// The same machine, under another profile, with a router like that; null: there is none.
  template <class IsLikeThat>
  const Machine* same_machine(const MachineKey& key, IsLikeThat&& is_like_that) const {
    const auto& [spec, gpus, relays, profile, links] = key;
    const auto begin = machines.lower_bound({spec, gpus, relays, "", LinkScope::all});
    for (auto known = begin; known != machines.end(); ++known) {
      const auto& [its_spec, its_gpus, its_relays, its_profile, its_links] = known->first;
      if (its_spec != spec || its_gpus != gpus || its_relays != relays) break;
      if (is_like_that(*known->second.router)) return &known->second;
    }
    return nullptr;
  }

  /// Topologies from files stay, as the files may have changed since, and so do those given.
  void forget_machines_if_large() {
    if (kept_parts <= kMaxKeptParts || machines.size() <= kMinKeptMachines) return;
    forget_times(/*keeps_libraries=*/false);
    forget_programs();
    with_own_ways.clear();
    machines.clear();
    kept_parts = 0;
    std::erase_if(topologies, [this](const auto& known) {
      return !given.contains(known.first) && !is_of_file(known.first);
    });
  }
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "algorithms/program_file.h"
#include "core/error.h"
#include "planner/alike_nodes.h"
#include "scenarios/buildable.h"
#include "scenarios/chooser.h"
#include "scenarios/folding.h"
#include "scenarios/tuner.h"

namespace espalier {

namespace {

/// To build, route, verify and simulate an op: 20 s for the two million of all_pairs on 1024 GPUs.
constexpr double kSecondsPerOp = 1e-5;
/// Questions that take no longer are alike in that; beyond, so are those within a factor of four.
constexpr double kMoment_s = 1;
/// Uncut: the chunk search simulates up to some thousand times as many ops.
constexpr double kQuick_s = 0.01;
/// Of a message, and of a link.
constexpr double kStartUp_s = 10e-6;
constexpr double kBytesPerSecond = 25e9;
/// Of a plan, roughly.
constexpr double kTrees = 16;

/// Algorithms whose ranks send parts of the message rather than all of it have many ops: these are
/// for no more ranks.
constexpr int kMaxRanksOfParts = 4096;

/// Those that send whole messages from rank to rank, or from one to all others, which their records
/// do not tell from trees.
constexpr std::array<std::string_view, 5> kOneByOne = {"chain", "direct", "nccl_rings",
                                                       "pipelined_chain", "ring"};

double rounds_of_tree(int ranks) { return std::max(1.0, std::ceil(std::log2(ranks))); }

}  // namespace

bool Forecast::is_quick() const { return takes_s <= kQuick_s; }

std::tuple<std::size_t, int, double> Forecast::order() const {
  const double moments = takes_s / kMoment_s;
  const int magnitude = moments <= 1 ? 0 : static_cast<int>(std::ceil(std::log2(moments) / 2));
  return {compares, magnitude, time_s};
}

const Forecast& Forecasts::of(const Query& query) {
  const std::pair key(query.algorithm, query.size_bytes);
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_.emplace(key, make(query)).first->second;
}

Forecast Forecasts::make(const Query& query) {
  Forecast made;
  if (const auto candidates = candidates_of(study_, query)) {
    made.compares = 1 + candidates->size();
    return made;
  }
  if (is_chooser(query.algorithm)) return made;  // a table says what it chooses
  const AlgorithmChoice& choice = study_.choice(query.algorithm);
  const Algorithm& algorithm = *choice.algorithm;
  const int ranks = study_.ranks(query);
  if (algorithm.plan != nullptr && !plans_by_nodes(query)) made.compares = 1;
  const auto [known, is_new] = ops_.try_emplace(query.algorithm, 0);
  if (is_new) known->second = ops(query, choice);
  made.takes_s = kSecondsPerOp * known->second;
  const double whole_s = static_cast<double>(query.size_bytes) / kBytesPerSecond;
  const double tree = 2 * rounds_of_tree(ranks);
  // Uncut, what is for everyone, or from everyone, goes as a whole.
  const bool is_whole =
      query.collective == Collective::broadcast || query.collective == Collective::reduce;
  const bool sends_parts =
      !is_whole && algorithm.plan == nullptr && algorithm.max_ranks <= kMaxRanksOfParts;
  if (is_library(choice)) {
    made.time_s = tree * kStartUp_s + 2 * whole_s;
  } else if (sends_parts) {
    const double rounds = algorithm.max_ranks > kMaxQuadraticRanks ? tree : 2.0 * ranks;
    made.time_s = rounds * kStartUp_s + 2 * whole_s;
  } else {
    const bool is_one_by_one = std::ranges::count(kOneByOne, algorithm.name) > 0;
    made.time_s = (is_one_by_one ? ranks : tree) * (kStartUp_s + whole_s);
  }
  return made;
}

double Forecasts::ops(const Query& query, const AlgorithmChoice& choice) {
  if (choice.file) return static_cast<double>(choice.file->program.ops.size());
  const Algorithm& algorithm = *choice.algorithm;
  const double ranks = study_.ranks(query);
  if (algorithm.plan != nullptr) return kTrees * ranks;
  const double by_ranks = algorithm.max_ranks > kMaxQuadraticRanks
                              ? 2 * ranks * rounds_of_tree(study_.ranks(query))
                              : 2 * ranks * ranks;
  const bool may_fold = algorithm.folds != nullptr && ranks >= kMinFoldedRanks && query.may_fold;
  if (algorithm.ops == nullptr && !may_fold) return by_ranks;
  try {
    const Machine& machine = study_.machine(query);
    BuildRequest request = request_for(query, machine);
    if (may_leave_out_rounds(query)) {
      request.rounds_left_out = rounds_to_leave_out(machine, choice, query, kFirstRounds);
    }
    const bool is_known = !unsupported(choice, request);
    const double all = is_known ? espalier::ops(choice, request).value_or(by_ranks) : by_ranks;
    const auto folding = may_fold ? find_folding(machine, choice, request) : std::nullopt;
    return folding ? all / folding->fold.groups : all;
  } catch (const Error&) {
    return by_ranks;  // what is wrong is the answer to the question
  }
}

/// Whether plans need no search.
bool Forecasts::plans_by_nodes(const Query& query) {
  if (!plans_by_nodes_) {
    const Machine& machine = study_.machine(query);
    plans_by_nodes_ = can_plan_by_nodes(query.collective, *machine.router, machine.placement);
  }
  return *plans_by_nodes_;
}

}  // namespace espalier

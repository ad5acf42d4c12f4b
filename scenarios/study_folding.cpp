// SPDX-License-Identifier: Apache-2.0
// Programs of one group of ranks, where what a study asks about is the same for all groups.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/words.h"
#include "ir/unfold.h"
#include "scenarios/benchmark.h"
#include "scenarios/buildable.h"
#include "scenarios/folding.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"

namespace espalier {

/// The ops of one group of ranks in place of all, where groups are alike; with what is prepared for
/// it.
std::optional<Built> Study::build_folded(const Query& query, const Machine& machine,
                                         std::int64_t rounds_left_out, Prepared& made) {
  if (!cache_->may_fold(query, machine)) return std::nullopt;
  BuildRequest request = request_for(query, machine);
  request.rounds_left_out = rounds_left_out;
  const bool is_planned = made.choice.algorithm->folds_of_plan != nullptr;
  if (is_planned && not_built(made.choice, request)) return std::nullopt;
  const auto plan = [&](const BuildRequest& asked) -> const Forest& {
    return cache_->plan(machine, made.choice, asked, asked_);
  };
  const MakeProgram make = cache_->builder(machine, made.choice, asked_);
  // Where groups are not alike after all, larger ones may be.
  for (Fold& fold :
       is_planned ? folds(made.choice, request, plan(request)) : folds(made.choice, request)) {
    const auto folding = folding_by(machine, std::move(fold));
    if (!folding) continue;
    if (is_planned && !folds_ways(plan(request), machine, *folding->rotation)) return std::nullopt;
    const bool begin_alike = starts_fold(machine, query, folding->fold);
    if (!begin_alike && !not_built(made.choice, request)) return std::nullopt;
    Built built = build_on(machine, made.choice, query, make, &cache_->kept_programs,
                           {.fold = folding->fold,
                            .rotation = folding->rotation.get(),
                            .rounds_left_out = rounds_left_out});
    if (!built.program) return std::nullopt;
    const bool goes_alike = folds_routes(*built.program, machine, *folding->rotation);
    if (goes_alike && are_cut_alike(*built.program, made.choice)) {
      return take_folded(machine, *folding, begin_alike, std::move(built), made);
    }
    // Of many ranks, routes that pass what the rotation leaves out do so in larger groups, too.
    if (!goes_alike && machine.ranks() >= kMinFoldedRanks) return std::nullopt;
  }
  return std::nullopt;
}

/// Nothing where all ops are the better answer.
std::optional<Built> Study::take_folded(const Machine& machine, const Folding& folding,
                                        bool begin_alike, Built built, Prepared& made) {
  // All ranks, cut into chunks, are the better answer as long as they are not too many.
  const bool is_cuttable = may_be_cut(*built.program);
  if (!is_cuttable && machine.ranks() <= made.choice.algorithm->max_ranks) return std::nullopt;
  made.may_be_cut = is_cuttable;
  made.rotation = folding.rotation;
  if (!begin_alike) {
    built.notes.push_back(
        "the ranks of a call by itself begin at once, though one process launches them one after "
        "the other: their ops are too many to simulate all");
  }
  if (machine.ranks() < kMinFoldedRanks) return built;
  const Fold& fold = folding.fold;
  const std::string channels =
      fold.shares_ranks() ? fmt::format(", and {} channels of each", fold.lanes) : "";
  built.notes.push_back(fmt::format("{} groups of {} behave alike{}: one {} is simulated",
                                    fold.rank_groups(), counted(fold.each, "rank"), channels,
                                    fold.shares_ranks() ? "channel of one group" : "of them"));
  return built;
}

/// The ops of one group of ranks, from which those of all are known, where these do the same though
/// the machine is not alike for them.
std::optional<Built> Study::build_of_groups(const Query& query, const Machine& machine,
                                            const Prepared& made) {
  if (!cache_->may_fold(query, machine)) return std::nullopt;
  auto program = program_of_groups(machine, made.choice, request_for(query, machine), backend_);
  if (!program) return std::nullopt;
  Built built;
  built.program = std::make_shared<const Program>(std::move(*program));
  return built;
}

}  // namespace espalier

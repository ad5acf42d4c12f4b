// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "algorithms/algorithm.h"
#include "scenarios/study.h"

namespace espalier {

/// Programs of this many ranks or more are folded where that is possible. Those of fewer ranks are
/// folded only for who asks for nothing but their time, and reported link by link otherwise.
inline constexpr int kMinFoldedRanks = 32;

/// How an algorithm's program for a machine folds into groups of ranks that behave alike.
struct Folding {
  Fold fold;
  std::shared_ptr<const Rotation> rotation;  ///< how the machine does
};

/// The symmetry of a machine that moves its ranks as the fold does; nothing where there is none.
std::optional<Rotation> find_rotation(const Topology& topology, const Placement& placement,
                                      const Fold& fold);

/// By this fold; nothing where the machine does not repeat itself so, or relays take part.
std::optional<Folding> folding_by(const Machine& machine, Fold fold);

/// By the first of these that the machine repeats, too; nothing where it repeats none.
std::optional<Folding> first_folding(const Machine& machine, std::vector<Fold> folds);

/// With the smallest groups that both the algorithm and the machine repeat; nothing where there are
/// none, or where the algorithm plans first. \pre parameters of the choice are in range
std::optional<Folding> find_folding(const Machine& machine, const AlgorithmChoice& choice,
                                    const BuildRequest& request);

/// Programs of this many ops or more are built of one group's ops where groups do the same on a
/// machine that is not alike for them: fewer are built and verified in no time.
inline constexpr std::int64_t kMinOpsOfGroups = std::int64_t{1} << 18;

/// The folded program whose groups do the same, though the machine has no rotation that moves them,
/// for a back end that runs the ops of all groups (Backend::runs_all_groups) under every runtime of
/// the machine; nothing where there is none, where it has few ops, or where some transfer has no
/// route. \pre parameters of the choice are in range
std::optional<Program> program_of_groups(const Machine& machine, const AlgorithmChoice& choice,
                                         BuildRequest request, const Backend& backend);

/// Whether the groups of a folded program do the same whatever it is cut into.
bool are_cut_alike(const Program& program, const AlgorithmChoice& choice);

/// Whether a plan sends what goes between two ranks one way alone, and moves that on with them: so
/// that ways which its program names are alike if its trees are.
bool folds_ways(const Forest& plan, const Machine& machine, const Rotation& rotation);

/// Whether what the program's ops move takes the same way in all groups.
bool folds_routes(const Program& program, const Machine& machine, const Rotation& rotation);

}  // namespace espalier

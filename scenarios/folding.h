// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "algorithms/algorithm.h"
#include "scenarios/study.h"

namespace espalier {

/// Programs of this many ranks or more are folded where that is possible: fewer are simulated in no
/// time, and then link by link.
inline constexpr int kMinFoldedRanks = 32;

/// How an algorithm's program for a machine folds into groups of ranks that behave alike.
struct Folding {
  Fold fold;
  std::shared_ptr<const Rotation> rotation;  ///< how the machine does
};

/// The symmetry of a machine that moves its ranks as the fold does; nothing where there is none.
std::optional<Rotation> find_rotation(const Topology& topology, const Placement& placement,
                                      const Fold& fold);

/// With the smallest groups that both the algorithm and the machine repeat; nothing where there are
/// none. \pre parameters of the choice are in range
std::optional<Folding> find_folding(const Machine& machine, const AlgorithmChoice& choice,
                                    const BuildRequest& request);

/// Whether what the program's ops move takes the same way in all groups.
bool folds_routes(const Program& program, const Machine& machine, const Rotation& rotation);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/bound_proof.h"
#include "scenarios/planned.h"
#include "scenarios/study.h"

// What is asked once more of what has been answered, to show it in detail.

namespace espalier {

/// Which ops a timeline has where groups of ranks behave alike, and where rounds repeat themselves:
/// those of one group, without such rounds; those of all groups, without them; or all.
enum class TimelineOps : std::uint8_t { one_group, all_groups, all };

/// Asks again for what has been answered, and keeps the timeline and the program. Throws
/// Error{unsupported} where nothing runs this time.
Outcome ask_with_timeline(Study& study, const Outcome& outcome, TimelineOps ops);

/// What proves the bound of an answer, for whoever draws it: its words alone, where there is no
/// time to find it once more. Nothing where there is none.
std::optional<BoundProof> proof_of_answer(Study& study, const Outcome& outcome);
/// The same of a plan's.
BoundProof proof_of_plan(const Planned& plan);

/// Whom to show beside the best: NCCL among the answers for the same message, or the next best;
/// null where there is nobody.
const Outcome* rival_of(const Outcome& best, const std::vector<Outcome>& outcomes);

}  // namespace espalier

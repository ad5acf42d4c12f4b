// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/study.h"
#include "scenarios/training_study.h"

// How questions and answers are called in tables and progress bars.

namespace espalier {

/// "dgx1-v100, GPUs 0-3,6 (5 ranks), relays 4,5" or "4 ranks".
std::string describe_ranks(const Query& query, int ranks);

/// The algorithm that was asked for, or that was chosen where the query left it open.
const std::string& algorithm_that_ran(const Outcome& outcome);

/// "ring", or "auto (ring)" when the algorithm was chosen for the query.
std::string algorithm_label(const Outcome& outcome);

/// What the bound of an answer counts: "fabric", "all", "all+host", "fabric+relay"; "-" where
/// nothing is sent.
std::string links_used(const Outcome& outcome);

/// How a bound is proved: "a cut", "a partition", "linear programming".
std::string proof_of(const Bound& bound);

/// The profile in the head of a table: the one that its queries name, or the one of a library if
/// all of them run under it. \pre there is a query, and all name the same profile
std::string table_profile(Study& study, const std::vector<Query>& queries);

/// Columns that the labels of the queries' outcomes may take. Throws what `Study::tuning_table`
/// throws.
std::size_t widest_label(Study& study, const std::vector<Query>& queries);

/// "ring 1GiB", "ring resnet50": the label of a step of a progress bar.
std::string progress_label(const Query& query);
std::string progress_label(const TrainingQuery& query);

}  // namespace espalier

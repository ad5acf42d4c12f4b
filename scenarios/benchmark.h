// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scenarios/buildable.h"
#include "scenarios/study.h"

// Private to the room.

namespace espalier {

/// Whether the ranks of a call by itself begin together in all groups of the fold.
bool starts_fold(const Machine& machine, const Query& query, const Fold& fold);

/// When the ranks of a call by itself begin, under the query's launch mode (RunOptions::starts_s).
/// Empty also where one group of ranks is simulated for others that begin at other times.
/// `rotation`: as in Target.
std::vector<double> starts_of(const Machine& machine, const Router& used, const Query& query,
                              const Program& program, const Rotation* rotation);

/// What nccl-tests would print for a simulated call, in seconds, under the query's launch mode.
/// `used` is the runtime that carried it out. \pre the outcome has been simulated
double benchmark_of(const Machine& machine, const Router& used, const Outcome& outcome);

/// By how much the simulated time is expected to be off. `choice` is the outcome's algorithm with
/// nothing left open.
ExpectedError error_of(const Machine& machine, const Router& used, const AlgorithmChoice& choice,
                       const LinksUsed& links, const Outcome& outcome);

/// What rows of errors call an algorithm: "ring"; of a library, with the algorithm that it chose,
/// "nccl:algo=ring".
std::string compared_name(AlgorithmChoice choice);

/// The parameters of a library that may be forced: all but its version.
std::vector<std::string> forcible_parameters(const AlgorithmChoice& choice);

}  // namespace espalier

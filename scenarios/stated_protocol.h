// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "algorithms/algorithm.h"
#include "scenarios/study.h"

namespace espalier {

/// The query under the protocol that its algorithm's file is for, in another program's format:
/// nothing where the file names none, the query names one, the machine or the profile has no such
/// one, or the profile's runtime interprets files and looks for itself. Private to this room.
std::optional<Query> under_stated_protocol(const Query& query, const AlgorithmChoice& choice,
                                           const Machine& machine);

}  // namespace espalier

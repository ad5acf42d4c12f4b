// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "algorithms/algorithm.h"
#include "formats/foreign_program.h"
#include "ir/block_program.h"
#include "scenarios/study.h"

// Algorithm files under a profile whose runtime interprets them, such as MSCCL's
// (Profile::interprets). Private to this room.

namespace espalier {

/// The thread blocks that a profile's interpreter carries out for an algorithm: those of its file.
/// Null where the profile has no interpreter, or the algorithm no thread blocks.
const BlockProgram* interpreted(const Profile& profile, const AlgorithmChoice& choice);

/// The runtime of the machine with the protocol that the file names, or the one that the query
/// names. Nothing where the machine's GPUs or links don't have it.
std::optional<std::size_t> runtime_of(const BlockProgram& blocks, const Machine& machine,
                                      const Query& query);

/// Why a runtime does not use an algorithm for a call, of which it says nothing (ROCm/rccl
/// src/misc/msccl/msccl_lifecycle.cc): the number of elements, the size, in place or not, ranks,
/// protocol. Nothing where it does use it. \pre the file has blocks
std::optional<std::string> why_not_used(const ForeignProgram& file, const Machine& machine,
                                        const Query& query);

/// What the library of an interpreter does by itself, for the same call.
Query by_library(const Query& query);

/// What to tell of an outcome of that: what was not used and why, and what ran instead.
std::string library_note(const Query& query, const std::string& why);

/// Where the query asks for another protocol than the file: that it is so; else empty.
std::string protocol_note(const BlockProgram& blocks, const std::string& used);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "algorithms/algorithm.h"
#include "nccl/choice.h"

// What NCCL's kernels have in common, whatever they carry out. Private to the room.

namespace espalier {

/// The order that a channel goes round.
const Ring& nccl_ring_of(const NcclGraph& graph, int channel);

/// The parts of a full chunk that are passed on one after the other (nccl_part_bytes).
std::int64_t nccl_parts(const BuildRequest& request, double bytes, const NcclChoice& choice);
/// Units of a part, at most, of a chunk of so many.
std::int64_t nccl_most_of_part(const BuildRequest& request, std::int64_t chunk, double unit_bytes,
                               const NcclChoice& choice);

}  // namespace espalier

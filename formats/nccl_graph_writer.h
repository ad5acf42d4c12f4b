// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/format.h"

namespace espalier {

/// The rings of a program as a file that NCCL reads (NCCL_GRAPH_FILE), a channel for each lane.
/// Throws Error{unsupported} naming the first op that is no part of a ring. Private to the room.
Written write_nccl_graph(const Program& program, const WritingOptions& options);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nccl/tuner.h"

namespace espalier {

/// What the tuner of RCCL (`kKnownRccl`) makes of a call: the cells of
/// `nccl_cells`, with its own constants. \pre as `nccl_cells`
std::vector<NcclCell> rccl_cells(Collective collective, double bytes, const NcclMachine& machine,
                                 const NcclGraph& graph);

}  // namespace espalier

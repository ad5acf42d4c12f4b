// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nccl/tuner.h"

namespace espalier {

/// What RCCL's tuner makes of a call, whatever version of NCCL is asked about: the cells of
/// `nccl_cells`, with its own constants. \pre as `nccl_cells`
std::vector<NcclCell> rccl_cells(Collective collective, double bytes, const NcclMachine& machine,
                                 const NcclGraph& graph);

}  // namespace espalier

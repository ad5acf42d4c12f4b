// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "formats/nccl_machine.h"

// Attributes for which NCCL derives a given rate, as nearly as they allow: the other direction of
// nccl_rates.h. Private to the room.

namespace espalier {

struct PcieLanes {
  double gtps = 8;
  int width = 16;
};
/// The lanes for which NCCL counts what is nearest to these GB/s, in the generation that the kind
/// of link names where that is as good as any.
PcieLanes nccl_lanes(const std::string& kind, double gbps);

/// The CPU for which NCCL counts what is nearest to these GB/s between sockets, of the vendor and
/// architecture that the kinds of a host's links tell.
NcclSystem::Cpu nccl_cpu(const std::vector<std::string>& kinds, const std::vector<double>& gbps);

/// A GPU, by its `sm` or `gcn`, that has fabric links of the kind; both are unset when none has.
NcclSystem::Gpu nccl_gpu_with(const std::string& kind);

}  // namespace espalier

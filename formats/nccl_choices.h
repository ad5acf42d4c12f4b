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

/// How a GPU of a model is written: `sm` or `gcn`, and the ids and class of its card as far as they
/// are known. A model that is not known is read off a name as the reader of such files gives
/// ("sm86", "gfx906").
struct NcclCard {
  NcclSystem::Gpu gpu;
  std::string pci_class;
  bool is_known = false;  ///< whether it is the model's own
};
NcclCard nccl_card_of(const std::string& model);

/// A GPU whose fabric links have the kind and, as nearly as may be, this rate; nothing is set when
/// none has links of the kind.
NcclCard nccl_card_with(const std::string& link_kind, double gbps);

}  // namespace espalier

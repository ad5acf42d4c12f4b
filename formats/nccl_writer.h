// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/format.h"

namespace espalier {

/// A machine as a file that NCCL (NCCL_TOPO_FILE) or RCCL reads: one host, since that is what both
/// expect, or all of them where NVLinks join hosts. What the file cannot say, and what differs when
/// it is read again, is in the notes. Throws Error{unsupported} where GPUs have links that no GPU
/// has that NCCL knows. Private to the room.
Written write_nccl_topology(const Topology& machine);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "nccl/graph.h"
#include "nccl/version.h"

namespace espalier {

/// Of what is ruled out: whether the environment may ask for it all the same, by the algorithm or
/// by either of algorithm and protocol.
enum class NcclAskedFor : std::uint8_t { never, by_algorithm, by_either };

/// Why algorithms have no other protocol.
inline constexpr std::string_view kSimpleOnly = "Simple only";

/// One cell of the table that NCCL's tuner fills: latency + bytes / bandwidth, the least of which
/// it takes (NVIDIA/nccl src/graph/tuning.cc, src/enqueue.cc).
struct NcclCell {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency_s = 0;
  double gbps = 0;      ///< of the whole buffer, at the size asked about; 0 where it is ruled out
  double time_s = 0;    ///< what the tuner expects; infinite where it is ruled out
  std::string why_not;  ///< why it is ruled out; empty otherwise
  NcclAskedFor asked_for = NcclAskedFor::never;
};

/// Every cell for a message of `bytes` (the whole buffer: of an allgather that of all ranks), the
/// algorithms and protocols in their order. NCCL 2.4 and older have no such table: of theirs only
/// the choice is told, as the cell that is not ruled out. \pre the collective is allreduce,
/// allgather, reducescatter, broadcast or reduce, and the graph has a ring
std::vector<NcclCell> nccl_cells(Collective collective, double bytes, const NcclMachine& machine,
                                 const NcclGraph& graph, NcclVersion version);

}  // namespace espalier

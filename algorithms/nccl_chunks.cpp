// SPDX-License-Identifier: Apache-2.0
#include "algorithms/nccl_chunks.h"

#include <algorithm>
#include <cmath>

namespace espalier {
namespace {

/// The parts of a chunk that are passed on one after the other (nccl_part_bytes).
std::int64_t parts_of_chunk(const BuildRequest& request, double chunk_bytes,
                            const NcclChoice& choice) {
  constexpr double kMostParts = 8;  // more would take hardly less time
  const double part_bytes =
      nccl_part_bytes(request.collective, choice.algorithm, choice.protocol, choice.work.threads);
  const double wanted = part_bytes > 0 ? std::ceil(chunk_bytes / part_bytes) : 1;
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, kMostParts));
}

}  // namespace

const Ring& nccl_ring_of(const NcclGraph& graph, int channel) {
  return graph.rings[static_cast<std::size_t>(channel) % graph.rings.size()];
}

std::int64_t nccl_most_of_part(const BuildRequest& request, std::int64_t chunk, double unit_bytes,
                               const NcclChoice& choice) {
  const std::int64_t number =
      parts_of_chunk(request, static_cast<double>(chunk) * unit_bytes, choice);
  return (chunk + number - 1) / number;
}

std::int64_t nccl_parts(const BuildRequest& request, double bytes, const NcclChoice& choice) {
  return parts_of_chunk(request, std::min(choice.work.chunk_bytes, bytes / choice.work.channels),
                        choice);
}

}  // namespace espalier

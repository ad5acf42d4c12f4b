// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "ir/collective.h"
#include "nccl/graph.h"
#include "nccl/version.h"

namespace espalier {

/// How NCCL divides a call among blocks, and each block's part into chunks (NVIDIA/nccl
/// src/enqueue.cc, src/collectives/device/*.h, src/include/device.h).
struct NcclWork {
  int channels = 1;
  int threads = 512;       ///< of a block that move data
  int most_threads = 512;  ///< for which the rates of blocks hold
  int slices = 1;          ///< of an op, at most
  double chunk_bytes = 0;  ///< of a channel, passed on at once
  double align_bytes = 1;  ///< a shorter chunk of the last round is rounded up to these
};

/// \pre `bytes` is the whole buffer
NcclWork nccl_work(Collective collective, double bytes, NcclAlgorithm algorithm,
                   NcclProtocol protocol, const NcclMachine& machine, const NcclGraph& graph,
                   NcclVersion version);

/// Whether blocks have all threads, however short the message and whatever is asked for.
bool has_all_nccl_threads(NcclAlgorithm algorithm, NcclVersion version);

/// Of the rate of a block with all threads on one direction, what each direction of a tree reaches.
double nccl_tree_share(NcclProtocol protocol);
/// What the threads of one direction hold at once and pass on within a node, line by line: in
/// trees, and in the chains of broadcasts and reduces. 0 where whole chunks are passed on, as in
/// other rings, whose blocks turn to another chunk each time. `threads`: of the block
double nccl_part_bytes(Collective collective, NcclAlgorithm algorithm, NcclProtocol protocol,
                       int threads);

/// The blocks that serve sends and receives: a power of two.
int nccl_p2p_blocks(const NcclGraph& graph);

/// What one rank sends to another, of a whole buffer of so many bytes.
double nccl_p2p_bytes(Collective collective, double bytes, const NcclMachine& machine);

/// Why sends and receives never use LL; empty where small ones do.
std::string why_no_p2p_ll(const NcclMachine& machine, NcclVersion version);
/// Bytes from one rank to another up to which they do.
double nccl_p2p_ll_bytes(const NcclMachine& machine, const NcclGraph& graph, NcclVersion version);

/// The threads that a block of an algorithm and protocol has at most.
int most_nccl_threads(NcclAlgorithm algorithm, NcclProtocol protocol, const NcclGraph& graph,
                      NcclVersion version);

}  // namespace espalier

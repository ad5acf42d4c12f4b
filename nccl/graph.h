// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "nccl/machine.h"
#include "nccl/version.h"
#include "planner/ring_search.h"

namespace espalier {

/// What NCCL's search finds (NVIDIA/nccl src/graph/search.cc): channels of one rate, before each is
/// doubled to become two blocks.
struct NcclGraph {
  RingKind kind = RingKind::direct;
  std::vector<Ring>
      rings;  ///< the orders, one direction each; channel c goes round rings[c % size]
  int channels = 1;
  double rate_gbps = 0;    ///< of a channel
  bool same_order = true;  ///< all channels have one order (NCCL: sameChannels)
  /// Of a channel of trees inside nodes, which may be more where all of a node's channels meet in
  /// the network.
  double tree_rate_gbps = 0;
  int nvls_channels = 0;         ///< of the NVLS graph; 0: there is none
  double nvls_rate_gbps = 0;     ///< of one of these inside nodes
  double nvls_network_gbps = 0;  ///< and between them
  bool pxn = false;              ///< GPUs send over the NICs of neighbors (NcclRails)
  bool nvb = false;              ///< and to GPUs without an NVLink through others (NcclBridges)
  std::string why_not;           ///< why there is no ring; empty otherwise

  double gbps() const { return channels * rate_gbps; }
  bool is_nvlink() const { return kind == RingKind::direct || kind == RingKind::switched; }
};

/// The profile that has NCCL's own constants for links of hosts, whichever one ranks are under.
inline constexpr const char* kNcclLinksProfile = "kernel";
/// Channels (blocks) of a GPU at most, as the search makes them.
inline constexpr int kMaxNcclChannels = 32;
/// As many as may be asked for (MAXCHANNELS of src/include/device.h).
inline int nccl_most_channels(NcclVersion version) { return version >= 26 ? 64 : 32; }

/// Kernels' blocks: every channel of the graph twice.
int nccl_blocks(const NcclGraph& graph);

/// `pxn`: unless NCCL_PXN_DISABLE=1. Where rings leave a node over the NIC of another GPU than
/// their last one there, that GPU is the relay of the hop. \pre two ranks or more
NcclGraph nccl_graph(const NcclMachine& machine, const Router& router, const Placement& placement,
                     NcclVersion version, bool pxn = true);

}  // namespace espalier

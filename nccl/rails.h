// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nccl/machine.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {

/// The first version with PXN: NVIDIA/nccl src/graph/paths.cc@7aa1c46f (2.12), in none before.
inline constexpr int kFirstNcclWithPxn = 12;

/// Which NIC a GPU sends over to another node, and through which GPU on the way there. PXN: data
/// crosses NVLink to the buffers of a neighbor, from where that one's NIC sends it. NCCL does so
/// where the neighbor has a NIC without a CPU in between and the two are joined by NVLink directly
/// or by a switch, in the direction of sending only (ncclTopoComputePaths of src/graph/paths.cc,
/// ncclTopoGetNetDev of src/graph/search.cc). NICs are those that the router takes: the nearest one
/// of each GPU.
class NcclRails {
 public:
  NcclRails(const NcclMachine& machine, const Router& router, const Placement& placement, bool pxn);

  /// Whose NIC sends what one rank sends to another: that of the GPU of its node which has the NIC
  /// of the receiver's counterpart (NCCL_P2P_PXN_LEVEL=2, the default); itself without PXN, and
  /// within a node.
  int sender(int from, int to) const;
  /// Whose NIC a ring leaves a node by that came in at `first` and is at its last GPU: a ring goes
  /// out by the NIC that it comes in by (crossNic=0), through its GPU if need be.
  int sender_of_ring(int first, int last) const;
  /// Whether the rank reaches the NIC of the other one without passing a CPU.
  bool is_near(int rank, int nic_of) const;

 private:
  static constexpr NodeId kNone = -1;

  NodeId gpu(int rank) const { return placement_.ranks[static_cast<std::size_t>(rank)]; }
  NodeId nic(int rank) const { return nics_[static_cast<std::size_t>(rank)]; }
  bool on_nvlink(int a, int b) const;

  const NcclMachine& machine_;
  const Router& router_;
  const Placement& placement_;
  const bool pxn_;
  const std::vector<std::set<NodeId>> near_;           ///< by rank: NICs without a CPU in between
  std::vector<NodeId> nics_;                           ///< by rank; kNone: has none
  std::vector<int> device_;                            ///< by rank: its GPU's number on its host
  std::map<std::pair<int, int>, int> rank_of_device_;  ///< by host and number
  std::map<std::pair<int, NodeId>, int> rank_of_nic_;  ///< by node: the first that it is nearest to
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "nccl/machine.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {

/// The first version whose GPUs exchange data through a third one that both have an NVLink to (path
/// class NVB): NVIDIA/nccl src/graph/paths.cc@920dbe5b (2.8.3), "Disallow GPUs as intermediate
/// steps for now" before (@5949d96f, 2.7).
inline constexpr int kFirstNcclWithNvb = 8;

/// Through which rank one sends to another of its host that it has no NVLink to
/// (ncclTopoCheckP2p's intermediateRank). The receiver's FIFO is in that GPU's memory
/// (p2pRecvSetup of src/transport/p2p.cc, which allocates it there): the sender's block writes into
/// it, the receiver's reads from it, each over an NVLink of its own, and no block of the GPU
/// between has a hand in it. RCCL is taken to leave such ways to the hardware: an estimate.
class NcclBridges {
 public:
  NcclBridges(const NcclMachine& machine, const Router& router, const Placement& placement,
              NcclVersion version);

  /// Whether any two ranks have one between them.
  bool any() const;

  /// `from` where NVLink joins the two, and where no rank is joined to both. The receiver looks for
  /// its way to the sender: the widest one, and of those the one whose NVLink to the sender is the
  /// widest. What is left is decided by the order of the sender's NVLinks, which the machine's
  /// description stands for: an estimate.
  int between(int from, int to) const;

 private:
  struct Neighbor {
    int rank = 0;
    double gbps = 0;  ///< of all NVLinks to it
  };
  using Neighbors = std::vector<Neighbor>;

  static Neighbors::const_iterator find(const Neighbors& among, int rank);

  const Router& router_;
  const Placement& placement_;
  std::vector<Neighbors> neighbors_;  ///< by rank, the widest first
};

}  // namespace espalier

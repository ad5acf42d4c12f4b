// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nccl/version.h"
#include "topologies/cpu_maker.h"
#include "topologies/placement.h"

namespace espalier {

/// The rows of the tuner's tables: Volta and what came before, Ampere (and what is not known),
/// Hopper, Blackwell.
enum class NcclGpuEra : std::uint8_t { volta, ampere, hopper, blackwell };

/// A machine and the ranks on it as NCCL's topology detection sees them (NVIDIA/nccl
/// src/graph/topo.cc, paths.cc).
struct NcclMachine {
  int ranks = 1;
  int nodes = 1;  ///< hosts, or GPU fabrics that join several of them (MNNVL)
  std::vector<int> node_of_rank;
  int node_of(int rank) const { return node_of_rank[static_cast<std::size_t>(rank)]; }
  int ranks_per_node = 1;  ///< the average, rounded down
  int capability = 0;      ///< least compute capability of the GPUs: 70, 80, 90; 80 where unknown
  int newest_capability = 0;  ///< the greatest of those that are known; 0: none is
  bool is_amd = false;
  bool alike = true;  ///< all GPUs have one compute capability
  NcclGpuEra era = NcclGpuEra::ampere;
  CpuMaker cpu = CpuMaker::intel;
  bool near_nics = true;          ///< no CPU between any GPU and its nearest NIC (path PXB)
  bool shared_near_nics = true;   ///< or one of its node's GPUs has such a NIC (path PXN)
  bool switches_combine = false;  ///< NVSwitches that add up and multicast: NVLS
  bool network_combines = false;  ///< a switch of the network that adds up: collnet
  /// Of the NICs nearest to the first node's ranks together, one direction; 0 without a network.
  double nics_gbps = 0;
  double nic_gbps = 0;  ///< of one
  int nics = 0;         ///< how many
};

NcclMachine nccl_machine(const Router& router, const Placement& placement);

/// NICs that each of the GPUs reaches without passing a CPU, and networks that it is on itself.
std::vector<std::set<NodeId>> near_nics(const Topology& machine, const std::vector<NodeId>& gpus);

/// "v100-sxm2": 70. Also "sm86". 0 where the model is not known.
int compute_capability(const std::string& model);
bool is_amd_gpu(const std::string& model);
/// Whether any of the ranks is a GPU of AMD's: its library is RCCL then.
bool is_amd(const Topology& machine, const Placement& placement);

/// The first version of NCCL that was built for GPUs of a compute capability.
NcclVersion first_nccl_for(int capability);

/// What NCCL counts for one link of a GPU's fabric, in GB/s: the rate at which kernels store over
/// it (src/graph/topo.h). 0 where the kind is not one of NCCL's.
double nccl_link_gbps(const std::string& kind, int capability, NcclVersion version);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/machine_parts.h"
#include "formats/nccl_machine.h"

// What NCCL (src/graph/topo.h) and RCCL derive from an attribute, and which GPU it stands for.
// Rates are theoretical ones: under profile `kernel` they are what NCCL counts. Private to the
// room.

namespace espalier {

/// A GPU by what NCCL's and RCCL's files say of one. Several cards may be one model; the first is
/// what a model is written as.
struct NcclGpu {
  const char* model;      ///< as in the catalogue
  int sm;                 ///< of NVIDIA's its compute capability, of AMD's its compute units
  const char* gcn;        ///< of AMD's
  const char* device;     ///< vendor and device of its card: the PCI ID Repository
  const char* pci_class;  ///< of the card
};
std::span<const NcclGpu> nccl_gpus();

/// The model of a GPU: by its card, else by `sm` or `gcn`. Empty when neither is known.
std::string nccl_gpu_model(const NcclSystem::Gpu& gpu);

LinkRate nccl_pcie_rate(double lane_gtps, int width);
/// Of one NVLink or xGMI link.
LinkRate nccl_fabric_rate(const NcclSystem::Gpu& gpu);
/// Between sockets.
LinkRate nccl_socket_rate(const NcclSystem::Cpu& cpu);
LinkRate nccl_network_rate(const NcclSystem::Net& net);

}  // namespace espalier

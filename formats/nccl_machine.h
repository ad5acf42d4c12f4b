// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// What an NCCL or RCCL topology file says, as plain data. Private to the room.
struct NcclSystem {
  struct Cpu {
    int host = 0;  ///< numbered from 0 in the order of the file
    int numa = 0;
    std::string arch;    ///< "x86_64"
    std::string vendor;  ///< "GenuineIntel"
    int family = 0;      ///< familyid
    int model = 0;       ///< modelid
  };
  /// A switch, bridge or card on PCIe.
  struct Pci {
    int parent = -1;  ///< another one of these, or -1: the CPU
    int cpu = 0;
    std::string bus_id;
    std::string pci_class;  ///< "0x030200"
    std::string device;     ///< "0x10de:0x2330", vendor and device; empty: not known
    double lane_gtps = 8;   ///< of its way up
    int width = 16;
    bool is_switch = false;
    bool has_speed = true;  ///< of writing: whether the two are known
  };
  struct NvLink {
    std::string target;  ///< bus id
    int count = 0;
    enum class To : std::uint8_t { gpu, nvswitch, cpu } to = To::gpu;
  };
  struct Gpu {
    int pci = 0;
    int dev = 0;
    int sm = 0;             ///< 0: AMD, or not known
    std::string gcn;        ///< "gfx942"
    std::string device;     ///< of its card
    bool is_guess = false;  ///< by the class of its card: there is no <gpu>
    std::vector<NvLink> links;
    double c2c_gbps = 0;
  };
  struct Net {
    int pci = -1;  ///< -1: at its CPU
    int cpu = 0;
    double gbps = 0;
    enum class Wire : std::uint8_t { ethernet, infiniband, omnipath } wire = Wire::ethernet;
  };
  std::vector<Cpu> cpus;
  std::vector<Pci> pcis;
  std::vector<Gpu> gpus;
  std::vector<Net> nets;
  int hosts = 1;
};

/// The machine, with rates as NCCL derives them (src/graph/topo.h): under profile `kernel` a link
/// has what NCCL counts. `as` fills in GPU models and their links where the file has none; null:
/// nothing does. Guesses are noted.
Topology nccl_machine(const NcclSystem& system, const std::string& name, const Topology* as);

}  // namespace espalier

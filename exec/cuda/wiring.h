// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/inventory.h"

namespace espalier {

/// Converts what the system says about its wiring into what a survey needs.

/// One NVLink as the GPU at one end has it.
struct NvlinkEnd {
  bool to_switch = false;
  std::string peer_bus_id;  ///< "0000:3d:00.0", when it leads to a GPU
  int generation = 0;       ///< 1 to 5; 0: not known
};

/// Bundles of the links of some GPUs, whose bus ids are in the same order; links that lead to none
/// of them are left out. Of two ends that disagree about their number, the fewer count.
std::vector<ProbedNvlink> bundle_nvlinks(const std::vector<std::string>& bus_ids,
                                         const std::vector<std::vector<NvlinkEnd>>& links);

/// The PCIe switches above a device, nearest first, each by the bus id of its upstream port, out of
/// the path that Linux gives it: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/
/// 0000:3c:08.0/0000:3d:00.0" is a device below switch 0000:3b:00.0 below a root port.
std::vector<std::string> pcie_switches(std::string_view device_path);

/// "pcie4x16" and its GB/s in one direction; empty and 0 when not known.
struct PcieLink {
  std::string kind;
  double gbps = 0;
};
PcieLink pcie_link(int generation, int lanes);

}  // namespace espalier

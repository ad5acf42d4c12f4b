// SPDX-License-Identifier: Apache-2.0
#include "topologies/cpu_maker.h"

#include "core/check.h"

namespace espalier {

CpuMaker cpu_maker(const Topology& machine) {
  for (const Link& link : machine.links) {
    if (link.kind.starts_with("if_")) return CpuMaker::amd;
    if (link.kind == "xbus") return CpuMaker::power;
    if (link.kind == "nvlink_c2c") return CpuMaker::other;
  }
  for (const Node& node : machine.nodes) {
    if (node.kind != NodeKind::cpu) continue;
    if (node.model.starts_with("epyc")) return CpuMaker::amd;
    if (node.model.starts_with("power")) return CpuMaker::power;
  }
  return CpuMaker::intel;
}

std::string_view to_string(CpuMaker maker) {
  switch (maker) {
    case CpuMaker::intel:
      return "intel";
    case CpuMaker::amd:
      return "amd";
    case CpuMaker::power:
      return "power";
    case CpuMaker::other:
      return "other";
  }
  CHECK(false);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/host/numa.h"
#include "run/target.h"

namespace espalier::cuda {

/// The part of this computer that a host memory of a program stands for: the socket of its CPU in
/// the machine that the program is for.
struct HostNode {
  std::string cpu;  ///< "cpu1"; empty: there is no machine, or it does not say
  NumaNode node;    ///< of this computer; without processors where it has no such node
  bool is_missing() const { return !cpu.empty() && node.processors.empty(); }
  bool operator==(const HostNode&) const = default;
};

/// By host memory. `here`: the nodes of this computer.
std::vector<HostNode> host_nodes(const Program& program, const Target& target,
                                 const std::vector<NumaNode>& here);

}  // namespace espalier::cuda

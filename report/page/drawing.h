// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// A node as it is drawn, by its centre. Coordinates are in pitches of neighbouring GPUs, x to the
/// right and y down, from the corner of the drawing.
struct DrawnNode {
  std::string name;           ///< of the machine's node; of folded hosts, "n3 ... n39"
  std::string label;          ///< what there is room for: the name without its host's
  std::vector<NodeId> nodes;  ///< one; of folded hosts, all of theirs
  NodeKind kind = NodeKind::gpu;
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  bool is_fold() const { return nodes.size() > 1; }
};

/// Links between the same two drawn nodes, drawn as one.
struct DrawnLink {
  int a = 0;  ///< indices of drawn nodes; `a` is the end `a` of the first link
  int b = 0;
  std::vector<LinkId> links;
};

/// A frame around what belongs together: a host.
struct DrawnFrame {
  std::string label;
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct Drawing {
  double width = 0;
  double height = 0;
  std::vector<DrawnNode> nodes;
  std::vector<DrawnLink> links;
  std::vector<DrawnFrame> frames;
};

/// The machine as people of the field draw it. In a host: eight GPUs of a hybrid cube mesh as a
/// cube; GPUs on NVSwitches in rows, the switches beside them; GPUs of a torus as a grid and other
/// meshes as a circle; above them PCIe switches, CPUs and NICs, each above what is below it in the
/// tree; the network on top. Of large clusters the first hosts are drawn, and the others are folded
/// into one node that stands for all. Depends on nothing but the machine.
Drawing draw_machine(const Topology& machine);

}  // namespace espalier

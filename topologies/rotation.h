// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {

/// A symmetry of a machine that moves every group of ranks to the next one, and the last to the
/// first: all groups are alike, so that what one of them does takes as long on any other
/// (docs/ir.md, "Folded programs"). Ranks may come round sooner than all groups do: groups share
/// them then.
class Rotation {
 public:
  /// What has to be alike. `keeps_route` is false for routes that pass anything else.
  enum class Of : std::uint8_t {
    all,
    /// All but CPUs: what hangs from them is alike whatever its socket.
    without_cpus,
    /// GPUs and the switches and links between them.
    gpu_fabric,
  };

  /// That moves rank r to rank next_rank[r]. It is found by matching nodes by what they are and by
  /// their links to nodes matched already, and then checked node by node and link by link. Nothing
  /// where there is none, where some host of the machine has shared media or memory, or where
  /// moving `groups` times does not lead back to every node.
  static std::optional<Rotation> find(const Topology& topology, const Placement& placement,
                                      const std::vector<int>& next_rank, int groups,
                                      Of what = Of::all);

  int groups() const { return groups_; }
  NodeId next(NodeId node) const { return next_node_[static_cast<std::size_t>(node)]; }
  Hop next(const Hop& hop) const;

  /// Nodes, or directions of links, that are moved onto each other have one of them in common; a
  /// link without directions of its own has one.
  NodeId first(NodeId node) const { return first_node_[static_cast<std::size_t>(node)]; }
  Hop first(const Hop& hop) const;
  /// How many there are of them for every group: 1, or less where groups share some.
  double per_group(NodeId node) const { return per_group_node_[static_cast<std::size_t>(node)]; }
  double per_group(const Hop& hop) const;
  /// How many times what `first` has for it is moved on to get there.
  int moves(const Hop& hop) const;

  /// Whether the router leads every group's data the same way as the first one's: `from` to `to`,
  /// along the named nodes where there are any, and where all these are moved to.
  bool keeps_route(const Router& router, NodeId from, NodeId to,
                   std::vector<NodeId> vias = {}) const;

 private:
  Rotation(const Topology& topology, int groups, Of what)
      : topology_(&topology), groups_(groups), what_(what) {}
  bool match_nodes(const Placement& placement, const std::vector<int>& next_rank);
  bool match_links();
  bool is_left_out(NodeId node) const;
  bool is_left_out(const Link& link) const { return is_left_out(link.a) || is_left_out(link.b); }
  bool close();

  std::size_t index_of(const Hop& hop) const;
  Hop hop_at(std::size_t index) const { return {static_cast<LinkId>(index / 2), index % 2 == 0}; }

  const Topology* topology_;
  int groups_;
  Of what_;
  std::vector<NodeId> next_node_;
  std::vector<std::size_t> next_hop_;  ///< by 2 * link + direction
  std::vector<NodeId> first_node_;
  std::vector<std::size_t> first_hop_;
  std::vector<double> per_group_node_;
  std::vector<double> per_group_hop_;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// One direction of a link: `forward` is a to b.
struct Hop {
  LinkId link = 0;
  bool forward = true;
  bool operator==(const Hop&) const = default;
};

/// `peer`: directly over host links, between two GPUs that can map each other's memory, or
/// with a CPU at one end. `staged`: between two GPUs, through a buffer in a CPU's memory.
enum class RouteKind : std::uint8_t { local, gpu_fabric, peer, staged, network };

/// The links a transfer crosses, cut through (all at once), in order.
struct Route {
  RouteKind kind = RouteKind::local;
  std::vector<Hop> hops;
  /// Sum of the links' latencies, or what a hop takes beside its hold, if that is more.
  double latency_s = 0;
  /// Start-up under the router's profile: the largest of its link kinds, or as much as the latency
  /// lacks to a hop of its slowest class (Protocol::hop_s), if that is more (+ staging overhead
  /// when `kind` is staged).
  StartUp start_up;
  /// What a further slice of an op holds its block for: Protocol::hold_s of the slowest class, and
  /// all of the hop where that is not listed.
  double slice_s = 0;
};

/// Which links routes and plans may use. `all`: each for what runtimes use it for, the network
/// between hosts. `fabric`: the GPU fabric alone: NVLink, xGMI between GPUs and NVSwitches. An
/// NVLink to a CPU is not part of it. `detours`: all, and inside a host the network, too, out
/// through a NIC and back in: routes differ from those of `all` only where an op names its path,
/// plans may choose to.
enum class LinkScope : std::uint8_t { all, fabric, detours };

/// "all", "fabric", "detours".
std::string_view to_string(LinkScope links);
std::span<const LinkScope> all_link_scopes();

/// Finds routes on one machine under one profile, and remembers them. Rules (docs/topologies.md):
/// GPU fabric between neighbours or through NVSwitches; else PCIe/CPU path when the machine allows
/// peer access to the pair; else staged through a CPU's memory; between hosts
/// GPU-NIC-fabric-NIC-GPU through the nearest NIC (GPUs with equally near ones take turns). Of
/// several paths it takes the one with the fewest hops, then the widest bottleneck, then the lowest
/// link ids. GPUs never forward unless the machine says so. Keeps a reference to the machine. Not
/// for use by several threads at once.
class Router {
 public:
  Router(const Topology& topology, const Profile& profile, LinkScope scope = LinkScope::all);
  /// The same without a copy (Topology::shared_profile).
  Router(const Topology& topology, std::shared_ptr<const Profile> profile,
         LinkScope scope = LinkScope::all);
  ~Router();
  Router(Router&&) noexcept;

  /// Between any two nodes, in practice GPU or CPU memories; nothing if the machine has no
  /// route. The route stays valid as long as the router. \pre both are nodes of the machine.
  const Route* route(NodeId from, NodeId to) const;
  /// Through the named node: the two routes joined. `via` may be any node, a GPU included; between
  /// two GPUs through a CPU counts as staged. Refused as below.
  const Route* route(NodeId from, NodeId to, NodeId via) const;
  /// Along the named nodes in order. One node: as above. Several: each step takes the link between
  /// the two if they are neighbours (see `hop`), and else their route. Nothing when a step has
  /// neither, two GPUs that may not map each other's memory would be joined over host links without
  /// a CPU, or a NIC would send data back to where it came from (docs/topologies.md). \pre `vias`
  /// is not empty
  const Route* route(NodeId from, NodeId to, const std::vector<NodeId>& vias) const;
  /// Along a path written "a>b>c". \pre every name is a node of the machine.
  const Route* route(NodeId from, NodeId to, std::string_view path) const;
  /// The nodes of such a path.
  const std::vector<NodeId>& nodes_of(std::string_view path) const;

  /// The link between two neighbours; nothing when there is none in scope.
  std::optional<Hop> hop(NodeId from, NodeId to) const;

  /// The switch that combines (Node::combines) and joins all of these without another switch on the
  /// way, that is `named` or the
  /// nearest one to the first, by hops. Nothing when there is none, or the profile's runtime makes
  /// no ops in such a switch (Profile::in_switch). \pre `nodes` is not empty
  std::optional<NodeId> combining_switch(const std::vector<NodeId>& nodes,
                                         std::optional<NodeId> named = {}) const;

  /// GB/s of one direction of a link under the profile (both directions for half and shared).
  double capacity_gbps(LinkId link) const;

  /// Whether routes take the same ways as another router's, whatever they cost. Nodes must be of
  /// the same kinds, hosts and sockets, links of the same classes between the same ends, and peer
  /// access and forwarding by GPUs the same; then ways follow from the scope and the order of links
  /// by rate. False may be wrong.
  bool goes_as(const Router& other) const;
  /// From now on, a way that one of them finds is known to all that share, and to those no longer
  /// with which this one shared before. Not for use by several threads at once, then.
  /// \pre goes_as(other)
  void share_ways(const Router& other);
  bool shares_ways(const Router& other) const;

  const Topology& topology() const { return topology_; }
  const Profile& profile() const;
  std::shared_ptr<const Profile> shared_profile() const;
  LinkScope scope() const { return scope_; }
  /// No other router of this process has or had it, but the one that this was moved from: for who
  /// keeps what is known of a machine for longer than it may live.
  std::uint64_t id() const { return id_; }

 private:
  struct Impl;
  const Topology& topology_;
  LinkScope scope_;
  std::uint64_t id_;
  std::unique_ptr<Impl> impl_;
};

/// Whether the route crosses a link of the network.
bool crosses_network(const Topology& topology, const Route& route);

/// Whether the route passes a GPU between its ends.
bool passes_gpu(const Topology& topology, const Route& route);

/// Whether the route between the two nodes joins GPUs of one host that have to map each other's
/// memory for it: those count against Node::peer_limit.
bool maps_memory(const Topology& topology, const Route& route, NodeId from, NodeId to);

/// The names in a path "a>b>c", the form in which programs and plans name the nodes of a route.
std::vector<std::string> path_names(std::string_view path);
/// The other way round.
std::string path_text(const Topology& topology, const std::vector<NodeId>& path);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "topologies/profile.h"
#include "topologies/profile_set.h"

namespace espalier {

using NodeId = std::int32_t;
using LinkId = std::int32_t;

/// `nvswitch` forwards inside the GPU fabric, `pcie_switch` inside a host, `fabric` between hosts.
enum class NodeKind : std::uint8_t { gpu, cpu, pcie_switch, nvswitch, nic, fabric };

/// What a node gets from another one of its memory, where processes send each other messages.
enum class Arrival : std::uint8_t { fresh, unchanged, passed_on };

/// GB/s of that. 0: not modelled, or as of what is fresh.
struct ExchangeRates {
  double gbps = 0;            ///< written since the node got it last, into memory of its own
  double unchanged_gbps = 0;  ///< not written since: its caches may still have it
  double passed_on_gbps =
      0;  ///< into memory from which others get it, whose caches have to be told

  double of(Arrival arrival) const;
  auto operator<=>(const ExchangeRates&) const = default;
};

struct Node {
  std::string name;  ///< unique; "n3.gpu0" in a machine of several hosts
  NodeKind kind = NodeKind::gpu;
  std::string model;       ///< "v100-sxm2", or empty
  int host = 0;            ///< which host of the cluster; -1 for a shared fabric
  int numa = -1;           ///< socket, -1 when not known
  double memory_gbps = 0;  ///< read + write bytes/s of its memory, GB/s; 0: not modelled
  double reduce_gbps = 0;  ///< GB/s of `a` in c += a (k operands: k - 1 times); 0: not modelled
  double access_gbps = 0;  ///< GB/s its kernels read and write, in any memory; 0: not modelled
  ExchangeRates exchange;  ///< 0: as fast as it is copied
  std::string memory;      ///< of Topology::memories: where its memory is; empty: its own
  int peer_limit = 0;      ///< maximum number of peers that a GPU can map at once; 0: no limit
  int copy_engines = 0;    ///< described only, no simulation depends on it; 0: not known
  /// A switch that adds up what it reads at several GPUs, and stores to several: NVLS, SHARP.
  bool combines = false;
  double speed = 1;     ///< of computation (Program::durations_s), relative to its model
  std::string what_if;  ///< changes made by name: "speed=x0.5,memory_gbps=700"; empty: none
};

/// Whether it is one of those that may combine.
inline bool is_switch(const Node& node) {
  return node.kind == NodeKind::nvswitch || node.kind == NodeKind::fabric;
}

/// How the two directions of a link share its bandwidth. `full`:
/// each direction has `gbps`. `half`: both directions share
/// `gbps`. `shared`: all links with the same `medium` share it.
enum class Duplex : std::uint8_t { full, half, shared };

struct Link {
  NodeId a = 0;
  NodeId b = 0;
  std::string kind;  ///< "nvlink2", "pcie3x16", "ib_edr": a row of the link kind table
  LinkClass link_class = LinkClass::host;
  int count = 1;             ///< parallel links used as one bundle
  double gbps = 0;           ///< theoretical GB/s of one link and direction
  double measured_gbps = 0;  ///< GB/s of the whole bundle and direction by copy engine; 0: unknown
  double latency_s = 0;      ///< what the wire and its chips add, one way
  Duplex duplex = Duplex::full;
  std::string medium;          ///< set for `shared`
  std::string what_if;         ///< changes made by name: "gbps=x2"; empty: none
  double measured_factor = 1;  ///< `measured_gbps` is what was measured, times this
};

/// What is reached in a memory. 0: not modelled.
struct MemoryRates {
  double gbps = 0;              ///< reads and writes together
  double reduce_gbps = 0;       ///< as Node::reduce_gbps
  ExchangeRates exchange = {};  ///< of what nodes get from each other
};

/// What is reached while each GPU of a memory touches that many bytes of it, which caches may hold.
struct WorkingSet {
  double bytes = 0;
  MemoryRates all;  ///< by all GPUs at once
  MemoryRates one;  ///< by one of them alone, in place of its own figures
};

/// Memory that several nodes share: traffic in or out of
/// their parts also counts here, and so do their reductions.
struct SharedMemory : MemoryRates {
  /// Smaller ones first; from one to the next, times change with the logarithm of the bytes. The
  /// figures of the memory itself and of its nodes hold from twice the bytes of the last one on.
  std::vector<WorkingSet> working_sets = {};

  /// Of all nodes, where GPUs touch so many bytes each, in the mean.
  MemoryRates all_at(double bytes) const;
  /// Of a node that touches so many bytes. `own`: its own figures.
  MemoryRates one_at(double bytes, const MemoryRates& own) const;
};

/// A machine. Plain data; make one with `load_topology`, `parse_topology` or `generic_topology`,
/// which check it.
struct Topology {
  std::string name;  ///< as the user asked for it: "mist:nodes=4"
  std::string title;
  std::vector<std::string> sources;
  std::vector<std::string> notes;  ///< what its reader had to guess or leave out; of foreign files
  std::vector<Node> nodes;
  std::vector<Link> links;
  int hosts = 1;
  /// Which GPU pairs of one host may copy directly over PCIe or CPU links. `all`: any; `socket`:
  /// same numa; `fabric`: only pairs joined by a GPU fabric, others are staged through host memory.
  enum class PeerAccess : std::uint8_t { all, socket, fabric } peer_access = PeerAccess::all;
  /// GPUs forward traffic (torus networks of some accelerators). With NVLink they do not.
  bool gpus_forward = false;
  ProfileSet profiles;
  std::map<std::string, SharedMemory> memories;  ///< each once in every host

  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  Node& node(NodeId id) { return nodes[static_cast<std::size_t>(id)]; }
  const Link& link(LinkId id) const { return links[static_cast<std::size_t>(id)]; }
  Link& link(LinkId id) { return links[static_cast<std::size_t>(id)]; }
  /// Whether a memory is faster for few bytes (WorkingSet), so that part of a message may take less
  /// than its share of the time.
  bool has_working_sets() const;
  std::vector<NodeId> gpus() const;  ///< in file order; rank placement counts these
  std::optional<NodeId> find(std::string_view node_name) const;
  /// "kernel:ll": a profile with a protocol in use. "kernel" alone: the same with its protocol for
  /// bulk data. Throws Error{usage} with did-you-mean.
  Profile profile(const std::string& spec) const;
  /// The same without a copy: machines of one set of profiles share it.
  std::shared_ptr<const Profile> shared_profile(const std::string& spec) const;
  /// Whether a profile is `other`, or began with it (Profile::like), whatever stands in for that
  /// here. \pre both are known
  bool is_like(const std::string& profile, const std::string& other) const;
  /// The profiles that a spec leaves open, the one for bulk data first: "kernel:simple",
  /// "kernel:ll", ..., or itself. \pre `profile` takes it
  std::vector<std::string> open_profiles(const std::string& spec) const;
};

std::string_view to_string(NodeKind kind);
std::string_view to_string(LinkClass link_class);
std::string_view to_string(Duplex duplex);

/// What reports call a direction of a link: "gpu0->gpu3 nvlink2 x2"; with "<->" where both
/// directions share the bandwidth, and the medium's name where links do.
std::string link_name(const Topology& topology, LinkId link, bool forward);

/// What is wrong with `topology`: duplicate names, link ends, bandwidths and latencies out of
/// range, media, no GPU, figures of profiles. For machines built in code; loaded ones have passed.
std::vector<Diagnostic> check_topology(const Topology& topology);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/hash_numbers.h"
#include "run/backend.h"
#include "run/switches.h"
#include "sim/flow_engine.h"
#include "sim/time_unit.h"

namespace espalier {

/// What a transfer between two places needs, before any memory or reduction traffic.
struct Path {
  ResourceList resources;
  double latency_s = 0;
  StartUp start_up;
  double slice_s = 0;                ///< Route::slice_s
  double narrowest_bytes_per_s = 0;  ///< of its links
  bool is_fabric = false;            ///< over the GPU fabric alone
  /// Whose proxies post it as a message: where it leaves a host by a NIC, and where it comes in.
  std::optional<NodeId> sends;
  std::optional<NodeId> receives;
};

/// The machine of one simulation as resources of the flow engine, each made when first used:
/// a direction of a full-duplex link, a half-duplex link, a shared medium, a memory, a reduction
/// unit. Counts the bytes each carries. A route that crosses a shared medium several times uses it
/// once: what one station puts on a bus all others hear.
class MachineResources {
 public:
  /// `target.router` is set, and the rotation for a folded program, whose flows are those of one
  /// group of ranks; both are referred to until the report is made. `unit`: what the
  /// engine's ticks are. `message_bytes`: the whole message; memories may be faster for small ones.
  MachineResources(const Program& program, const Target& target, const TimeUnit& unit,
                   FlowEngine& engine, double message_bytes);

  /// \pre there is a route (rule R10). `via` is an index into Program::vias, or -1.
  const Path& path(PlaceId from, PlaceId to, int via);
  /// A link on that way. A folded program's stands for those of all groups.
  struct Passed {
    ResourceId link = kNoResource;
    int moves = 0;         ///< after how many groups' moves the first one's is the one passed
    double per_group = 1;  ///< see Rotation
    bool operator==(const Passed&) const = default;
  };
  std::vector<Passed> links_passed(PlaceId from, PlaceId to, int via);
  /// From a GPU to a switch, or back. \pre the switch carries out ops of this place (R10)
  const Path& path_to_switch(PlaceId from, NodeId to) { return path_of(node_of(from), to); }
  const Path& path_from_switch(NodeId from, PlaceId to) { return path_of(from, node_of(to)); }
  /// \pre there is one (R10)
  SwitchUse switch_of(const Op& op) const { return *espalier::switch_of(program_, op, target_); }

  /// Appends the memory of `place`, its own and what it has a part of, `times` times, when the
  /// profile models memory and it is known.
  void use_memory(PlaceId place, std::size_t times, ResourceList& resources);
  /// Same for the reduction rate of `place`.
  void use_reduction(PlaceId place, std::size_t times, ResourceList& resources);

  /// Same for what kernels of `place` can read and write, when the profile models memory.
  void use_access(PlaceId place, std::size_t times, ResourceList& resources);

  /// Whether any place gets less from others than links and memories have.
  bool has_exchange() const;
  /// Same for what one place gets from another one whose memory is a part of the same.
  void use_exchange(PlaceId from, PlaceId to, Arrival arrival, ResourceList& resources);

  /// The block, or the blocks, that carry out an op at `place`; kNoResource where its links are no
  /// faster. `lane`: which blocks; `blocks`: how many there are, in rates of a whole one.
  ResourceId block(PlaceId place, std::uint16_t lane, double blocks, double links_bytes_per_s);
  /// What so many blocks of the place pass over links of that rate.
  double block_bytes_per_s(PlaceId place, double blocks, double links_bytes_per_s) const;
  /// What so many blocks of the place copy within its memory.
  double copy_bytes_per_s(PlaceId place, double blocks) const;
  /// The lane's blocks where they pass no more than that, which is less than they could.
  ResourceId slowed_block(PlaceId place, std::uint16_t lane, double bytes_per_s);
  /// Same for what all blocks of a GPU can send, when the protocol limits it.
  void use_sender(PlaceId from, ResourceList& resources);
  /// The proxy of a GPU, or of a host's memory: the thread that posts its messages, those that it
  /// sends and those that it receives, one after the other.
  void use_proxy(NodeId of, ResourceList& resources);
  /// So many bytes of its proxies are a message; and what a sender's has to look through before it
  /// posts one of `bytes`, 0 where it need not.
  double message_bytes() const { return proxy_bytes_; }
  double checked_bytes(double bytes) const { return bytes * checked_share_; }
  /// The most bytes of a flow over proxies, of a message of `bytes`.
  static double most_proxy_bytes(const Router& router, double bytes);

  double bytes_per_s(ResourceId resource) const { return resources_[resource].bytes_per_s; }
  bool is_link(ResourceId resource) const { return resources_[resource].is_link; }
  /// Goes on with another engine, in whose ticks nothing has begun, for a message of any size.
  /// \pre memories are as fast for every size: `has_working_sets` of the topology is false
  void go_on_with(FlowEngine& engine);
  /// So many were made.
  std::size_t resources() const { return resources_.size(); }

  /// How long `place` computes what takes a GPU of its model so long.
  double computing_s(PlaceId place, double duration_s) const;

  /// A flow of `bytes` over `resources` was started.
  void count(std::span<const ResourceId> resources, double bytes);
  void count(ResourceId resource, double bytes) { carried_[resource] += bytes; }
  /// What was counted so far did not start.
  void count_anew() { carried_.assign(carried_.size(), 0); }

  /// The longest that anything is busy with what it carried, and that any link is, in seconds.
  struct LongestBusy {
    double any_s = 0;
    double link_s = 0;
  };
  LongestBusy longest_busy() const;
  /// Everything that carried bytes, the busiest first.
  std::vector<LinkUse> report(double time_s) const;

 private:
  /// What a name is made from: few simulations are asked for names.
  struct Label {
    enum class Kind : std::uint8_t { link, node, memory, lane };
    Kind kind = Kind::link;
    bool forward = true;     ///< of a link
    std::uint16_t lane = 0;  ///< whose blocks
    std::uint32_t id = 0;    ///< of the link, or of the node; of a memory, one that has part of it
    const char* what = "";   ///< of the node, of the memory or of the lane
  };
  struct Resource {
    Label label;
    double bytes_per_s = 0;
    bool is_link = false;   ///< or else memory or arithmetic of a node
    double per_group = 1;   ///< Rotation::per_group; of a folded program
    std::size_t parts = 1;  ///< a use counts as so many, of so many times the bytes
  };

  NodeId node_of(PlaceId place) const { return nodes_[static_cast<std::size_t>(place)]; }
  const Route& route_of(PlaceId from, PlaceId to, int via) const;
  Path made_of(NodeId from, NodeId to, const Route& route);
  const Path& path_of(NodeId from, NodeId to);
  ResourceId make(const Label& label, double gbps, bool is_link, double per_group,
                  std::size_t parts = 1);
  std::string name_of(const Label& label) const;
  ResourceId of_hop(const Hop& hop);
  double per_group(NodeId node) const;
  using ByHostAndName = std::map<std::pair<int, std::string>, ResourceId>;

  void use_node(std::vector<ResourceId>& by_node, NodeId node, const char* what, double gbps,
                std::size_t times, ResourceList& resources, std::size_t parts = 1);
  /// `gbps`: of its memory's rates.
  void use_shared(ByHostAndName& known, NodeId node, const char* what,
                  double (*gbps)(const MemoryRates&), std::size_t times, ResourceList& resources,
                  std::size_t parts = 1);
  double touched_bytes_of(NodeId node);
  const MemoryRates& rates_of(NodeId node);
  const MemoryRates& rates_of_memory(const Node& part);

  const Program& program_;
  const Target& target_;
  const Router& router_;
  const std::vector<NodeId> nodes_;  ///< by place
  const TimeUnit unit_;
  FlowEngine* engine_;
  const double message_bytes_;
  std::vector<double> touched_bytes_;  ///< by node; when first needed
  std::vector<Resource> resources_;
  std::vector<double> carried_;                      ///< bytes, by resource: counted for every flow
  std::vector<ResourceId> by_hop_;                   ///< 2 x link + direction
  std::vector<ResourceId> memory_;                   ///< by node
  std::vector<ResourceId> reduction_;                ///< by node
  const std::size_t access_parts_;                   ///< of an access of memory
  std::vector<ResourceId> access_;                   ///< by node
  std::array<std::vector<ResourceId>, 3> exchange_;  ///< by Arrival and node
  std::vector<std::optional<MemoryRates>> node_rates_;  ///< by node; when first needed
  std::vector<ResourceId> senders_;                     ///< by node
  std::vector<ResourceId> proxies_;                     ///< by node
  const double proxy_bytes_;
  const double checked_share_;
  std::vector<double> block_gbps_;                               ///< by node, or empty
  std::vector<double> copy_gbps_;                                ///< likewise
  std::vector<double> sender_gbps_;                              ///< likewise
  HashNumbers block_numbers_;                                    ///< by place and lane
  std::vector<ResourceId> blocks_;                               ///< by number
  std::unordered_map<std::uint64_t, ResourceId> slowed_blocks_;  ///< and by rate
  std::unordered_map<std::string, ResourceId> media_;
  std::map<std::pair<int, std::string>, MemoryRates> memory_rates_;
  ByHostAndName shared_memory_;
  ByHostAndName shared_reduction_;
  std::array<ByHostAndName, 3> shared_exchange_;          ///< by Arrival
  HashNumbers path_numbers_;                              ///< by transfer_key
  std::deque<Path> paths_;                                ///< by number; they stay where they are
  std::unordered_map<std::uint64_t, Path> switch_paths_;  ///< by nodes from and to, mixed
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "sim/machine_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/hash.h"
#include "run/transfer_key.h"
#include "sim/working_set.h"
#include "topologies/cpu_maker.h"

namespace espalier {
namespace {

constexpr double kBytesPerGigabyte = 1e9;
/// A proxy carries so many bytes per second: what it is busy for, in ns.
constexpr double kProxyGbps = 1;

/// By node, of the figures by GPU model: 0 of other nodes. Empty where there are no figures.
std::vector<double> by_node(const std::map<std::string, double>& by_model,
                            const Topology& machine) {
  std::vector<double> all;
  if (by_model.empty()) return all;
  all.reserve(machine.nodes.size());
  for (const Node& node : machine.nodes) {
    all.push_back(node.kind == NodeKind::gpu ? figure_of(by_model, node.model) : 0);
  }
  return all;
}

double gbps_of(const MemoryRates& rates) { return rates.gbps; }

std::string_view cpu_of(const Router& router) { return to_string(cpu_maker(router.topology())); }

double message_bytes_of(const Router& router) {
  const Profile& profile = router.profile();
  const double message_s = profile.message_s + figure_of(profile.message_more_s, cpu_of(router));
  return message_s * kProxyGbps * kBytesPerGigabyte;
}

/// Of what is sent, what its sender's proxy is busy with before it posts that.
double checked_share_of(const Router& router) {
  const double gbps = figure_of(router.profile().protocol.checked_gbps, cpu_of(router));
  return gbps > 0 ? kProxyGbps / gbps : 0;
}

/// Mostly once.
void add(ResourceList& resources, std::size_t times, ResourceId id) {
  for (std::size_t i = 0; i < times; ++i) resources.push_back(id);
}

/// What processes fetch takes as long as so many accesses of memory and a part of one.
constexpr std::size_t kAccessParts = 4;

}  // namespace

MachineResources::MachineResources(const Program& program, const Target& target,
                                   const TimeUnit& unit, FlowEngine& engine, double message_bytes)
    : program_(program),
      target_(target),
      router_(*target.router),
      nodes_(nodes_of_places(program, target.placement)),
      unit_(unit),
      engine_(&engine),
      message_bytes_(message_bytes),
      by_hop_(2 * router_.topology().links.size(), kNoResource),
      memory_(router_.topology().nodes.size(), kNoResource),
      reduction_(router_.topology().nodes.size(), kNoResource),
      access_parts_(has_exchange() ? kAccessParts : 1),
      access_(router_.topology().nodes.size(), kNoResource),
      node_rates_(router_.topology().nodes.size()),
      senders_(router_.topology().nodes.size(), kNoResource),
      proxies_(router_.topology().nodes.size(), kNoResource),
      proxy_bytes_(message_bytes_of(router_)),
      checked_share_(checked_share_of(router_)),
      block_gbps_(by_node(router_.profile().protocol.block_gbps, router_.topology())),
      copy_gbps_(by_node(router_.profile().protocol.copy_gbps, router_.topology())),
      sender_gbps_(by_node(router_.profile().protocol.gpu_gbps, router_.topology())) {
  for (auto& of_arrival : exchange_) of_arrival.assign(memory_.size(), kNoResource);
}

double MachineResources::computing_s(PlaceId place, double duration_s) const {
  return duration_s / router_.topology().node(node_of(place)).speed;
}

double MachineResources::per_group(NodeId node) const {
  return target_.rotation == nullptr ? 1 : target_.rotation->per_group(node);
}

/// Of something that groups of ranks share, each has a part: they do the same at the same time.
ResourceId MachineResources::make(const Label& label, double gbps, bool is_link, double per_group,
                                  std::size_t parts) {
  const double bytes_per_s = gbps * kBytesPerGigabyte * per_group * static_cast<double>(parts);
  const ResourceId id = engine_->add_resource(unit_.bytes_per_tick(bytes_per_s));
  CHECK(id == resources_.size());
  resources_.push_back({label, bytes_per_s, is_link, per_group, parts});
  carried_.push_back(0);
  return id;
}

void MachineResources::go_on_with(FlowEngine& engine) {
  engine_ = &engine;
  for (const Resource& one : resources_) {
    engine.add_resource(unit_.bytes_per_tick(one.bytes_per_s));
  }
  count_anew();
}

std::string MachineResources::name_of(const Label& label) const {
  const Topology& machine = router_.topology();
  if (label.kind == Label::Kind::link) {
    return link_name(machine, static_cast<LinkId>(label.id), label.forward);
  }
  const Node& node = machine.node(static_cast<NodeId>(label.id));
  if (label.kind == Label::Kind::lane) {
    return fmt::format("{} {} {}", node.name, label.what, label.lane);
  }
  if (label.kind == Label::Kind::node) return node.name + label.what;
  const std::string host = machine.hosts > 1 ? fmt::format("n{}.", node.host) : "";
  return host + node.memory + label.what;
}

ResourceId MachineResources::of_hop(const Hop& of_route) {
  const Topology& machine = router_.topology();
  const Rotation* const rotation = target_.rotation;
  const Hop hop = rotation == nullptr ? of_route : rotation->first(of_route);
  const double per_group = rotation == nullptr ? 1 : rotation->per_group(of_route);
  const Link& link = machine.link(hop.link);
  const bool forward = hop.forward || link.duplex != Duplex::full;
  ResourceId& id = by_hop_[2 * hop.link + (forward ? 0 : 1)];
  if (id != kNoResource) return id;
  if (link.duplex == Duplex::shared) {
    const auto [known, is_new] = media_.try_emplace(link.medium, kNoResource);
    if (is_new) {
      known->second = make({.id = static_cast<std::uint32_t>(hop.link)},
                           router_.capacity_gbps(hop.link), true, per_group);
    }
    id = known->second;
  } else {
    id = make({.forward = forward, .id = static_cast<std::uint32_t>(hop.link)},
              router_.capacity_gbps(hop.link), true, per_group);
  }
  return id;
}

const Route& MachineResources::route_of(PlaceId from, PlaceId to, int via) const {
  const Route* const route = via < 0
                                 ? router_.route(node_of(from), node_of(to))
                                 : router_.route(node_of(from), node_of(to), program_.vias[via]);
  CHECK(route != nullptr);
  return *route;
}

const Path& MachineResources::path(PlaceId from, PlaceId to, int via) {
  const std::uint64_t key = transfer_key(from, to, via);
  const std::uint32_t known = path_numbers_.find(key);
  if (known != HashNumbers::kNone) return paths_[known];
  Path made = made_of(node_of(from), node_of(to), route_of(from, to, via));
  path_numbers_.number(key);
  return paths_.emplace_back(std::move(made));
}

std::vector<MachineResources::Passed> MachineResources::links_passed(PlaceId from, PlaceId to,
                                                                     int via) {
  const Rotation* const rotation = target_.rotation;
  std::vector<Passed> passed;
  for (const Hop& hop : route_of(from, to, via).hops) {
    const Passed one = {.link = of_hop(hop),
                        .moves = rotation == nullptr ? 0 : rotation->moves(hop),
                        .per_group = rotation == nullptr ? 1 : rotation->per_group(hop)};
    const bool is_shared = router_.topology().link(hop.link).duplex == Duplex::shared;
    // As in made_of. With a rotation there is none (Rotation::find), so that moves are none either.
    if (is_shared && !passed.empty() && passed.back().link == one.link) continue;
    passed.push_back(one);
  }
  return passed;
}

const Path& MachineResources::path_of(NodeId from, NodeId to) {
  const auto bits = [](NodeId node) { return static_cast<std::uint64_t>(node); };
  const auto [known, is_new] = switch_paths_.try_emplace(mix64(bits(from) << 32 | bits(to)));
  if (is_new) {
    const Route* route = router_.route(from, to);
    CHECK(route != nullptr);
    known->second = made_of(from, to, *route);
  }
  return known->second;
}

Path MachineResources::made_of(NodeId from, NodeId to, const Route& route) {
  Path path;
  path.latency_s = route.latency_s;
  path.start_up = route.start_up;
  path.slice_s = route.slice_s;
  path.is_fabric = route.kind == RouteKind::gpu_fabric;
  for (const Hop& hop : route.hops) {
    const ResourceId id = of_hop(hop);
    const double narrowest = path.narrowest_bytes_per_s;
    path.narrowest_bytes_per_s = narrowest == 0 ? resources_[id].bytes_per_s
                                                : std::min(narrowest, resources_[id].bytes_per_s);
    const Link& link = router_.topology().link(hop.link);
    if (link.link_class == LinkClass::network) {
      const auto is_nic = [&](NodeId end) {
        return router_.topology().node(end).kind == NodeKind::nic;
      };
      if (is_nic(hop.forward ? link.a : link.b)) path.sends = from;
      if (is_nic(hop.forward ? link.b : link.a)) path.receives = to;
    }
    const bool is_shared = router_.topology().link(hop.link).duplex == Duplex::shared;
    // Passed along a medium, data is on it once; having left it, it is put there again.
    if (is_shared && !path.resources.empty() && path.resources.back() == id) continue;
    path.resources.push_back(id);
  }
  return path;
}

void MachineResources::use_node(std::vector<ResourceId>& by_node, NodeId node, const char* what,
                                double gbps, std::size_t times, ResourceList& resources,
                                std::size_t parts) {
  if (gbps <= 0) return;
  if (target_.rotation != nullptr) node = target_.rotation->first(node);
  ResourceId& id = by_node[node];
  if (id == kNoResource) {
    id = make({.kind = Label::Kind::node, .id = static_cast<std::uint32_t>(node), .what = what},
              gbps, false, per_group(node), parts);
  }
  add(resources, times, id);
}

double MachineResources::touched_bytes_of(NodeId node) {
  if (touched_bytes_.empty()) touched_bytes_ = touched_bytes(program_, target_, message_bytes_);
  return touched_bytes_[static_cast<std::size_t>(node)];
}

/// What a node reaches alone, for the bytes that the program touches there.
const MemoryRates& MachineResources::rates_of(NodeId node) {
  std::optional<MemoryRates>& rates = node_rates_[static_cast<std::size_t>(node)];
  if (rates) return *rates;
  const Node& part = router_.topology().node(node);
  rates = {part.access_gbps, part.reduce_gbps, part.exchange};
  if (part.memory.empty()) return *rates;
  const SharedMemory& memory = router_.topology().memories.at(part.memory);
  if (!memory.working_sets.empty()) rates = memory.one_at(touched_bytes_of(node), *rates);
  return *rates;
}

/// What all reach together that have their memory where the node has it.
const MemoryRates& MachineResources::rates_of_memory(const Node& part) {
  const Topology& machine = router_.topology();
  const auto [known, is_new] = memory_rates_.try_emplace({part.host, part.memory});
  if (!is_new) return known->second;
  const SharedMemory& memory = machine.memories.at(part.memory);
  known->second = memory;
  if (memory.working_sets.empty()) return known->second;
  double bytes = 0;
  int gpus = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
    const Node& node = machine.node(id);
    if (node.host != part.host || node.memory != part.memory) continue;
    bytes += touched_bytes_of(id);
    if (node.kind == NodeKind::gpu) ++gpus;
  }
  return known->second = memory.all_at(bytes / std::max(gpus, 1));
}

/// What several nodes of a host share, if `node` is one of them.
void MachineResources::use_shared(ByHostAndName& known, NodeId node, const char* what,
                                  double (*gbps)(const MemoryRates&), std::size_t times,
                                  ResourceList& resources, std::size_t parts) {
  const Node& part = router_.topology().node(node);
  if (part.memory.empty()) return;
  const auto [found, is_new] = known.try_emplace({part.host, part.memory}, kNoResource);
  if (const double shared_gbps = is_new ? gbps(rates_of_memory(part)) : 0; shared_gbps > 0) {
    found->second =
        make({.kind = Label::Kind::memory, .id = static_cast<std::uint32_t>(node), .what = what},
             shared_gbps, false, 1, parts);
  }
  if (found->second == kNoResource) return;  // not modelled
  add(resources, times, found->second);
}

void MachineResources::use_memory(PlaceId place, std::size_t times, ResourceList& resources) {
  if (!router_.profile().models_memory) return;
  const NodeId node = node_of(place);
  use_node(memory_, node, " memory", router_.topology().node(node).memory_gbps, times, resources);
  use_shared(shared_memory_, node, " memory", gbps_of, times * access_parts_, resources,
             access_parts_);
}

void MachineResources::use_reduction(PlaceId place, std::size_t times, ResourceList& resources) {
  const NodeId node = node_of(place);
  use_node(reduction_, node, " reduction", rates_of(node).reduce_gbps, times, resources);
  use_shared(
      shared_reduction_, node, " reduction",
      [](const MemoryRates& rates) { return rates.reduce_gbps; }, times, resources);
}

void MachineResources::use_access(PlaceId place, std::size_t times, ResourceList& resources) {
  if (!router_.profile().models_memory) return;
  const NodeId node = node_of(place);
  use_node(access_, node, " access", rates_of(node).gbps, times * access_parts_, resources,
           access_parts_);
}

bool MachineResources::has_exchange() const {
  const Topology& machine = router_.topology();
  return router_.profile().models_memory &&
         (std::ranges::any_of(machine.nodes,
                              [](const Node& node) { return node.exchange.gbps > 0; }) ||
          std::ranges::any_of(machine.memories,
                              [](const auto& one) { return one.second.exchange.gbps > 0; }));
}

void MachineResources::use_exchange(PlaceId from, PlaceId to, Arrival arrival,
                                    ResourceList& resources) {
  const NodeId source = node_of(from);
  const NodeId sink = node_of(to);
  const Node& here = router_.topology().node(sink);
  const Node& there = router_.topology().node(source);
  const bool is_within = there.host == here.host && there.memory == here.memory && source != sink;
  if (!is_within || here.memory.empty() || !router_.profile().models_memory) return;
  struct Kind {
    const char* name;
    double (*gbps)(const MemoryRates&);
  };
  static constexpr std::array<Kind, 3> kKinds{
      Kind{" exchange", [](const MemoryRates& of) { return of.exchange.of(Arrival::fresh); }},
      Kind{" exchange (unchanged)",
           [](const MemoryRates& of) { return of.exchange.of(Arrival::unchanged); }},
      Kind{" exchange (passed on)",
           [](const MemoryRates& of) { return of.exchange.of(Arrival::passed_on); }}};
  const auto number = static_cast<std::size_t>(arrival);
  const Kind& kind = kKinds[number];
  const MemoryRates& alone = rates_of(sink);
  const MemoryRates& together = rates_of_memory(here);
  use_node(exchange_[number], sink, kind.name, kind.gbps(alone), 1, resources);
  use_shared(shared_exchange_[number], sink, kind.name, kind.gbps, 1, resources);
  if (router_.profile().reduction != ReductionMode::separate) return;
  // A process that fetches does nothing else: as long as that takes, it could have read and written
  // so many times as many bytes. The memories of both ends count once anyway.
  const std::size_t both_ends = 2 * access_parts_;
  const auto parts = [&](const MemoryRates& rates) {
    const double accesses = kind.gbps(rates) > 0 ? rates.gbps / kind.gbps(rates) : 0;
    return static_cast<std::size_t>(accesses * static_cast<double>(access_parts_));
  };
  use_node(access_, sink, " access", alone.gbps, parts(alone), resources, access_parts_);
  use_shared(shared_memory_, sink, " memory", gbps_of,
             std::max(parts(together), both_ends) - both_ends, resources, access_parts_);
}

ResourceId MachineResources::block(PlaceId place, std::uint16_t lane, double blocks,
                                   double links_bytes_per_s) {
  if (block_gbps_.empty() || blocks <= 0) return kNoResource;
  const NodeId node = node_of(place);
  const double gbps = block_gbps_[static_cast<std::size_t>(node)] * blocks;
  if (gbps <= 0 || links_bytes_per_s <= gbps * kBytesPerGigabyte) return kNoResource;
  const std::uint64_t key = static_cast<std::uint64_t>(place) << 16 | lane;
  const std::uint32_t number = block_numbers_.number(mix64(key));
  if (number == blocks_.size()) {
    blocks_.push_back(make({.kind = Label::Kind::lane,
                            .lane = lane,
                            .id = static_cast<std::uint32_t>(node),
                            .what = "block"},
                           gbps, false, 1));
  }
  return blocks_[number];
}

double MachineResources::block_bytes_per_s(PlaceId place, double blocks,
                                           double links_bytes_per_s) const {
  const NodeId node = node_of(place);
  const double gbps =
      block_gbps_.empty() ? 0 : block_gbps_[static_cast<std::size_t>(node)] * blocks;
  return gbps <= 0 ? links_bytes_per_s : std::min(gbps * kBytesPerGigabyte, links_bytes_per_s);
}

double MachineResources::copy_bytes_per_s(PlaceId place, double blocks) const {
  const NodeId node = node_of(place);
  const double gbps = copy_gbps_.empty() ? 0 : copy_gbps_[static_cast<std::size_t>(node)] * blocks;
  return gbps > 0 ? gbps * kBytesPerGigabyte
                  : block_bytes_per_s(place, blocks, std::numeric_limits<double>::infinity());
}

ResourceId MachineResources::slowed_block(PlaceId place, std::uint16_t lane, double bytes_per_s) {
  const std::uint64_t lane_key = static_cast<std::uint64_t>(place) << 16 | lane;
  const std::uint64_t key = mix64(mix64(lane_key) ^ std::bit_cast<std::uint64_t>(bytes_per_s));
  const auto [known, is_new] = slowed_blocks_.try_emplace(key, kNoResource);
  if (is_new) {
    known->second = make({.kind = Label::Kind::lane,
                          .lane = lane,
                          .id = static_cast<std::uint32_t>(node_of(place)),
                          .what = "slowed block"},
                         bytes_per_s / kBytesPerGigabyte, false, 1);
  }
  return known->second;
}

void MachineResources::use_sender(PlaceId from, ResourceList& resources) {
  if (sender_gbps_.empty()) return;
  const NodeId node = node_of(from);
  use_node(senders_, node, " blocks", sender_gbps_[static_cast<std::size_t>(node)], 1, resources);
}

double MachineResources::most_proxy_bytes(const Router& router, double bytes) {
  return std::max(message_bytes_of(router), bytes * checked_share_of(router));
}

void MachineResources::use_proxy(NodeId of, ResourceList& resources) {
  use_node(proxies_, of, " proxy", kProxyGbps, 1, resources);
}

void MachineResources::count(std::span<const ResourceId> resources, double bytes) {
  for (const ResourceId id : resources) carried_[id] += bytes;
}

MachineResources::LongestBusy MachineResources::longest_busy() const {
  LongestBusy longest;
  for (ResourceId id = 0; id < resources_.size(); ++id) {
    const double busy_s = carried_[id] / resources_[id].bytes_per_s;
    longest.any_s = std::max(longest.any_s, busy_s);
    if (resources_[id].is_link) longest.link_s = std::max(longest.link_s, busy_s);
  }
  return longest;
}

std::vector<LinkUse> MachineResources::report(double time_s) const {
  std::vector<LinkUse> uses;
  for (ResourceId id = 0; id < resources_.size(); ++id) {
    const Resource& resource = resources_[id];
    if (carried_[id] <= 0) continue;
    const double busy_s = carried_[id] / resource.bytes_per_s;
    const int groups = target_.rotation == nullptr ? 1 : target_.rotation->groups();
    const double bytes = carried_[id] / static_cast<double>(resource.parts);
    uses.push_back({name_of(resource.label), bytes / resource.per_group, busy_s,
                    time_s > 0 ? busy_s / time_s : 0, resource.is_link,
                    static_cast<int>(std::lround(groups * resource.per_group))});
  }
  std::ranges::sort(uses, [](const LinkUse& a, const LinkUse& b) {
    return a.busy_s != b.busy_s ? a.busy_s > b.busy_s : a.name < b.name;
  });
  return uses;
}

}  // namespace espalier

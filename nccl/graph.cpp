// SPDX-License-Identifier: Apache-2.0
// NCCL's search, in outline (src/graph/search.cc): it goes down a table of rates, looks for as many
// channels of each as the links allow, keeps what carries most in all, and stops when nothing is
// left or the next rate is less than half of the best. Where the search itself is a heuristic with
// a time limit, here the most channels are counted: rings by planner/ring_search.h, ways through
// switches by what a GPU's links carry together.
#include "nccl/graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "nccl/bridges.h"
#include "nccl/rails.h"

namespace espalier {
namespace {

constexpr double kTolerance = 1e-6;
/// The next rate is tried when it is more than this share of the best one's.
constexpr double kLeastShare = 0.49;
/// Channels of at least this rate are split in two...
constexpr double kSplitGbps = 25;
/// ...but on Hopper and later, where there are enough of them, only from this rate on.
constexpr double kSplitHopperGbps = 50;
constexpr int kEnoughChannels = 4;
/// From this version on they are split before the search looks for faster trees, up to 2.17
/// afterwards (src/graph/search.cc of 2.17.1, 5d3ab08b, and of 2.19.3, 8c6c5951).
constexpr int kFirstSplitBeforeTrees = 18;
constexpr int kHopper = 90;
constexpr int kBlackwell = 100;
/// Peer traffic through an Intel CPU takes this much more of its links (src/graph/topo.h).
constexpr double kIntelOverhead = 6.0 / 5;
/// RCCL's channels of a ring over xGMI links, before doubling: estimate.
constexpr int kAmdChannelsPerRing = 2;

// The tables of rates: src/graph/search.cc at 2.6, 2.8, 2.10, 2.18 and 2.27.
constexpr double kUpTo7[] = {24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double kUpTo9[] = {42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
constexpr double kUpTo17[] = {44, 30, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kSince18[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kHopperRates[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kBlackwellRates[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kNetwork[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                               7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double kHopperNetwork[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                     15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr double kBlackwellNetwork[] = {96,   80, 48, 45.1, 42, 40,  30,  24,  22, 20,
                                        17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};

std::span<const double> rates(const NcclMachine& machine, NcclVersion version) {
  const bool has_network = machine.nodes > 1;
  if (version < 8) return kUpTo7;
  if (version < 10) return kUpTo9;
  if (machine.capability >= kBlackwell && version >= 23) {
    return has_network ? std::span<const double>(kBlackwellNetwork) : kBlackwellRates;
  }
  if (machine.capability >= kHopper && version >= 17) {
    return has_network ? std::span<const double>(kHopperNetwork) : kHopperRates;
  }
  if (has_network && version >= 12) return kNetwork;
  return version < 18 ? std::span<const double>(kUpTo17) : kSince18;
}

/// What a node's links allow: `total` in GB/s, each channel at most `widest`. `ways` that are no
/// wider than `widest` and can't be joined, or 0 where any rates add up to the total.
struct Room {
  double total_gbps = std::numeric_limits<double>::infinity();
  double widest_gbps = std::numeric_limits<double>::infinity();
  int ways = 0;

  int channels(double rate_gbps) const {
    if (rate_gbps > widest_gbps * (1 + kTolerance)) return 0;
    const double share = ways > 0 ? widest_gbps : total_gbps;
    const double fit = std::floor(share / rate_gbps * (1 + kTolerance));
    return static_cast<int>(std::min(fit, 1e6)) * std::max(1, ways);
  }
};

/// GB/s of a link of the fabric as NCCL counts it; as the machine says where NCCL knows no such
/// kind.
double fabric_gbps(const Router& counted, const NcclMachine& machine, LinkId id,
                   NcclVersion version) {
  const Link& link = counted.topology().link(id);
  const double known = nccl_link_gbps(link.kind, machine.capability, version);
  return known > 0 ? known : counted.capacity_gbps(id) / link.count;
}

/// Of the fabric links of the rank that has least: together, and one.
std::pair<double, double> fabric_of_least(const Router& counted, const NcclMachine& machine,
                                          const std::vector<NodeId>& gpus, NcclVersion version) {
  double least_gbps = std::numeric_limits<double>::infinity();
  double link_gbps = std::numeric_limits<double>::infinity();
  const Topology& topology = counted.topology();
  for (const NodeId gpu : gpus) {
    double sum_gbps = 0;
    for (LinkId id = 0; id < static_cast<LinkId>(topology.links.size()); ++id) {
      const Link& link = topology.link(id);
      if (link.link_class != LinkClass::gpu_fabric || (link.a != gpu && link.b != gpu)) continue;
      const double gbps = fabric_gbps(counted, machine, id, version);
      sum_gbps += gbps * link.count;
      link_gbps = std::min(link_gbps, gbps);
    }
    least_gbps = std::min(least_gbps, sum_gbps);
  }
  return {least_gbps, link_gbps};
}

/// What passes along a ring over routes of any kind at once: the busiest link's share.
double routed_gbps(const Router& counted, const NcclMachine& machine, const Placement& placement,
                   const Ring& ring) {
  std::map<std::pair<LinkId, bool>, int> uses;
  bool crosses_cpu = false;
  for (std::size_t i = 0; i < ring.order.size(); ++i) {
    const int next = ring.order[(i + 1) % ring.order.size()];
    const Route* route = counted.route(placement.ranks[static_cast<std::size_t>(ring.order[i])],
                                       placement.ranks[static_cast<std::size_t>(next)]);
    if (route == nullptr) continue;
    for (const Hop& hop : route->hops) {
      const Link& link = counted.topology().link(hop.link);
      ++uses[{hop.link, link.duplex != Duplex::full || hop.forward}];
      for (const NodeId end : {link.a, link.b}) {
        crosses_cpu = crosses_cpu || counted.topology().node(end).kind == NodeKind::cpu;
      }
    }
  }
  double gbps = std::numeric_limits<double>::infinity();
  for (const auto& [link, count] : uses) {
    gbps = std::min(gbps, counted.capacity_gbps(link.first) / count);
  }
  return crosses_cpu && machine.cpu == CpuMaker::intel ? gbps / kIntelOverhead : gbps;
}

/// The ranks of the first host alone.
Placement first_host(const Placement& placement) {
  Placement part;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    if (placement.machine_of_rank[rank] != placement.machine_of_rank.front()) continue;
    part.ranks.push_back(placement.ranks[rank]);
    part.machine_of_rank.push_back(placement.machine_of_rank[rank]);
  }
  part.host_of_rank.assign(part.ranks.size(), -1);
  return part;
}

Room room_in_node(const RingSet& set, const Router& counted, const NcclMachine& machine,
                  const Placement& placement, NcclVersion version) {
  const auto [total, link] = fabric_of_least(counted, machine, placement.ranks, version);
  const int ways = static_cast<int>(set.rings.size()) * (set.both_ways ? 2 : 1);
  switch (set.kind) {
    case RingKind::switched:
      return {total, total, 0};
    case RingKind::direct:
    case RingKind::relayed:
      // Between two GPUs a channel may take several links.
      if (placement.ranks.size() == 2) return {ways * link, ways * link, 0};
      return {ways * link, link, ways};
    default:
      break;
  }
  const double gbps = routed_gbps(counted, machine, placement, set.rings.front());
  return {gbps, gbps, 0};
}

/// Rings that use every link among eight GPUs, each joined to each, once in either direction. A
/// search finds them; two directions of fewer rings leave one link of every GPU idle, and RCCL
/// leaves none.
constexpr int kMeshRanks = 8;
constexpr int kMeshRings[kMeshRanks - 1][kMeshRanks] = {
    {0, 7, 6, 4, 1, 2, 3, 5}, {0, 5, 7, 4, 6, 2, 1, 3}, {0, 4, 3, 7, 5, 2, 6, 1},
    {0, 3, 2, 7, 1, 6, 5, 4}, {0, 6, 3, 4, 2, 5, 1, 7}, {0, 2, 4, 7, 3, 1, 5, 6},
    {0, 1, 4, 5, 3, 6, 7, 2}};

bool is_mesh(const Router& counted, const Placement& placement) {
  if (placement.ranks.size() != kMeshRanks) return false;
  for (const NodeId a : placement.ranks) {
    for (const NodeId b : placement.ranks) {
      if (a == b) continue;
      const auto hop = counted.hop(a, b);
      const bool is_fabric =
          hop && counted.topology().link(hop->link).link_class == LinkClass::gpu_fabric;
      if (!is_fabric) return false;
    }
  }
  return true;
}

/// The search tries how much faster trees are inside nodes, up to the first rate that is twice as
/// high: it goes up the table from the rate between nodes, if the table has that. A node's only GPU
/// has nothing inside to limit it. The tuner counts the faster rate between two nodes.
double tree_rate(const NcclMachine& machine, const Room& inside, NcclVersion version,
                 const NcclGraph& graph) {
  double best = graph.rate_gbps;
  if (machine.nodes != 2 || version < 7) return best;
  const std::span<const double> table = rates(machine, version);
  if (std::ranges::find(table, best) == table.end()) return best;
  for (auto rate = table.rbegin(); rate != table.rend(); ++rate) {  // ascending
    if (*rate <= best || best >= 2 * graph.rate_gbps) continue;
    if (inside.channels(*rate) < graph.channels) break;
    best = *rate;
  }
  return best;
}

/// Channels of the best rate.
void search_rates(const NcclMachine& machine, const Room& inside, NcclVersion version,
                  NcclGraph& graph) {
  const int limit = version >= 26 ? kMaxNcclChannels : kMaxNcclChannels / 2;
  graph.channels = 0;
  const auto channels_at = [&](double rate_gbps) {
    int channels = std::min(limit, inside.channels(rate_gbps));
    if (machine.nodes > 1) {
      const double per_nic = std::floor(machine.nic_gbps / rate_gbps * (1 + kTolerance));
      channels = std::min(channels, static_cast<int>(per_nic) * machine.nics);
    }
    return channels;
  };
  const double total_gbps =
      machine.nodes > 1 ? std::min(inside.total_gbps, machine.nics_gbps) : inside.total_gbps;
  const std::span<const double> table = rates(machine, version);
  for (const double rate_gbps : table) {
    if (graph.channels > 0 && rate_gbps <= kLeastShare * graph.rate_gbps) break;
    const int channels = channels_at(rate_gbps);
    if (channels * rate_gbps <= graph.gbps() * (1 + kTolerance)) continue;
    graph.channels = channels;
    graph.rate_gbps = rate_gbps;
    if (graph.gbps() >= total_gbps * (1 - kTolerance)) break;
  }
  if (graph.channels == 0) {  // less than the slowest rate: NCCL falls back to this
    graph.channels = 1;
    graph.rate_gbps = std::max(0.1, std::min(total_gbps, table.back()));
  }
  const bool stays_whole = machine.capability >= kHopper && graph.rate_gbps < kSplitHopperGbps &&
                           graph.channels > kEnoughChannels;
  const bool is_split =
      graph.rate_gbps >= kSplitGbps && !stays_whole && 2 * graph.channels <= limit;
  graph.tree_rate_gbps = tree_rate(machine, inside, version, graph);
  if (!is_split) return;
  graph.channels *= 2;
  graph.rate_gbps /= 2;
  graph.tree_rate_gbps = version < kFirstSplitBeforeTrees
                             ? graph.tree_rate_gbps / 2
                             : tree_rate(machine, inside, version, graph);
}

/// Every port carries what its GPU is head of once more than the rest: n + 1 shares of n heads, of
/// which there are no more than channels.
void search_nvls(const NcclMachine& machine, const Router& counted, const Placement& node,
                 NcclVersion version, NcclGraph& graph) {
  if (!machine.switches_combine || version < 17 || node.ranks.size() < 2) return;
  const auto [port_gbps, unused] = fabric_of_least(counted, machine, node.ranks, version);
  const int heads = std::min(static_cast<int>(node.ranks.size()), kMaxNcclChannels);
  double most_gbps = port_gbps / (heads + 1);
  if (machine.nodes > 1) most_gbps = std::min(most_gbps, machine.nics_gbps / heads);
  for (const double rate_gbps : rates(machine, version)) {
    if (rate_gbps > most_gbps * (1 + kTolerance)) continue;
    graph.nvls_channels = heads;
    graph.nvls_rate_gbps = rate_gbps;
    graph.nvls_network_gbps = rate_gbps;
    break;
  }
  if (machine.nodes == 1 || graph.nvls_channels == 0) return;
  const std::span<const double> table = rates(machine, version);
  for (auto rate = table.rbegin(); rate != table.rend(); ++rate) {  // as of trees
    const double twice = 2 * graph.nvls_rate_gbps;
    if (*rate <= graph.nvls_network_gbps || graph.nvls_network_gbps >= twice) continue;
    if (*rate > machine.nics_gbps / heads * (1 + kTolerance)) break;
    graph.nvls_network_gbps = *rate;
  }
}

/// By where a ring goes over to another node: the positions of the first and the last rank of each
/// stretch in one node.
std::vector<std::pair<std::size_t, std::size_t>> stretches(const NcclMachine& machine,
                                                           const Ring& ring) {
  const std::size_t n = ring.order.size();
  const auto node_at = [&](std::size_t at) { return machine.node_of(ring.order[at % n]); };
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t first = 0; first < n; ++first) {
    if (node_at(first) == node_at(first + n - 1)) continue;
    std::size_t last = first;
    while (node_at(last + 1) == node_at(first)) ++last;
    found.emplace_back(first, last % n);
  }
  return found;
}

/// A ring leaves a node by the NIC that it came in by. Behind NVSwitches, where any order will do,
/// the last GPU is one that is as near to that NIC, if there is one. If not, the NIC's GPU relays.
void set_rails(const NcclMachine& machine, const NcclRails& rails, bool any_order, Ring& ring) {
  const std::size_t n = ring.order.size();
  for (const auto& [first, last] : stretches(machine, ring)) {
    const int enters = ring.order[first];
    for (std::size_t at = first + 1; any_order && at % n != last; ++at) {
      if (at > first + n || rails.is_near(ring.order[last], enters)) break;
      if (rails.is_near(ring.order[at % n], enters))
        std::swap(ring.order[at % n], ring.order[last]);
    }
    const int by = rails.sender_of_ring(enters, ring.order[last]);
    ring.relays[last] = by == ring.order[last] ? -1 : by;
  }
}

}  // namespace

int nccl_blocks(const NcclGraph& graph) { return std::min(2 * graph.channels, kMaxNcclChannels); }

NcclGraph nccl_graph(const NcclMachine& machine, const Router& router, const Placement& placement,
                     NcclVersion version, bool pxn) {
  const auto profile = router.topology().shared_profile(kNcclLinksProfile);
  std::optional<Router> made;
  const Router& counted = profile == router.shared_profile()
                              ? router
                              : made.emplace(router.topology(), profile, router.scope());
  const RingOptions options{version >= kFirstNcclWithNvb};
  const RingSet set = find_rings(counted, placement, options);
  NcclGraph graph;
  graph.kind = set.kind;
  graph.why_not = set.why_not;
  if (!set.why_not.empty()) return graph;
  // With one GPU for each node all channels pass the nodes in one order, and none backwards.
  const bool is_alone = machine.nodes > 1 && machine.ranks == machine.nodes;
  for (const Ring& ring : set.rings) {
    graph.rings.push_back(ring);
    if (is_alone) break;
    if (set.both_ways) graph.rings.push_back(ring.reversed());
  }
  graph.same_order = graph.rings.size() == 1;
  Placement node = placement;
  RingSet inside = set;
  if (set.kind == RingKind::network) {
    node = first_host(placement);
    if (node.ranks.size() > 1) inside = find_rings(counted, node, options);
  }
  const Room room = node.ranks.size() > 1 && inside.why_not.empty()
                        ? room_in_node(inside, counted, machine, node, version)
                        : Room{};
  if (machine.nodes > 1 && node.ranks.size() > 1) graph.kind = inside.kind;
  graph.nvb = NcclBridges(machine, router, placement, version).any();
  graph.pxn = pxn && version >= kFirstNcclWithPxn && machine.nodes > 1 && !is_alone;
  if (machine.nodes > 1) {
    const NcclRails rails(machine, router, placement, graph.pxn);
    for (Ring& ring : graph.rings) {
      set_rails(machine, rails, inside.kind == RingKind::switched, ring);
    }
  }
  search_rates(machine, room, version, graph);
  if (machine.is_amd && machine.nodes == 1 && set.kind == RingKind::direct) {
    if (is_mesh(counted, placement)) {
      graph.rings.clear();
      for (const auto& order : kMeshRings) {
        graph.rings.push_back(
            {{std::begin(order), std::end(order)}, std::vector<int>(kMeshRanks, -1)});
      }
    }
    graph.channels = static_cast<int>(graph.rings.size()) * kAmdChannelsPerRing;
    graph.rate_gbps = room.widest_gbps / kAmdChannelsPerRing;
    graph.same_order = false;
  }
  search_nvls(machine, counted, node, version, graph);
  return graph;
}

}  // namespace espalier

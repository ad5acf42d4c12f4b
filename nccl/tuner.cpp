// SPDX-License-Identifier: Apache-2.0
// The tables of NCCL's tuner. Read in NVIDIA/nccl src/graph/tuning.cc and src/enqueue.cc at commits
// b221128e (2.6), 7e515921 (2.10), 8c6c5951 (2.19), ab2b89c4 (2.21), 68b54236 (2.23), 593de54e
// (2.27) and 5067397c (2.29); versions between have the tables of the one before, unless noted.
#include "nccl/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace espalier {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

enum Hardware { nvlink, pcie, network };
using ByProtocol = std::array<double, 3>;  // ll, ll128, simple

double of(const ByProtocol& values, NcclProtocol protocol) {
  return values[static_cast<std::size_t>(protocol)];
}

/// us.
ByProtocol base_us(NcclAlgorithm algorithm, int version) {
  if (algorithm == NcclAlgorithm::tree) {
    if (version < 18) return {4.4, 4.4, 0};
    return {6.8, 14, version < 23 ? 0 : 8.4};
  }
  if (version < 7) return {3.6, 3.6, 8.4};
  if (version < 18) return {3.6, 10, 8.4};
  return {6.6, 14, 8.4};
}

ByProtocol tree_hop_us(Hardware hardware, int version) {
  if (version < 7) {
    if (hardware == nvlink) return {0.5, 1.9, 28};
    return hardware == pcie ? ByProtocol{1, 1.9, 28} : ByProtocol{5, 7.5, 50};
  }
  if (version < 18) {
    if (hardware == nvlink) return {0.52, 1.25, 28};
    if (hardware == pcie) return {1, 1.9, 28};
    return {5, 8.5, version < 10 ? 50.0 : 28.0};
  }
  // 2.18.3 alone has 4, 6 and 14 for Simple, and is not told from the other 2.18.
  if (version < 23) {
    if (hardware == nvlink) return {0.6, 1.25, 28};
    return hardware == pcie ? ByProtocol{1, 1.9, 28} : ByProtocol{5, 8.5, 28};
  }
  if (hardware == nvlink) return {0.6, 1.25, 4};
  return hardware == pcie ? ByProtocol{1, 1.9, 4} : ByProtocol{5, 8.5, 14};
}

ByProtocol ring_hop_us(Hardware hardware, int version) {
  if (hardware == pcie) return {1, 2.5, 5.7};
  if (version < 7) {
    return hardware == nvlink ? ByProtocol{0.4, 2.5, 5.7} : ByProtocol{0.9, 2.5, 6.6};
  }
  if (version < 18) {
    if (hardware == nvlink) return {0.47, 1.9, 3.4};
    return {2.7, 4, version == 12 || version == 13 ? 28 : 9.6};
  }
  return hardware == nvlink ? ByProtocol{0.6, 1.9, 3.4} : ByProtocol{2.7, 4, 14};
}

/// What a row of a table of bandwidths is for: one node, two, or more.
std::size_t column(int nodes) { return static_cast<std::size_t>(std::min(nodes, 3) - 1); }
using ByNodes = std::array<double, 3>;

/// GB/s that LL reaches at most.
double ll_most(const NcclMachine& machine, int version) {
  static constexpr std::array<ByNodes, 4> kByEra = {
      {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
  if (machine.nodes > 1 && machine.era <= NcclGpuEra::ampere) {  // by the CPU's vendor
    return kByEra[machine.cpu == NcclCpu::amd ? 1 : 0][column(machine.nodes)];
  }
  NcclGpuEra era = machine.era;
  if (version < 21) era = std::min(era, NcclGpuEra::ampere);
  if (machine.nodes > 1 && version < 21) {
    return kByEra[machine.cpu == NcclCpu::amd ? 1 : 0][column(machine.nodes)];
  }
  return kByEra[static_cast<std::size_t>(era)][column(machine.nodes)];
}

/// GB/s of a channel's ring under LL128, since 2.10.
double ring_ll128_of_channel(const NcclMachine& machine, int version) {
  if (machine.era <= NcclGpuEra::ampere || version < 18) return 20;
  if (machine.era == NcclGpuEra::hopper) return 36.7;
  return version < 23 ? 36.7 : version < 28 ? 73.4 : 40;
}

double tree_ll128_of_channel(const NcclMachine& machine, int version) {
  if (machine.era <= NcclGpuEra::ampere || version < 18) return 20;
  if (machine.era == NcclGpuEra::hopper || version < 23) return machine.nodes > 2 ? 29 : 36.7;
  static constexpr ByNodes kBlackwell = {55.6, 31.7, 20};
  return version < 28 ? 73.4 : kBlackwell[column(machine.nodes)];
}

/// GB/s of a channel's tree under Simple, since 2.8.
double tree_of_channel(const NcclMachine& machine, int version) {
  static constexpr std::array<ByNodes, 3> kByEra = {
      {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}}};
  static constexpr ByNodes kBlackwell = {70, 42.8, 24};
  NcclGpuEra era = machine.era;
  if (version < 18) era = std::min(era, NcclGpuEra::ampere);
  if (era == NcclGpuEra::blackwell) {
    if (version >= 28) return kBlackwell[column(machine.nodes)];
    const double hopper = kByEra[2][column(machine.nodes)];
    return version < 23 ? hopper : 2 * hopper;
  }
  return kByEra[static_cast<std::size_t>(era)][column(machine.nodes)];
}

/// What the expected bandwidth of trees is multiplied by, from messages of 64 bytes on, each row
/// for twice the size of the one before; 1 beyond.
double tree_factor(NcclProtocol protocol, double bytes, int version) {
  static constexpr double kLl[] = {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7,
                                   .6, .5, .4, .4, .5, .6, .7, .8, .9};
  static constexpr double kLl128[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                      .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1};
  static constexpr double kSimple[] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                       .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};
  static constexpr double kOldLl[] = {1,  1,  1,  1,  .9, .8, .7, .7, .7,
                                      .7, .5, .5, .5, .6, .7, .8, .9, .9};
  static constexpr double kOldLl128[] = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .8, .7,
                                         .7, .7, .6, .6, .7, .7, .8, .8, .9, .9};
  static constexpr double kOldSimple[] = {.5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9};
  using Row = std::span<const double>;
  const std::array<Row, 3> old_rows = {Row(kOldLl), Row(kOldLl128), Row(kOldSimple)};
  const std::array<Row, 3> rows = {Row(kLl), Row(kLl128), Row(kSimple)};
  const Row table = (version < 7 ? old_rows : rows)[static_cast<std::size_t>(protocol)];
  const double doublings = bytes < 64 ? 0 : std::floor(std::log2(bytes / 64));
  return doublings < static_cast<double>(table.size()) ? table[static_cast<std::size_t>(doublings)]
                                                       : 1;
}

/// Of the collectives that have a table.
std::size_t row_of(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
      return 0;
    case Collective::reduce:
      return 1;
    case Collective::allgather:
      return 2;
    case Collective::reducescatter:
      return 3;
    default:
      return 4;
  }
}

/// Steps of LL inside nodes, where there are several.
constexpr double kLlBetweenNodes = 1.8;

constexpr std::string_view kOffByDefault = "off unless NCCL_COLLNET_ENABLE=1";

class Tuner {
 public:
  Tuner(Collective collective, double bytes, const NcclMachine& machine, const NcclGraph& graph,
        int version)
      : collective_(collective),
        bytes_(bytes),
        machine_(machine),
        graph_(graph),
        version_(version),
        inside_(graph.is_nvlink() || graph.kind == RingKind::relayed ? nvlink : pcie) {}

  NcclCell cell(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    NcclCell made{algorithm, protocol, latency_us(algorithm, protocol) * 1e-6,
                  0,         kNever,   why_not(algorithm, protocol)};
    if (made.why_not == kOffByDefault) made.asked_for = NcclAskedFor::by_algorithm;
    if (!made.why_not.empty() && made.asked_for == NcclAskedFor::never) return made;
    made.gbps = gbps(algorithm, protocol);
    if (algorithm == NcclAlgorithm::tree) made.gbps *= tree_factor(protocol, bytes_, version_);
    made.time_s = made.latency_s + bytes_ / (made.gbps * 1e9);
    return made;
  }

 private:
  bool is_allreduce() const { return collective_ == Collective::allreduce; }
  bool is_rooted() const { return info(collective_).rooted; }
  int n() const { return machine_.ranks; }
  int nodes() const { return machine_.nodes; }
  double levels() const { return std::floor(std::log2(nodes())); }

  std::string why_not(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    if (const int first = first_version_of(algorithm); version_ < first) {
      return fmt::format("since 2.{}", first);
    }
    const bool simple_only = algorithm != NcclAlgorithm::ring && algorithm != NcclAlgorithm::tree;
    if (simple_only && protocol != NcclProtocol::simple) return std::string(kSimpleOnly);
    if (protocol == NcclProtocol::ll128) {
      if (auto reason = why_no_ll128(); !reason.empty()) return reason;
    }
    return why_no_algorithm(algorithm);
  }

  std::string why_no_ll128() const {
    if (version_ < 5) return "since 2.5";
    if (machine_.is_amd || machine_.capability < 70) return "needs sm70 or later";
    if (!graph_.is_nvlink() && !(graph_.kind == RingKind::relayed && version_ >= 18) &&
        machine_.ranks_per_node > 1) {
      return "needs NVLink in the node";
    }
    const bool by_neighbor = machine_.capability >= 90 && machine_.shared_near_nics;
    if (nodes() > 1 && !machine_.near_nics && !by_neighbor) {
      return "a CPU lies between GPUs and NICs";
    }
    if (!machine_.alike && machine_.capability < 90) return "GPUs differ";
    return {};
  }

  std::string why_no_nvls() const {
    if (graph_.nvls_channels == 0) return "no NVSwitch combines";
    if (is_rooted()) return "not for rooted collectives";
    return machine_.ranks_per_node <= 2 ? "needs three GPUs of a node" : "";
  }

  std::string why_no_collnet() const {
    return machine_.network_combines ? std::string(kOffByDefault)
                                     : "no switch of the network combines";
  }

  std::string why_no_algorithm(NcclAlgorithm algorithm) const {
    switch (algorithm) {
      case NcclAlgorithm::tree:
        return is_allreduce() ? "" : "allreduce only";
      case NcclAlgorithm::collnet_direct:
      case NcclAlgorithm::collnet_chain:
        if (!is_allreduce()) return "allreduce only";
        return nodes() == 1 ? "between nodes only" : why_no_collnet();
      case NcclAlgorithm::nvls:
        if (const std::string why = why_no_nvls(); !why.empty()) return why;
        if (!is_allreduce() && nodes() > 1) return "allreduce only between nodes";
        if (!is_allreduce() && version_ < 19) return "allreduce only";
        return nodes() == 1 ? "" : why_no_collnet();
      case NcclAlgorithm::nvls_tree:
        if (const std::string why = why_no_nvls(); !why.empty()) return why;
        if (!is_allreduce()) return "allreduce only";
        return nodes() == 1 ? "between nodes only" : "";
      case NcclAlgorithm::pat:
        if (is_allreduce() || is_rooted()) return "allgather and reducescatter only";
        return machine_.ranks_per_node > 1 || nodes() == 1 ? "needs one GPU per node" : "";
      default:
        return {};
    }
  }

  double latency_us(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    const double per_node = static_cast<double>(n()) / nodes();
    const double network_us = of(ring_hop_us(network, version_), NcclProtocol::simple);
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return ring_latency_us(protocol);
      case NcclAlgorithm::tree:
        return of(base_us(algorithm, version_), protocol) +
               2 * ((per_node - 1) * ll_factor(protocol) *
                        of(tree_hop_us(inside_, version_), protocol) +
                    levels() * of(tree_hop_us(network, version_), protocol));
      case NcclAlgorithm::collnet_direct:
        return 31 + 2 * (std::min(1.0, per_node - 1) * 3.7 + (per_node - 1) * 0.4);
      case NcclAlgorithm::collnet_chain:
        return 30 + 2 * (per_node - 1) * 2.8;
      case NcclAlgorithm::nvls:
        return (version_ < 21 ? 23 : 25) + (nodes() > 1 ? 18 : 0);
      case NcclAlgorithm::nvls_tree:
        return 25 + 2 * std::log2(nodes()) * 20.9;
      case NcclAlgorithm::pat:
        return 8 + std::log2(nodes()) * network_us / 3.5 + 2.8 * n();
      case NcclAlgorithm::p2p:
      case NcclAlgorithm::symmetric:
        break;
    }
    return 0;
  }

  /// Of hops inside nodes.
  double ll_factor(NcclProtocol protocol) const {
    const bool is_slower =
        nodes() > 1 && protocol == NcclProtocol::ll && version_ >= 8 && version_ < 18;
    return is_slower ? kLlBetweenNodes : 1;
  }

  double ring_latency_us(NcclProtocol protocol) const {
    const double base = of(base_us(NcclAlgorithm::ring, version_), protocol);
    double inside_us = of(ring_hop_us(inside_, version_), protocol);
    const double network_us = of(ring_hop_us(network, version_), protocol);
    if (is_rooted()) {
      const Hardware slowest = nodes() > 1 ? network : inside_;
      if (graph_.same_order) return base + of(ring_hop_us(slowest, version_), protocol);
      const ByProtocol hop = protocol == NcclProtocol::simple ? tree_hop_us(slowest, version_)
                                                              : ring_hop_us(slowest, version_);
      return base + n() * of(hop, protocol);
    }
    const int rounds = is_allreduce() ? 2 : 1;
    const double hops = rounds * (n() - 1);
    // 2.10 and before: as many as nodes are left and entered. Between, the first version is not
    // known: at 2.17 it is so.
    const bool counts_all = is_allreduce() && nodes() > 1 && version_ >= 12;
    const double network_hops = counts_all ? 2 * nodes() : rounds * (nodes() - 1);
    if (nodes() > 1 && version_ >= 18) {  // what a post to the network costs, at least
      const double post_us = machine_.cpu == NcclCpu::amd ? 2 : 1;
      inside_us = std::max(inside_us, post_us * (protocol == NcclProtocol::simple ? 3 : 1));
    }
    inside_us *= ll_factor(protocol);
    double latency = base + (hops - network_hops) * inside_us + network_hops * network_us;
    const bool has_plateau = nodes() > 1 && version_ >= 8 && is_allreduce() &&
                             protocol == NcclProtocol::simple && is_on_plateau();
    return has_plateau ? latency * plateau() : latency;
  }

  /// Where rings between nodes take longer than their hops.
  bool is_on_plateau() const {
    if (version_ < 18) return bytes_ >= n() / 16.0 * 65536;
    return bytes_ / (static_cast<double>(nccl_blocks(graph_)) * n()) >= 64;
  }
  double plateau() const {
    if (version_ < 18) return machine_.capability < 90 ? 1.9 : 1.5;
    return machine_.capability < 80 ? 1.9 : 1.4;
  }

  double graph_gbps() const {
    const double gbps = graph_.gbps();
    if (version_ >= 18 || machine_.capability < 80) return gbps;
    return std::min(gbps, machine_.capability < 90 ? 235.0 : 370.0);
  }

  double gbps(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    // Of the whole buffer, in as many times as every byte crosses a link of a ring.
    const double ring_share = static_cast<double>(n()) /
                              (is_rooted() ? n() : (is_allreduce() ? 2 : 1) * std::max(1, n() - 1));
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return ring_gbps(protocol) * ring_share;
      case NcclAlgorithm::tree:
        return tree_gbps(protocol) / 2;
      case NcclAlgorithm::nvls:
      case NcclAlgorithm::nvls_tree:
        return version_ < 23 ? nvls_gbps() : nvls_gbps() * ring_share;
      case NcclAlgorithm::pat:
        return graph_gbps() * ring_share;
      default:
        return graph_gbps();
    }
  }

  double ring_gbps(NcclProtocol protocol) const {
    const double all = graph_gbps();
    const int channels = graph_.channels;
    if (protocol == NcclProtocol::simple) return all;
    if (protocol == NcclProtocol::ll) {
      const bool is_half = is_allreduce() || collective_ == Collective::reduce;
      const bool wide = version_ >= 7 && !is_half && nodes() == 1;
      const double share = version_ >= 21 ? all / 2 : wide ? all / 3 : all / 4;
      return version_ < 8 ? share : std::min(ll_most(machine_, version_), share);
    }
    static constexpr std::array<double, 5> kMost = {113, 72, 110, 91, 100};
    static constexpr std::array<double, 5> kOfChannel = {18.8, 12, 18.3, 15.2, 16.7};
    const std::size_t row = row_of(collective_);
    if (version_ < 7) return std::min(all * 120 / 128, kMost[row]);
    const double of_channel = version_ < 10 ? (version_ == 8 && row == 4 ? 16.9 : kOfChannel[row])
                                            : ring_ll128_of_channel(machine_, version_);
    // GPUs that send and receive over their NIC alike lose more.
    const bool is_alone = version_ >= 10 && nodes() > 1 && machine_.ranks_per_node < 2;
    return std::min((is_alone ? 0.7 : 0.92) * all, channels * of_channel);
  }

  double tree_gbps(NcclProtocol protocol) const {
    const double all = graph_gbps();
    double bulk = 0;
    if (version_ < 7) {
      bulk = std::min(0.9 * all, nodes() > 2 ? 80.0 : 110.0);
    } else if (version_ < 8) {
      bulk = std::min(0.9 * all, 110.0);
    } else {
      bulk = std::min(0.92 * all, graph_.channels * tree_of_channel(machine_, version_));
    }
    if (protocol == NcclProtocol::ll) {
      bulk = version_ < 7 ? bulk / 3 : bulk / 3.8;
      if (version_ >= 8) bulk = std::min(bulk, ll_most(machine_, version_));
    } else if (protocol == NcclProtocol::ll128) {
      const double between_nodes = version_ < 8 ? 0.915 : 120.0 / 128;
      const double share = version_ >= 7 && nodes() > 1 ? between_nodes : 7.0 / 9;
      bulk *= share;
      if (version_ >= 10) {
        bulk = std::min(bulk, graph_.channels * tree_ll128_of_channel(machine_, version_));
      } else if (version_ >= 7) {
        bulk = std::min(bulk, graph_.channels * 16.7 * share);
      }
    }
    // Since 2.18, trees of Hopper and later are plain ones: all of a node's traffic passes one GPU.
    return version_ >= 18 && machine_.capability >= 90 ? 0.85 * bulk : bulk;
  }

  double nvls_gbps() const {
    const double all = graph_.nvls_channels * graph_.nvls_rate_gbps;
    if (version_ < 18) return graph_gbps() * 0.75;
    if (version_ < 23) return all * 5 / 6;
    const double efficiency = machine_.era == NcclGpuEra::blackwell ? 0.74 : 0.85;
    const double ranks = machine_.ranks_per_node;
    const double of_rounds = is_allreduce() ? 2 : (ranks - 1) / ranks;
    return all * efficiency * (graph_.nvls_channels - 1) / graph_.nvls_channels * of_rounds;
  }

  Collective collective_;
  double bytes_;
  const NcclMachine& machine_;
  const NcclGraph& graph_;
  int version_;
  Hardware inside_;
};

/// RCCL on GPUs joined by xGMI: rings, under LL for less than this. Fitted on its allgather on 8
/// MI300X (17 to 19 us up to 256 KiB, 33 us from 512 KiB on); the other collectives are an
/// estimate.
constexpr double kRcclLlBytes = 512 * 1024;

void choose_as_rccl(double bytes, std::vector<NcclCell>& cells) {
  const auto protocol = bytes < kRcclLlBytes ? NcclProtocol::ll : NcclProtocol::simple;
  for (NcclCell& cell : cells) {
    if (!cell.why_not.empty() || cell.algorithm != NcclAlgorithm::ring) continue;
    if (cell.protocol == protocol) continue;
    cell.why_not = "RCCL: LL for less than 512 KiB";
    cell.asked_for = NcclAskedFor::by_either;
  }
}

/// LL up to a size for each thread of each channel, else Simple; trees between nodes up to a size
/// (NCCL 2.4: src/enqueue.cc, ncclTreeThreshold of src/init.cc).
void choose_without_table(Collective collective, double bytes, const NcclMachine& machine,
                          const NcclGraph& graph, std::vector<NcclCell>& cells) {
  constexpr int kThreads = 256;
  const bool rooted = info(collective).rooted;
  double per_thread = 64;
  if (machine.capability < 70) per_thread = 32;
  if (machine.nodes > 1) per_thread *= 2;
  const double ll_bytes = per_thread * nccl_blocks(graph) * kThreads * (rooted ? 1 : machine.ranks);
  const auto protocol = bytes <= ll_bytes ? NcclProtocol::ll : NcclProtocol::simple;

  // Bytes per us, and us.
  const bool on_nvlink = graph.is_nvlink();
  const double ring = on_nvlink ? 5000.0 * nccl_blocks(graph) : 5000.0;
  const double tree = ring * (on_nvlink ? 0.75 * (machine.nodes == 2 ? 2 : 1) : 2.0 / 3);
  const double ring_us = 6.0 * (machine.ranks - 1);
  const double tree_us = 15 * std::floor(std::log2(machine.nodes)) +
                         4.0 * (static_cast<double>(machine.ranks) / machine.nodes - 1);
  double tree_bytes = 0;
  if (machine.nodes > 1 && ring_us > tree_us) {
    tree_bytes = tree > ring ? kNever : ring * tree / (ring - tree) * (ring_us - tree_us);
  }
  const bool by_tree = collective == Collective::allreduce && bytes < tree_bytes;
  const auto algorithm = by_tree ? NcclAlgorithm::tree : NcclAlgorithm::ring;
  for (NcclCell& cell : cells) {
    if (!cell.why_not.empty()) continue;
    // Of what the environment may ask for, the algorithm first and then the protocol that sizes
    // decide on come before others.
    const bool is_other_algorithm = cell.algorithm != algorithm;
    const bool is_other_protocol = cell.protocol != protocol;
    cell.time_s = (is_other_algorithm ? 2 : 0) + (is_other_protocol ? 1 : 0);
    cell.gbps = 0;
    if (!is_other_algorithm && !is_other_protocol) continue;
    cell.why_not = "not at this size";
    cell.asked_for = NcclAskedFor::by_either;
  }
}

}  // namespace

std::vector<NcclCell> nccl_cells(Collective collective, double bytes, const NcclMachine& machine,
                                 const NcclGraph& graph, int version) {
  const Tuner tuner(collective, bytes, machine, graph, version);
  std::vector<NcclCell> cells;
  for (const NcclAlgorithm algorithm : all_nccl_algorithms()) {
    if (algorithm == NcclAlgorithm::p2p || algorithm == NcclAlgorithm::symmetric) continue;
    for (const NcclProtocol protocol : all_nccl_protocols()) {
      cells.push_back(tuner.cell(algorithm, protocol));
    }
  }
  if (version < 5) choose_without_table(collective, bytes, machine, graph, cells);
  if (machine.is_amd) choose_as_rccl(bytes, cells);
  return cells;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// How NCCL's tuner makes latencies and bandwidths of its constants (nccl/tuner_tables.h, which
// has the commits): NVIDIA/nccl src/graph/tuning.cc and src/enqueue.cc.
#include "nccl/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nccl/rccl_tuner.h"
#include "nccl/tuner_base.h"
#include "nccl/tuner_tables.h"

namespace espalier {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Steps of LL inside nodes, where there are several, from 2.7 to 2.17.
constexpr double kLlBetweenNodes = 1.8;

constexpr std::string_view kOffByDefault = "off unless NCCL_COLLNET_ENABLE=1";

class Tuner : public NcclTunerBase {
 public:
  Tuner(Collective collective, double bytes, const NcclMachine& machine, const NcclGraph& graph,
        NcclVersion version)
      : NcclTunerBase(collective, bytes, machine, graph,
                      graph.is_nvlink() || graph.kind == RingKind::relayed ? NcclHardware::nvlink
                                                                           : NcclHardware::pcie),
        version_(version) {}

 private:
  NcclCell cell(NcclAlgorithm algorithm, NcclProtocol protocol) const override {
    NcclCell made{algorithm, protocol, latency_us(algorithm, protocol) * 1e-6,
                  0,         kNever,   why_not(algorithm, protocol)};
    if (made.why_not == kOffByDefault) made.asked_for = NcclAskedFor::by_algorithm;
    if (!made.why_not.empty() && made.asked_for == NcclAskedFor::never) return made;
    made.gbps = gbps(algorithm, protocol);
    if (algorithm == NcclAlgorithm::tree) made.gbps *= nccl_tree_factor(protocol, bytes_, version_);
    made.time_s = made.latency_s + bytes_ / (made.gbps * 1e9);
    return made;
  }

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

  /// Up to 2.26 the GPUs for which it was tried.
  bool is_known_to_ll128() const {
    switch (machine_.capability) {
      case 70:
      case 80:
        return true;
      case 90:
        return version_ >= 17;
      case 100:
      case 120:
        return version_ >= 25;
      default:
        return version_ >= 27;
    }
  }

  std::string why_no_ll128() const {
    if (version_ < 5) return "since 2.5";
    if (machine_.is_amd || machine_.capability < 70) return "needs sm70 or later";
    if (!is_known_to_ll128()) {
      return fmt::format("not enabled for sm{} before 2.{}", machine_.capability,
                         machine_.capability == 90                                  ? 17
                         : machine_.capability == 100 || machine_.capability == 120 ? 25
                                                                                    : 27);
    }
    if (!graph_.is_nvlink() && !(graph_.kind == RingKind::relayed && version_ >= 18) &&
        machine_.ranks_per_node > 1) {
      return "needs NVLink in the node";
    }
    const bool by_neighbor = machine_.capability >= 90 && machine_.shared_near_nics && graph_.pxn;
    if (nodes() > 1 && !machine_.near_nics && !by_neighbor) {
      return "a CPU lies between GPUs and NICs";
    }
    const bool may_differ = version_ >= 30 && machine_.capability >= 90;
    return machine_.alike || may_differ ? "" : "GPUs differ";
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
        if (nodes() == 1) return "between nodes only";
        if (algorithm == NcclAlgorithm::collnet_direct && graph_.kind != RingKind::switched) {
          return "needs an NVSwitch";
        }
        return why_no_collnet();
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

  double base_us(NcclAlgorithm algorithm, NcclProtocol protocol) const override {
    return of(nccl_base_us(algorithm, version_), protocol);
  }
  double tree_hop_us(NcclHardware hardware, NcclProtocol protocol) const override {
    return of(nccl_tree_hop_us(hardware, version_, machine_.cpu == CpuMaker::power), protocol);
  }
  double ring_hop_us(NcclHardware hardware, NcclProtocol protocol) const override {
    return of(nccl_ring_hop_us(hardware, version_), protocol);
  }

  double latency_us(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    const double others = per_node() - 1;
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return ring_latency_us(protocol) * (is_on_plateau(protocol) ? plateau() : 1);
      case NcclAlgorithm::tree:
        return tree_latency_us(protocol);
      case NcclAlgorithm::collnet_direct:
        if (version_ < 18) return 10.7 + 2 * (std::min(1.0, others) * 8 + others * 0.5);
        return collnet_us(31, protocol) + 2 * (std::min(1.0, others) * 3.7 + others * 0.4);
      case NcclAlgorithm::collnet_chain:
        return version_ < 18 ? 2 * others * 8 : collnet_us(30, protocol) + 2 * others * 2.8;
      case NcclAlgorithm::nvls:
        if (version_ < 18) return 40;
        return (version_ < 21 ? 23 : 25) + (nodes() > 1 ? 18 : 0);
      case NcclAlgorithm::nvls_tree:
        return 25 + 2 * levels() * (version_ < 29 ? 14 : 20.9);
      case NcclAlgorithm::pat:
        return 8 + levels() * ring_hop_us(NcclHardware::network, NcclProtocol::simple) / 3.5 +
               2.8 * n();
      case NcclAlgorithm::p2p:
      case NcclAlgorithm::symmetric:
        break;
    }
    return 0;
  }

  /// What the network adds to collnet. With one GPU for each node nothing hides it, as in rings.
  double collnet_us(double with_several_gpus, NcclProtocol protocol) const {
    return version_ >= 23 && is_alone() ? tree_hop_us(NcclHardware::network, protocol)
                                        : with_several_gpus;
  }

  double inside_factor(NcclProtocol protocol) const override {
    const bool is_slower =
        nodes() > 1 && protocol == NcclProtocol::ll && version_ >= 7 && version_ < 18;
    return is_slower ? kLlBetweenNodes : 1;
  }

  double least_inside_us(NcclProtocol protocol) const override {
    return version_ >= 18 ? NcclTunerBase::least_inside_us(protocol) : 0;
  }

  double between_nodes_us(NcclProtocol protocol) const override {
    return version_ >= 23 ? NcclTunerBase::between_nodes_us(protocol)
                          : ring_hop_us(NcclHardware::network, protocol);
  }

  double hops_between_nodes() const override {
    // The first version that counts one more each time round is not known: at 2.17 it is so, at
    // 2.10 not; 2.25 counts as 2.10, and 2.23 is when the function was rewritten.
    const bool is_one_more = is_allreduce() && version_ >= 12 && version_ < 23;
    return is_one_more ? 2 * nodes() : NcclTunerBase::hops_between_nodes();
  }

  /// Where rings between nodes take longer than their hops.
  bool is_on_plateau(NcclProtocol protocol) const {
    const bool has_plateau =
        nodes() > 1 && version_ >= 7 && is_allreduce() && protocol == NcclProtocol::simple;
    if (!has_plateau) return false;
    if (version_ < 18) return bytes_ >= n() / 16.0 * 65536;
    return bytes_ / (static_cast<double>(nccl_blocks(graph_)) * n()) >= 64;
  }
  double plateau() const {
    if (version_ < 18) return machine_.capability < 90 ? 1.9 : 1.5;
    return machine_.capability < 80 ? 1.9 : 1.4;
  }

  /// Up to 2.17 with a limit by generation.
  double limited_gbps(double gbps) const {
    if (version_ >= 18) return gbps;
    const NcclGpuEra era = nccl_row(machine_, version_);
    return era == NcclGpuEra::volta ? gbps
                                    : std::min(gbps, era == NcclGpuEra::ampere ? 235. : 370.);
  }
  double graph_gbps() const { return limited_gbps(graph_.gbps()); }
  double tree_graph_gbps() const { return limited_gbps(graph_.channels * graph_.tree_rate_gbps); }

  double gbps(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return ring_gbps(protocol) * ring_share();
      case NcclAlgorithm::tree:
        return tree_gbps(protocol) / 2;
      case NcclAlgorithm::nvls:
      case NcclAlgorithm::nvls_tree:
        return nvls_gbps(algorithm);
      case NcclAlgorithm::pat:
        return 0.75 * tree_graph_gbps();
      case NcclAlgorithm::collnet_direct:
        return collnet_direct_gbps() / 2;
      default:
        return (version_ < 18 ? 0.75 : 1) * graph_gbps() / 2;
    }
  }

  double ring_gbps(NcclProtocol protocol) const {
    const double all = graph_gbps();
    if (protocol == NcclProtocol::simple) return all;
    if (protocol == NcclProtocol::ll) {
      const bool is_half = is_allreduce() || collective_ == Collective::reduce;
      const bool wide = version_ >= 7 && !is_half && nodes() == 1;
      const double share = version_ >= 21 ? all / 2 : wide ? all / 3 : all / 4;
      return version_ < 8 ? share : std::min(nccl_ll_most(machine_, version_), share);
    }
    if (version_ < 7) return std::min(all * 120 / 128, nccl_ring_ll128_most(collective_));
    const double share = version_ < 23 && is_alone() ? 0.7 : 0.92;
    return std::min(share * all,
                    graph_.channels * nccl_ring_ll128_of_channel(collective_, machine_, version_));
  }

  double tree_gbps(NcclProtocol protocol) const {
    const double all = tree_graph_gbps();
    double bulk = 0;
    if (version_ < 8) {
      const bool is_fast = version_ == 7 && protocol == NcclProtocol::ll128 &&
                           nccl_row(machine_, version_) == NcclGpuEra::ampere;
      bulk =
          std::min(0.9 * all, nodes() > 2 ? (is_fast ? 105.0 : 80.0) : (is_fast ? 130.0 : 110.0));
    } else {
      bulk = std::min(0.92 * all, graph_.channels * nccl_tree_of_channel(machine_, version_));
    }
    if (protocol == NcclProtocol::ll) {
      bulk = version_ < 7 ? bulk / 3 : bulk / 3.8;
      if (version_ >= 8) bulk = std::min(bulk, nccl_ll_most(machine_, version_));
    } else if (protocol == NcclProtocol::ll128) {
      const double between_nodes = version_ < 10 ? 0.915 : 120.0 / 128;
      bulk *= version_ >= 7 && nodes() > 1 ? between_nodes : 7.0 / 9;
      if (version_ >= 7) {
        bulk = std::min(bulk, graph_.channels * nccl_tree_ll128_of_channel(machine_, version_));
      }
    }
    // Since 2.18, of plain trees: all of a node's traffic passes one GPU. Those of Hopper and later
    // are, and those of nodes that have no other GPU.
    const bool is_plain = machine_.capability >= 90 || is_alone();
    return version_ >= 18 && is_plain ? 0.85 * bulk : bulk;
  }

  double nvls_gbps(NcclAlgorithm algorithm) const {
    if (version_ < 18) return graph_gbps() * 0.75;
    const int channels = graph_.nvls_channels;
    const bool is_tree = algorithm == NcclAlgorithm::nvls_tree;
    const double others = (per_node() - 1) / per_node();
    double inside = graph_.nvls_rate_gbps;
    double between = nodes() > 1 ? graph_.nvls_network_gbps : kNever;
    if (version_ < 28) {
      // Until 2.22 of all collectives as of an allreduce.
      const double share = is_allreduce() || version_ < 23 ? 5.0 / 6 : 1;
      if (!is_allreduce() && version_ == 27) inside *= others;
      if (is_tree && nodes() > 2) between /= 2;
      return channels * std::min(inside, between) * share;
    }
    const double efficiency = machine_.era == NcclGpuEra::blackwell ? 0.74 : 0.85;
    inside *= efficiency * (channels - 1) / channels * (is_allreduce() ? 2 : others);
    if (is_tree) {
      if (nodes() <= 2) between *= 2;
      between = std::min(between, nccl_nvls_tree_of_channel(machine_, version_));
    }
    return channels * std::min(inside, between) * (is_allreduce() ? ring_share() : 1);
  }

  /// As fast as NICs, if every GPU has one.
  double collnet_direct_gbps() const {
    const double gpus_per_nic = per_node() / graph_.channels;
    const double gbps = graph_gbps() / (gpus_per_nic - (gpus_per_nic - 1) / 2);
    return version_ >= 18 && machine_.capability >= 90 ? 0.85 * gbps : gbps;
  }

  NcclVersion version_;
};

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
                                 const NcclGraph& graph, NcclVersion version) {
  if (machine.is_amd) return rccl_cells(collective, bytes, machine, graph);
  std::vector<NcclCell> cells = Tuner(collective, bytes, machine, graph, version).cells();
  if (version < kFirstNcclWithTable) choose_without_table(collective, bytes, machine, graph, cells);
  return cells;
}

}  // namespace espalier

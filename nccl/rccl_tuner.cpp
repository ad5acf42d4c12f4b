// SPDX-License-Identifier: Apache-2.0
// RCCL's tuner: NCCL's with tables of its own for every machine, of which this is MI300X's
// (tuning_model_5 of ROCm/rccl src/graph/tuning.cc@9e22c79d; a copy without its commit, from before
// there was LL128 for that GPU, has the same figures for LL and Simple). LL128 came to it later and
// is not chosen here. On other GPUs of AMD these are estimates.
#include "nccl/rccl_tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "nccl/tuner_base.h"

namespace espalier {
namespace {

/// Of an algorithm: LL, and Simple.
struct Pair {
  double ll = 0;
  double simple = 0;

  double of(NcclProtocol protocol) const { return protocol == NcclProtocol::ll ? ll : simple; }
};

// us.
constexpr Pair kBase = {12, 17};
constexpr std::array<Pair, 3> kTreeHop = {{{0.9, 2.3}, {2.2, 5.7}, {10.5, 25}}};  // NcclHardware
constexpr std::array<Pair, 3> kRingHop = {{{0.8, 2.1}, {2.2, 5.7}, {9.5, 320}}};

/// Shares of the graph's bandwidth: up to two nodes, more.
constexpr std::array<Pair, 2> kTreeShare = {{{0.06, 0.11}, {0.06, 0.59}}};
constexpr std::array<Pair, 2> kRingShare = {{{0.08, 1}, {0.08, 1}}};
/// Of LL in broadcasts and reductions of one node.
constexpr double kRootedLl = 1.65;

// From messages of 64 bytes on, each for twice the size of the one before; the last one beyond.
constexpr double kTreeLl[] = {.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                              1,  1,  .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr double kTreeSimple[] = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                  .1, .7, 1,  1,  1,  1,  1,  .7, .7, .5, .6, .6, .6};
constexpr double kRingLl[] = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                              .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr double kRingSimple[] = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                  .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, 1,  1,  1};

double factor(std::span<const double> row, double bytes) {
  const double doublings = bytes < 64 ? 0 : std::floor(std::log2(bytes / 64));
  return row[std::min(static_cast<std::size_t>(doublings), row.size() - 1)];
}

class RcclTuner : public NcclTunerBase {
 public:
  RcclTuner(Collective collective, double bytes, const NcclMachine& machine, const NcclGraph& graph)
      : NcclTunerBase(collective, bytes, machine, graph,
                      graph.is_nvlink() ? NcclHardware::nvlink : NcclHardware::pcie) {}

 private:
  NcclCell cell(NcclAlgorithm algorithm, NcclProtocol protocol) const override {
    NcclCell made{algorithm, protocol, 0, 0, std::numeric_limits<double>::infinity(), {}};
    made.why_not = why_not(algorithm, protocol);
    if (!made.why_not.empty()) return made;
    const bool is_ring = algorithm == NcclAlgorithm::ring;
    made.latency_s = (is_ring ? ring_latency_us(protocol) : tree_latency_us(protocol)) * 1e-6;
    made.gbps = is_ring ? ring_gbps(protocol) : tree_gbps(protocol);
    made.time_s = made.latency_s + bytes_ / (made.gbps * 1e9);
    return made;
  }

  std::size_t by_nodes() const { return nodes() <= 2 ? 0 : 1; }

  std::string why_not(NcclAlgorithm algorithm, NcclProtocol protocol) const {
    if (algorithm != NcclAlgorithm::ring && algorithm != NcclAlgorithm::tree) {
      return "not in RCCL on these GPUs";
    }
    if (protocol == NcclProtocol::ll128) return "not in RCCL 2.21";
    if (algorithm == NcclAlgorithm::ring) return "";
    if (!is_allreduce()) return "allreduce only";
    return protocol == NcclProtocol::simple && nodes() == 1 ? "between nodes only" : "";
  }

  double base_us(NcclAlgorithm, NcclProtocol protocol) const override { return kBase.of(protocol); }
  double tree_hop_us(NcclHardware hardware, NcclProtocol protocol) const override {
    return kTreeHop[static_cast<std::size_t>(hardware)].of(protocol);
  }
  double ring_hop_us(NcclHardware hardware, NcclProtocol protocol) const override {
    return kRingHop[static_cast<std::size_t>(hardware)].of(protocol);
  }

  double ring_gbps(NcclProtocol protocol) const {
    double gbps = graph_.gbps() * kRingShare[by_nodes()].of(protocol);
    if (protocol == NcclProtocol::ll && is_rooted() && nodes() == 1) gbps *= kRootedLl;
    gbps *= ring_share();
    if (nodes() == 1) return gbps;
    return gbps *
           (protocol == NcclProtocol::ll ? factor(kRingLl, bytes_) : factor(kRingSimple, bytes_));
  }

  double tree_gbps(NcclProtocol protocol) const {
    return graph_.gbps() * kTreeShare[by_nodes()].of(protocol) / 2 *
           (protocol == NcclProtocol::ll ? factor(kTreeLl, bytes_) : factor(kTreeSimple, bytes_));
  }
};

}  // namespace

std::vector<NcclCell> rccl_cells(Collective collective, double bytes, const NcclMachine& machine,
                                 const NcclGraph& graph) {
  return RcclTuner(collective, bytes, machine, graph).cells();
}

}  // namespace espalier

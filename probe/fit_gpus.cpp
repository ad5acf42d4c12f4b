// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/median.h"
#include "probe/fit_figures.h"
#include "probe/fit_parts.h"
#include "topologies/gpu_models.h"

namespace espalier {
namespace {

// GB/s of one NVLink and direction, by generation.
constexpr std::array kNvlinkGbps{0.0, 20.0, 25.0, 25.0, 25.0, 50.0};
// Of NVLinks to switches that add up and multicast, for those who ask them to: NCCL's NVLS.
constexpr int kFirstThatCombine = 4;
// Where nothing is known and nothing could be measured.
constexpr double kSomeGbps = 25;

std::size_t index(int number) { return static_cast<std::size_t>(number); }

int socket_of(const ProbedDevice& device) { return std::max(device.numa, 0); }

/// GPUs with memories of their own, in the order of the survey.
class GpuFit {
 public:
  GpuFit(const Survey& survey, Topology& machine)
      : survey_(survey), best_(best_copies(survey)), machine_(machine) {}

  void run() {
    add_gpus();
    for (const ProbedNvlink& nvlink : survey_.inventory.nvlinks) add_nvlink(nvlink);
    add_cpus();
    for (int gpu = 0; gpu < gpus(); ++gpu) add_host_path(gpu);
    add_sockets();
    set_peer_access();
    for (const FittedProfile& profile : fitted_profiles(survey_)) set_profile(profile);
  }

 private:
  /// Of the first host.
  int gpus() const { return survey_.inventory.ranks_of_a_host(); }
  const ProbedDevice& device(int gpu) const { return survey_.inventory.devices[index(gpu)]; }

  void add_gpus() {
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      const MemoryRates rates = fit_memory(survey_.alone[index(gpu)]);
      add_node(machine_, fmt::format("gpu{}", gpu), NodeKind::gpu);
      Node& node = machine_.nodes.back();
      node.model = model_of_device(device(gpu).name);
      node.numa = device(gpu).numa;
      node.memory_gbps = sane_gbps(rates.gbps);
      node.reduce_gbps = sane_or_0(rates.reduce_gbps);
      node.copy_engines = device(gpu).copy_engines;
    }
  }

  bool reaches_switch(int gpu) const {
    return std::ranges::any_of(survey_.inventory.nvlinks, [&](const ProbedNvlink& link) {
      return link.device == gpu && link.peer == ProbedNvlink::kSwitch;
    });
  }

  bool has_nvlink(int a, int b) const {
    const bool direct =
        std::ranges::any_of(survey_.inventory.nvlinks, [&](const ProbedNvlink& link) {
          return (link.device == a && link.peer == b) || (link.device == b && link.peer == a);
        });
    return direct || (reaches_switch(a) && reaches_switch(b));
  }

  /// The GPUs at the other end of these links, behind a switch all that reach it.
  std::vector<int> partners(const ProbedNvlink& nvlink) const {
    if (nvlink.peer != ProbedNvlink::kSwitch) return {nvlink.peer};
    std::vector<int> others;
    for (int gpu = 0; gpu < gpus(); ++gpu) {
      if (gpu != nvlink.device && reaches_switch(gpu)) others.push_back(gpu);
    }
    return others;
  }

  NodeId nvswitch() {
    if (!nvswitch_) {
      nvswitch_ = add_node(machine_, "nvswitch", NodeKind::nvswitch);
      machine_.nodes.back().combines =
          std::ranges::any_of(survey_.inventory.nvlinks, [](const ProbedNvlink& link) {
            return link.peer == ProbedNvlink::kSwitch && link.generation >= kFirstThatCombine;
          });
    }
    return *nvswitch_;
  }

  void add_nvlink(const ProbedNvlink& nvlink) {
    const bool known = index(nvlink.generation) < kNvlinkGbps.size();
    const double theory_gbps = known ? kNvlinkGbps[index(nvlink.generation)] : 0;
    const std::string kind =
        nvlink.generation > 0 ? fmt::format("nvlink{}", nvlink.generation) : "nvlink";
    const NodeId peer = nvlink.peer == ProbedNvlink::kSwitch ? nvswitch() : nvlink.peer;
    Link& link = add_link(machine_, nvlink.device, peer, kind, LinkClass::gpu_fabric,
                          theory_gbps > 0 ? theory_gbps : kSomeGbps, nvlink.count);
    std::vector<double> there;
    std::vector<double> back;
    std::vector<double> both;
    std::vector<double> by_kernel;
    for (const int partner : partners(nvlink)) {
      const auto here = index(nvlink.device);
      const auto other = index(partner);
      there.push_back(best_.pairs[here][other].gbps);
      back.push_back(best_.pairs[other][here].gbps);
      both.push_back(best_.both_ways_gbps[std::min(here, other)][std::max(here, other)]);
      by_kernel.push_back(
          std::min(survey_.kernel.pairs[here][other].gbps, survey_.kernel.pairs[other][here].gbps));
      note_overhead(kind, [&](const CopyFigures& copies) {
        return std::max(copies.pairs[here][other].latency_s, copies.pairs[other][here].latency_s);
      });
    }
    if (there.empty()) return;  // the only GPU at a switch: there was nothing to measure
    set_capacity(link, theory_gbps, median(there), median(back), median(both));
    note_efficiency(link, median(by_kernel), 0);
  }

  void add_cpus() {
    std::set<int> sockets;
    for (int gpu = 0; gpu < gpus(); ++gpu) sockets.insert(socket_of(device(gpu)));
    for (const int socket : sockets) {
      cpus_[socket] = add_node(machine_, fmt::format("cpu{}", socket), NodeKind::cpu);
      machine_.nodes.back().numa = socket;
    }
  }

  /// The GPU, its switches, its socket.
  std::vector<NodeId> path_to_host(int gpu) {
    std::vector<NodeId> path{gpu};
    for (const std::string& name : device(gpu).switches) {
      const auto [known, is_new] = switches_.try_emplace(name, 0);
      if (is_new) {
        const std::string node = fmt::format("plx{}", switches_.size() - 1);
        known->second = add_node(machine_, node, NodeKind::pcie_switch);
      }
      path.push_back(known->second);
    }
    path.push_back(cpus_.at(socket_of(device(gpu))));
    return path;
  }

  /// What a GPU's PCIe link carries. The host's memory may lie at another socket: then other GPUs
  /// may be reached faster.
  struct Port {
    double out_gbps = 0;
    double in_gbps = 0;
    double both_gbps = 0;
  };
  Port port_of(const CopyFigures& copies, int gpu) const {
    const std::size_t at = index(gpu);
    Port port{copies.to_host[at].gbps, copies.from_host[at].gbps, copies.host_both_ways_gbps[at]};
    for (int other = 0; other < gpus(); ++other) {
      if (other == gpu || has_nvlink(gpu, other)) continue;
      const std::size_t to = index(other);
      port.out_gbps = std::max(port.out_gbps, copies.pairs[at][to].gbps);
      port.in_gbps = std::max(port.in_gbps, copies.pairs[to][at].gbps);
      port.both_gbps =
          std::max(port.both_gbps, copies.both_ways_gbps[std::min(at, to)][std::max(at, to)]);
    }
    return port;
  }

  void add_host_path(int gpu) {
    const std::string kind = device(gpu).pcie_kind.empty() ? "pcie" : device(gpu).pcie_kind;
    const std::vector<NodeId> path = path_to_host(gpu);
    for (std::size_t hop = 1; hop < path.size(); ++hop) {
      // Above a switch another GPU may have been there before.
      if (!host_links_.emplace(path[hop - 1], path[hop]).second) continue;
      Link& link = add_link(machine_, path[hop - 1], path[hop], kind, LinkClass::host, 1);
      const Port best = port_of(best_, gpu);
      const Port kernel = port_of(survey_.kernel, gpu);
      set_capacity(link, device(gpu).pcie_gbps, best.out_gbps, best.in_gbps, best.both_gbps);
      note_efficiency(link, std::min(kernel.out_gbps, kernel.in_gbps), kernel.both_gbps);
    }
    note_overhead(kind,
                  [&](const CopyFigures& copies) { return copies.to_host[index(gpu)].latency_s; });
  }

  /// The pair of GPUs without NVLink on these sockets that exchanges most, if there is one.
  std::optional<std::pair<std::size_t, std::size_t>> widest_pair(int socket, int other) const {
    std::optional<std::pair<std::size_t, std::size_t>> widest;
    double max_gbps = 0;
    for (int a = 0; a < gpus(); ++a) {
      for (int b = 0; b < gpus(); ++b) {
        const bool across = socket_of(device(a)) == socket && socket_of(device(b)) == other;
        if (!across || has_nvlink(a, b)) continue;
        const double gbps = best_.pairs[index(a)][index(b)].gbps;
        if (gbps <= max_gbps) continue;
        max_gbps = gbps;
        widest = {index(a), index(b)};
      }
    }
    return widest;
  }

  /// Between sockets, what the widest pair across reaches; where there is no such pair, an
  /// estimate: what a GPU's own link to its socket reaches.
  void add_sockets() {
    for (auto a = cpus_.begin(); a != cpus_.end(); ++a) {
      for (auto b = std::next(a); b != cpus_.end(); ++b) {
        Link& link = add_link(machine_, a->second, b->second, "socket", LinkClass::host,
                              best_.to_host.front().gbps);
        const auto pair = widest_pair(a->first, b->first);
        if (!pair) {
          machine_.sources.emplace_back("the bandwidth between sockets is an estimate");
          continue;
        }
        const auto [here, there] = *pair;
        const double both = best_.both_ways_gbps[std::min(here, there)][std::max(here, there)];
        set_capacity(link, 0, best_.pairs[here][there].gbps, best_.pairs[there][here].gbps, both);
        const CopyFigures& kernel = survey_.kernel;
        note_efficiency(link,
                        std::min(kernel.pairs[here][there].gbps, kernel.pairs[there][here].gbps),
                        kernel.both_ways_gbps[std::min(here, there)][std::max(here, there)]);
        note_overhead("socket", [&](const CopyFigures&) { return 0.0; });
      }
    }
  }

  /// As CUDA reports it, as far as the schema can express it: the widest access that holds for
  /// every pair.
  void set_peer_access() {
    bool all = true;
    bool within_sockets = true;
    for (int a = 0; a < gpus(); ++a) {
      for (int b = 0; b < gpus(); ++b) {
        if (a == b || has_nvlink(a, b) || survey_.inventory.can_access[index(a)][index(b)])
          continue;
        all = false;
        if (socket_of(device(a)) == socket_of(device(b))) within_sockets = false;
      }
    }
    machine_.peer_access = all              ? Topology::PeerAccess::all
                           : within_sockets ? Topology::PeerAccess::socket
                                            : Topology::PeerAccess::fabric;
  }

  void note_efficiency(const Link& link, double by_kernel_gbps, double both_gbps) {
    const double reached =
        link.duplex == Duplex::half && both_gbps > 0 ? both_gbps : by_kernel_gbps;
    efficiencies_[link.kind].push_back(reached / (link.gbps * link.count));
  }

  template <class Latency>
  void note_overhead(const std::string& kind, const Latency& latency_s) {
    for (const auto& [name, copies] : fitted_profiles(survey_)) {
      overheads_s_[{name, kind}].push_back(latency_s(*copies));
    }
  }

  void set_profile(const FittedProfile& fitted) {
    Profile& profile = begin_profile(machine_, fitted, survey_);
    for (const auto& [kind, efficiencies] : efficiencies_) {
      set_link_profile(profile, kind, median(efficiencies),
                       median(overheads_s_[{fitted.name, kind}]));
    }
    std::vector<double> staged_s;
    for (int a = 0; a < gpus(); ++a) {
      for (int b = 0; b < gpus(); ++b) {
        if (a == b || has_nvlink(a, b) || survey_.inventory.can_access[index(a)][index(b)])
          continue;
        staged_s.push_back(fitted.copies->pairs[index(a)][index(b)].latency_s -
                           fitted.copies->to_host[index(a)].latency_s);
      }
    }
    if (!staged_s.empty()) profile.staging_overhead_s = sane_latency_s(median(staged_s));
  }

  const Survey& survey_;
  const CopyFigures& best_;
  Topology& machine_;
  std::optional<NodeId> nvswitch_;
  std::map<int, NodeId> cpus_;  ///< by socket
  std::map<std::string, NodeId> switches_;
  std::set<std::pair<NodeId, NodeId>> host_links_;
  std::map<std::string, std::vector<double>> efficiencies_;  ///< of kernels, by kind of link
  std::map<std::pair<std::string, std::string>, std::vector<double>> overheads_s_;
};

}  // namespace

void fit_gpus(const Survey& survey, Topology& machine) { GpuFit(survey, machine).run(); }

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include "core/units.h"
#include "core/words.h"
#include "formats/known_gpus.h"
#include "formats/machine_parts.h"
#include "formats/p2p_machine.h"
#include "topologies/gpu_models.h"
#include "topologies/load.h"

namespace espalier {
namespace {

/// PCIe with 16 lanes, by what it carries at most in one direction.
struct Pcie {
  const char* kind;
  double gbps;
};
constexpr Pcie kPcie[] = {{"pcie3x16", 15.75}, {"pcie4x16", 31.5}, {"pcie5x16", 63}};
constexpr double kFastestPcie = 63;
/// Copies over NVLink are faster than those through the host's memory by more than this.
constexpr double kFasterThanHost = 1.6;

class Guesser {
 public:
  explicit Guesser(const P2pRates& rates) : rates_(rates) {}

  Topology guess(const std::string& name) {
    machine_.name = name;
    machine_.title = "guessed from rates between its GPUs";
    machine_.profiles = built_in_profiles().profiles;
    find_models();
    find_fabric();
    const std::vector<int> sockets = find_sockets();
    for (int gpu = 0; gpu < rates_.gpus; ++gpu) add_gpu(gpu, sockets[index(gpu)]);
    add_fabric();
    add_host(sockets);
    return std::move(machine_);
  }

 private:
  static std::size_t index(int gpu) { return static_cast<std::size_t>(gpu); }
  void note(std::string text) { machine_.notes.push_back(std::move(text)); }

  void find_models() {
    for (const std::string& name : rates_.names) models_.push_back(model_of_device(name));
    has_names_ = std::ranges::none_of(models_, &std::string::empty);
    if (has_names_) generation_ = nvlinks_of_model(models_.front());
  }

  /// Whether this rate is that of NVLinks. Without peer access it would be `staged`.
  bool is_fast(double rate, std::optional<double> staged, double least) const {
    if (rate > kFastestPcie) return true;
    if (has_names_ && generation_ == nullptr) return false;
    const double host = staged.value_or(least);
    return rate > kFasterThanHost * host && (has_names_ || least < rate / kFasterThanHost);
  }

  /// `links_`: of every pair; as many as carry its rate.
  void find_fabric() {
    double least = kFastestPcie, most = 0;
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        if (const auto rate = P2pRates::slower(rates_.direct, a, b); rate && *rate > 0) {
          least = std::min(least, *rate);
        }
      }
    }
    links_.assign(index(rates_.gpus), std::vector<int>(index(rates_.gpus), 0));
    std::vector<std::pair<int, int>> fast;
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        const auto rate = P2pRates::slower(rates_.direct, a, b);
        if (!rate || !is_fast(*rate, P2pRates::slower(rates_.staged, a, b), least)) continue;
        fast.emplace_back(a, b);
        most = std::max(most, *rate);
      }
    }
    if (fast.empty()) return;
    if (generation_ == nullptr) generation_ = &nvlinks_by_number(links_for(most, 25));
    for (const auto& [a, b] : fast) {
      const int links = links_for(*P2pRates::slower(rates_.direct, a, b), generation_->gbps);
      links_[index(a)][index(b)] = links_[index(b)][index(a)] = std::min(links, generation_->links);
    }
    for (int gpu = 0; gpu < rates_.gpus; ++gpu) {
      const auto& row = links_[index(gpu)];
      most_links_ = std::max(most_links_, std::accumulate(row.begin(), row.end(), 0));
    }
    const auto pairs = index(rates_.gpus) * index(rates_.gpus - 1) / 2;
    has_switch_ = rates_.gpus > 2 && fast.size() == pairs && most_links_ > generation_->links;
  }
  static int links_for(double rate, double gbps) {
    return std::max(1, static_cast<int>(std::ceil(rate / gbps - 0.02)));
  }

  bool maps(int a, int b) const {
    const auto there = P2pRates::slower(rates_.maps, a, b);
    return there.value_or(0) > 0;
  }

  /// GPUs that map each other's memory without NVLink are on one socket, unless all do, or none.
  std::vector<int> find_sockets() {
    std::vector<int> socket(index(rates_.gpus), 0);
    std::size_t able = 0, unable = 0;
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        if (links_[index(a)][index(b)] == 0) ++(maps(a, b) ? able : unable);
      }
    }
    using Access = Topology::PeerAccess;
    if (rates_.maps.empty() && able + unable > 0 && !rates_.direct.empty()) {
      note("it is not said which GPUs can map each other's memory: taken that all can");
    }
    if ((rates_.maps.empty() && !rates_.direct.empty()) || unable == 0) {
      machine_.peer_access = Access::all;
      return socket;
    }
    machine_.peer_access = Access::fabric;
    if (able == 0) return socket;
    std::iota(socket.begin(), socket.end(), 0);
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        const int from = socket[index(a)], to = socket[index(b)];
        if (links_[index(a)][index(b)] == 0 && maps(a, b)) std::ranges::replace(socket, from, to);
      }
    }
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        if (links_[index(a)][index(b)] > 0 || socket[index(a)] != socket[index(b)]) continue;
        if (maps(a, b)) continue;
        note(
            "which GPUs map each other's memory follows no sockets: taken that none do so "
            "over PCIe");
        std::ranges::fill(socket, 0);
        return socket;
      }
    }
    machine_.peer_access = Access::socket;
    note("GPUs that map each other's memory are taken to be on one socket");
    return socket;
  }

  void add_gpu(int gpu, int socket) {
    Node node;
    node.name = fmt::format("gpu{}", gpu);
    node.model = has_names_               ? models_[index(gpu)]
                 : generation_ == nullptr ? ""
                                          : generation_->model;
    node.numa = socket;
    fill_from_catalogue(node);
    machine_.nodes.push_back(std::move(node));
  }

  void add_fabric() {
    if (!has_names_) {
      note(fmt::format(
          "the text does not name the GPUs: {}; ':as=dgx-a100' after the file's name "
          "puts the rates on that machine",
          generation_ == nullptr
              ? "no model"
              : fmt::format("taken for {}, by the rates of their NVLinks", generation_->model)));
    }
    if (generation_ == nullptr || most_links_ == 0) return;
    if (has_switch_) {
      const NodeId nvswitch = add_node(machine_, "nvswitch", NodeKind::nvswitch, 0, -1);
      machine_.node(nvswitch).combines = generation_->kind == std::string_view("nvlink4") ||
                                         generation_->kind == std::string_view("nvlink5");
      for (NodeId gpu = 0; gpu < rates_.gpus; ++gpu) {
        add_link(machine_, gpu, nvswitch, {generation_->kind, generation_->gbps}, 0.2,
                 generation_->links);
      }
      note(
          fmt::format("the rates of all pairs need more NVLinks than a GPU has: taken for {} "
                      "links of each to NVSwitches",
                      generation_->links));
      return;
    }
    for (NodeId a = 0; a < rates_.gpus; ++a) {
      for (NodeId b = 0; b < a; ++b) {
        const int links = links_[index(a)][index(b)];
        if (links > 0) add_link(machine_, b, a, {generation_->kind, generation_->gbps}, 0.3, links);
      }
    }
    note(fmt::format("NVLinks are guessed: as many of {} GB/s as carry the rate of each pair",
                     format_gbps(generation_->gbps)));
    if (most_links_ > generation_->links) {
      note(fmt::format("a GPU would have {} NVLinks, but {} has at most {}", most_links_,
                       generation_->model, generation_->links));
    }
  }

  /// The best rate of a pair without NVLinks, or 0.
  double host_rate() const {
    double best = 0;
    for (int a = 0; a < rates_.gpus; ++a) {
      for (int b = 0; b < a; ++b) {
        if (const auto staged = P2pRates::slower(rates_.staged, a, b)) {
          best = std::max(best, *staged);
        }
        const auto rate = P2pRates::slower(rates_.direct, a, b);
        if (rate && links_[index(a)][index(b)] == 0) best = std::max(best, *rate);
      }
    }
    return best;
  }

  void add_host(const std::vector<int>& sockets) {
    const double rate = host_rate();
    const auto fitting =
        std::ranges::find_if(kPcie, [&](const Pcie& one) { return rate <= one.gbps; });
    const Pcie& pcie = rate == 0 || fitting == std::end(kPcie) ? kPcie[1] : *fitting;
    std::vector<NodeId> cpus;
    std::map<int, NodeId> of_socket;
    for (NodeId gpu = 0; gpu < rates_.gpus; ++gpu) {
      const int socket = sockets[index(gpu)];
      if (!of_socket.contains(socket)) {
        of_socket[socket] =
            add_node(machine_, fmt::format("cpu{}", cpus.size()), NodeKind::cpu, 0, socket);
        cpus.push_back(of_socket[socket]);
      }
      add_link(machine_, gpu, of_socket[socket], {pcie.kind, pcie.gbps}, 0.25);
    }
    for (std::size_t a = 0; a < cpus.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b)
        add_link(machine_, cpus[b], cpus[a], {"upi_skylake", 62.4}, 0.3);
    }
    note(fmt::format(
        "the rates do not say how GPUs and processors are joined: {}, each GPU with "
        "a link of its own of kind {}{}",
        counted(cpus.size(), "socket"), pcie.kind,
        rate == 0 ? "" : fmt::format(" (the best rate is {} GB/s)", format_gbps(rate))));
  }

  const P2pRates& rates_;
  Topology machine_;
  std::vector<std::string> models_;
  bool has_names_ = false;
  const NvlinkGeneration* generation_ = nullptr;
  std::vector<std::vector<int>> links_;  ///< NVLinks of each pair
  int most_links_ = 0;                   ///< of a GPU
  bool has_switch_ = false;
};

}  // namespace

Topology guess_machine(const P2pRates& rates, const std::string& name) {
  return Guesser(rates).guess(name);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "topologies/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace espalier {
namespace {

/// CPUs by host.
std::unordered_map<int, std::vector<NodeId>> cpus_by_host(const Topology& topology) {
  std::unordered_map<int, std::vector<NodeId>> cpus;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const Node& node = topology.nodes[i];
    if (node.kind == NodeKind::cpu) cpus[node.host].push_back(static_cast<NodeId>(i));
  }
  return cpus;
}

/// Fewest hops over the GPU's own host; the first of equals. -1 when there is none.
NodeId nearest_cpu(const Router& router, NodeId gpu, const std::vector<NodeId>& cpus) {
  NodeId nearest = -1;
  std::size_t hops = 0;
  for (const NodeId cpu : cpus) {
    const Route* route = router.route(gpu, cpu);
    if (route == nullptr || route->kind == RouteKind::network) continue;
    if (nearest < 0 || route->hops.size() < hops) {
      nearest = cpu;
      hops = route->hops.size();
    }
  }
  return nearest;
}

/// Which ranks a chain of routes joins.
class Components {
 public:
  explicit Components(std::size_t count) : parent_(count), left_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t item) {
    while (parent_[item] != item) item = parent_[item] = parent_[parent_[item]];
    return item;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    parent_[std::max(a, b)] = std::min(a, b);
    --left_;
  }
  std::size_t count() const { return left_; }

 private:
  std::vector<std::size_t> parent_;
  std::size_t left_;
};

/// Joins the ranks whose GPUs share a link, which settles most machines in as many steps as they
/// have links.
void join_neighbours(const Router& router, const std::vector<NodeId>& ranks,
                     Components& components) {
  std::unordered_map<NodeId, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) rank_of.emplace(ranks[rank], rank);
  for (const Link& link : router.topology().links) {
    const auto a = rank_of.find(link.a);
    const auto b = rank_of.find(link.b);
    if (a == rank_of.end() || b == rank_of.end()) continue;
    if (router.route(link.a, link.b) != nullptr) components.join(a->second, b->second);
  }
}

/// The GPUs with these numbers; all of them when there are none.
std::vector<NodeId> find_gpus(const Topology& topology, const std::vector<int>& gpus,
                              DiagnosticList& problems) {
  const std::vector<NodeId> all = topology.gpus();
  if (gpus.empty()) return all;
  std::vector<NodeId> chosen;
  std::vector<bool> taken(all.size(), false);
  for (const int gpu : gpus) {
    if (gpu < 0 || static_cast<std::size_t>(gpu) >= all.size()) {
      problems.add({}, fmt::format("'{}' has no GPU {}", topology.name, gpu),
                   all.empty() ? "it has no GPUs at all"
                               : fmt::format("its GPUs are 0 to {}", all.size() - 1));
      continue;
    }
    const auto index = static_cast<std::size_t>(gpu);
    if (taken[index]) {
      problems.add({}, fmt::format("GPU {} is given twice", gpu), "name each GPU once");
      continue;
    }
    taken[index] = true;
    chosen.push_back(all[index]);
  }
  return chosen;
}

std::vector<NodeId> find_relays(const Topology& topology, const std::vector<int>& gpus,
                                const std::vector<int>& relays, DiagnosticList& problems) {
  const std::vector<NodeId> all = topology.gpus();
  const std::set<int> ranks(gpus.begin(), gpus.end());
  std::set<int> taken;
  std::vector<NodeId> chosen;
  for (const int gpu : relays) {
    if (gpu < 0 || static_cast<std::size_t>(gpu) >= all.size()) {
      problems.add({}, fmt::format("'{}' has no GPU {} that could relay", topology.name, gpu),
                   all.empty() ? "it has no GPUs at all"
                               : fmt::format("its GPUs are 0 to {}", all.size() - 1));
    } else if (gpus.empty() || ranks.count(gpu) > 0) {
      problems.add({}, fmt::format("GPU {} is a rank, so it cannot be a relay", gpu),
                   gpus.empty() ? "--gpus chooses the ranks; the other GPUs may relay"
                                : "name GPUs that are not ranks");
    } else if (!taken.insert(gpu).second) {
      problems.add({}, fmt::format("relay GPU {} is given twice", gpu), "name each GPU once");
    } else {
      chosen.push_back(all[static_cast<std::size_t>(gpu)]);
    }
  }
  return chosen;
}

}  // namespace

std::vector<NodeId> chosen_gpus(const Topology& topology, const std::vector<int>& gpus) {
  DiagnosticList problems;
  std::vector<NodeId> chosen = find_gpus(topology, gpus, problems);
  problems.throw_if_any(ErrorKind::usage);
  return chosen;
}

std::vector<NodeId> chosen_relays(const Topology& topology, const std::vector<int>& gpus,
                                  const std::vector<int>& relays) {
  DiagnosticList problems;
  std::vector<NodeId> chosen = find_relays(topology, gpus, relays, problems);
  problems.throw_if_any(ErrorKind::usage);
  return chosen;
}

std::vector<int> idle_gpus(const Topology& topology, const std::vector<int>& gpus) {
  if (gpus.empty()) return {};
  const std::set<int> ranks(gpus.begin(), gpus.end());
  std::vector<int> idle;
  const auto count = static_cast<int>(topology.gpus().size());
  for (int gpu = 0; gpu < count; ++gpu) {
    if (ranks.count(gpu) == 0) idle.push_back(gpu);
  }
  return idle;
}

Placement place_ranks(const Router& router, const std::vector<int>& gpus,
                      const std::vector<int>& relays) {
  const Topology& topology = router.topology();
  Placement placement;
  DiagnosticList problems;
  placement.ranks = find_gpus(topology, gpus, problems);
  placement.relays = find_relays(topology, gpus, relays, problems);
  problems.throw_if_any(ErrorKind::usage);
  const auto cpus = cpus_by_host(topology);
  std::unordered_map<NodeId, int> host_index;
  for (const NodeId gpu : placement.ranks) {
    const int machine = topology.node(gpu).host;
    placement.machine_of_rank.push_back(machine);
    const auto local = cpus.find(machine);
    const NodeId cpu = local == cpus.end() ? -1 : nearest_cpu(router, gpu, local->second);
    if (cpu < 0) {
      placement.host_of_rank.push_back(-1);
      continue;
    }
    const auto [at, is_new] = host_index.emplace(cpu, static_cast<int>(placement.hosts.size()));
    if (is_new) placement.hosts.push_back(cpu);
    placement.host_of_rank.push_back(at->second);
  }
  return placement;
}

namespace {

/// Of the ranks, then the relays.
Components connected(const Router& router, const Placement& placement) {
  std::vector<NodeId> gpus = placement.ranks;
  gpus.insert(gpus.end(), placement.relays.begin(), placement.relays.end());
  Components components(gpus.size());
  join_neighbours(router, gpus, components);
  for (std::size_t a = 0; a < gpus.size() && components.count() > 1; ++a) {
    for (std::size_t b = a + 1; b < gpus.size() && components.count() > 1; ++b) {
      if (components.root(a) == components.root(b)) continue;
      if (router.route(gpus[a], gpus[b]) != nullptr) components.join(a, b);
    }
  }
  return components;
}

}  // namespace

std::optional<std::pair<int, int>> unreachable_pair(const Router& router,
                                                    const Placement& placement) {
  Components components = connected(router, placement);
  // A relay that nothing reaches is no harm.
  for (std::size_t rank = 1; rank < placement.ranks.size(); ++rank) {
    if (components.root(rank) != components.root(0)) return std::pair(0, static_cast<int>(rank));
  }
  return std::nullopt;
}

std::vector<int> most_connected(const Router& router, const Placement& placement) {
  Components components = connected(router, placement);
  std::map<std::size_t, std::vector<int>> sets;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    sets[components.root(rank)].push_back(static_cast<int>(rank));
  }
  std::vector<int> most;
  for (auto& [root, set] : sets) {
    if (set.size() > most.size()) most = std::move(set);
  }
  return most;
}

}  // namespace espalier

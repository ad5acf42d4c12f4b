// SPDX-License-Identifier: Apache-2.0
#include "topologies/turning_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

#include "topologies/path_tree.h"

namespace espalier {
namespace {

constexpr int kFar = std::numeric_limits<int>::max();

/// How many links of the host lie between two of its GPUs.
class Distances {
 public:
  Distances(const Topology& topology, const std::vector<NodeId>& gpus) : gpus_(gpus) {
    const int host = topology.node(gpus.front()).host;
    std::map<NodeId, std::vector<NodeId>> neighbors;
    for (const Link& link : topology.links) {
      const bool is_here = topology.node(link.a).host == host && topology.node(link.b).host == host;
      if (!is_here || net_of(topology, link) != Net::host) continue;
      neighbors[link.a].push_back(link.b);
      neighbors[link.b].push_back(link.a);
    }
    for (const NodeId gpu : gpus) from_.push_back(distances_from(gpu, neighbors));
  }

  int between(int a, int b) const {
    const auto found = from_[static_cast<std::size_t>(a)].find(gpus_[static_cast<std::size_t>(b)]);
    return found == from_[static_cast<std::size_t>(a)].end() ? kFar : found->second;
  }

 private:
  static std::map<NodeId, int> distances_from(
      NodeId start, const std::map<NodeId, std::vector<NodeId>>& neighbors) {
    std::map<NodeId, int> known = {{start, 0}};
    std::queue<NodeId> open({start});
    for (; !open.empty(); open.pop()) {
      const auto found = neighbors.find(open.front());
      if (found == neighbors.end()) continue;
      for (const NodeId node : found->second) {
        if (known.try_emplace(node, known[open.front()] + 1).second) open.push(node);
      }
    }
    return known;
  }

  const std::vector<NodeId>& gpus_;
  std::vector<std::map<NodeId, int>> from_;
};

/// Those that are closer together than the farthest two; one part where all are equally far.
std::vector<std::vector<int>> parts_of(const std::vector<int>& gpus, const Distances& distances) {
  int farthest = 0;
  for (const int a : gpus) {
    for (const int b : gpus) farthest = std::max(farthest, distances.between(a, b));
  }
  std::vector<std::vector<int>> parts;
  for (const int gpu : gpus) {
    const auto near = std::ranges::find_if(parts, [&](const std::vector<int>& part) {
      return distances.between(part.front(), gpu) < farthest;
    });
    if (near == parts.end()) {
      parts.push_back({gpu});
    } else {
      near->push_back(gpu);
    }
  }
  if (parts.size() == gpus.size()) return {gpus};
  return parts;
}

/// Empty where parts are not equal.
std::vector<int> in_turns(const std::vector<int>& gpus, const Distances& distances) {
  std::vector<std::vector<int>> parts = parts_of(gpus, distances);
  if (parts.size() == 1) return gpus;
  for (std::vector<int>& part : parts) {
    part = in_turns(part, distances);
    if (part.empty() || part.size() != parts.front().size()) return {};
  }
  std::vector<int> order;
  for (std::size_t i = 0; i < parts.front().size(); ++i) {
    for (const std::vector<int>& part : parts) order.push_back(part[i]);
  }
  return order;
}

}  // namespace

std::vector<int> turning_order(const Topology& topology, const std::vector<NodeId>& gpus) {
  std::vector<int> all(gpus.size());
  std::iota(all.begin(), all.end(), 0);
  if (gpus.empty()) return all;
  std::vector<int> order = in_turns(all, Distances(topology, gpus));
  return order.empty() ? all : order;
}

}  // namespace espalier

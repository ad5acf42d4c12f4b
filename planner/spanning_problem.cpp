// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "planner/spanning_trees.h"

namespace espalier {
namespace {

class ProblemMaker {
 public:
  ProblemMaker(const Router& router, const CapacityGraph& graph) : router_(router), graph_(graph) {
    problem_.ranks = graph.ranks;
    problem_.node = graph.node;
    problem_.arcs_from.resize(graph.node.size());
    for (const CapacityGraph::Arc& arc : graph.arcs) add(arc);
    std::int64_t unit = 0;
    for (const auto& resource : problem_.resources) unit = std::gcd(unit, resource.capacity);
    problem_.unit_bytes_per_s = std::max<std::int64_t>(unit, 1);
    for (auto& resource : problem_.resources) resource.capacity /= problem_.unit_bytes_per_s;
  }

  PackingProblem take() { return std::move(problem_); }

 private:
  static constexpr int kFree = -1;

  void add(const CapacityGraph::Arc& arc) {
    if (arc.link < 0) return join(arc.from, arc.to, kFree);
    const Link& link = router_.topology().links[static_cast<std::size_t>(arc.link)];
    if (link.duplex == Duplex::shared) return add_shared(arc, link.medium);
    const auto [known, fresh] = of_link_.emplace(arc.link, next_resource());
    if (fresh) add_resource(arc.link, link.duplex == Duplex::half ? 2 : 1);
    join(arc.from, arc.to, known->second);
  }

  /// What one station puts on a medium all its links carry, so that a way over several of them uses
  /// it once: pays to get onto the medium, passes along it freely, and leaves it freely.
  void add_shared(const CapacityGraph::Arc& arc, const std::string& medium) {
    const auto [known, fresh] = of_medium_.emplace(medium, next_resource());
    if (fresh) add_resource(arc.link, 2);
    const int tail = on_medium(medium, arc.from);
    const int head = on_medium(medium, arc.to);
    join(arc.from, head, known->second);
    if (arc.from >= problem_.ranks) join(tail, head, kFree);
  }

  int on_medium(const std::string& medium, int vertex) {
    const auto [known, fresh] =
        station_.emplace(std::pair(medium, vertex), static_cast<int>(problem_.node.size()));
    if (fresh) {
      problem_.node.push_back(-1);
      problem_.arcs_from.emplace_back();
      join(known->second, vertex, kFree);
    }
    return known->second;
  }

  int next_resource() const { return static_cast<int>(problem_.resources.size()); }

  void add_resource(LinkId link, int load) {
    const auto bytes_per_s =
        static_cast<std::int64_t>(std::llround(router_.capacity_gbps(link) * 1e9));
    problem_.resources.push_back({bytes_per_s, load, link});
  }

  void join(int from, int to, int resource) {
    problem_.arcs_from[static_cast<std::size_t>(from)].push_back({to, resource});
  }

  const Router& router_;
  const CapacityGraph& graph_;
  PackingProblem problem_;
  std::map<LinkId, int> of_link_;
  std::map<std::string, int> of_medium_;
  std::map<std::pair<std::string, int>, int> station_;  ///< vertex by medium and vertex joined
};

}  // namespace

PackingProblem packing_problem(const Router& router, const Placement& placement) {
  return ProblemMaker(router, capacity_graph(router, placement, MediaUse::evenly)).take();
}

std::optional<std::pair<int, int>> unconnected_pair(const PackingProblem& problem) {
  std::vector<bool> seen(problem.arcs_from.size(), false);
  std::vector<int> reached{0};
  seen[0] = true;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const auto& arc : problem.arcs_from[static_cast<std::size_t>(reached[i])]) {
      if (seen[static_cast<std::size_t>(arc.to)]) continue;
      seen[static_cast<std::size_t>(arc.to)] = true;
      reached.push_back(arc.to);
    }
  }
  for (int rank = 0; rank < problem.ranks; ++rank) {
    if (!seen[static_cast<std::size_t>(rank)]) return std::pair(0, rank);
  }
  return std::nullopt;
}

}  // namespace espalier

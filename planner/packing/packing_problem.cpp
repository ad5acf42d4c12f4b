// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/packing_problem.h"

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "core/error.h"
#include "planner/graph/common_unit.h"

namespace espalier {
namespace {

class ProblemMaker {
 public:
  ProblemMaker(const Router& router, const CapacityGraph& graph, EdgeUse use)
      : router_(router), graph_(graph) {
    problem_.use = use;
    problem_.ranks = graph.ranks;
    problem_.relays = graph.relays;
    problem_.node = graph.node;
    problem_.arcs_from.resize(graph.node.size());
    for (const CapacityGraph::Arc& arc : graph.arcs) add(arc);
    find_unit();
  }

  PackingProblem take() { return std::move(problem_); }

 private:
  static constexpr int kFree = -1;

  void find_unit() {
    const CommonUnit unit = in_common_unit(bytes_per_s_);
    problem_.lower_unit = unit.lower;
    problem_.upper_unit = unit.upper;
    for (std::size_t i = 0; i < problem_.resources.size(); ++i) {
      problem_.resources[i].capacity = unit.multiples[i];
    }
  }

  void add(const CapacityGraph::Arc& arc) {
    if (arc.link < 0) return join(arc.from, arc.to, kFree);
    const Link& link = router_.topology().link(arc.link);
    if (link.duplex == Duplex::shared) return add_shared(arc, link.medium);
    const bool is_half = link.duplex == Duplex::half;
    const bool forward = problem_.use == EdgeUse::both_ways || is_half || is_forward(arc, link);
    const auto [known, fresh] = of_link_.emplace(std::pair(arc.link, forward), next_resource());
    if (fresh) add_resource(arc.link, is_half, forward);
    join(arc.from, arc.to, known->second);
  }

  /// One end of an arc that stands for a link is a node, the other may only join arcs.
  bool is_forward(const CapacityGraph::Arc& arc, const Link& link) const {
    const NodeId from = graph_.node[static_cast<std::size_t>(arc.from)];
    return from >= 0 ? from == link.a : graph_.node[static_cast<std::size_t>(arc.to)] == link.b;
  }

  /// What one station puts on a medium all its links carry, so that a way over several of them uses
  /// it once: pays to get onto the medium, passes along it freely, and leaves it freely.
  void add_shared(const CapacityGraph::Arc& arc, const std::string& medium) {
    const auto [known, fresh] = of_medium_.emplace(medium, next_resource());
    if (fresh) add_resource(arc.link, /*is_shared=*/true, /*forward=*/true);
    const int tail = on_medium(medium, arc.from);
    const int head = on_medium(medium, arc.to);
    join(arc.from, head, known->second);
    if (arc.from >= problem_.ranks + problem_.relays) join(tail, head, kFree);
  }

  int on_medium(const std::string& medium, int vertex) {
    const auto [known, fresh] =
        station_.emplace(std::pair(medium, vertex), static_cast<int>(problem_.node.size()));
    if (fresh) {
      // A station at a site ends an edge there, whose end already names it.
      const bool is_site = vertex < problem_.ranks + problem_.relays;
      problem_.node.push_back(is_site ? -1 : graph_.node[static_cast<std::size_t>(vertex)]);
      problem_.arcs_from.emplace_back();
      join(known->second, vertex, kFree);
    }
    return known->second;
  }

  int next_resource() const { return static_cast<int>(problem_.resources.size()); }

  /// `is_shared`: by both directions.
  void add_resource(LinkId link, bool is_shared, bool forward) {
    const int load = is_shared && problem_.use == EdgeUse::both_ways ? 2 : 1;
    bytes_per_s_.push_back(router_.capacity_gbps(link) * 1e9);
    problem_.resources.push_back({0, load, link, forward});
  }

  void join(int from, int to, int resource) {
    problem_.arcs_from[static_cast<std::size_t>(from)].push_back({to, resource});
  }

  const Router& router_;
  const CapacityGraph& graph_;
  PackingProblem problem_;
  std::vector<double> bytes_per_s_;                 ///< by resource, not rounded
  std::map<std::pair<LinkId, bool>, int> of_link_;  ///< and direction
  std::map<std::string, int> of_medium_;
  std::map<std::pair<std::string, int>, int> station_;  ///< vertex by medium and vertex joined
};

/// A rank that no arcs lead to from rank 0, or 0. Arcs lead both ways.
int unconnected_rank(const PackingProblem& problem) {
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
    if (!seen[static_cast<std::size_t>(rank)]) return rank;
  }
  return 0;
}

}  // namespace

PackingProblem packing_problem(const Router& router, const Placement& placement, EdgeUse use,
                               const std::vector<int>& adopters, MixedSwitches mixed) {
  const std::vector<RelayRole> roles(placement.relays.size(), RelayRole::forwards);
  const CapacityGraph graph = capacity_graph(router, placement, MediaUse::evenly, 0, roles, mixed);
  PackingProblem problem = ProblemMaker(router, graph, use).take();
  if (adopters.empty()) return problem;
  for (int relay = 0; relay < problem.relays; ++relay) {
    const int vertex = problem.ranks + relay;
    const int rank = adopters[static_cast<std::size_t>(relay)];
    problem.arcs_from[static_cast<std::size_t>(vertex)].push_back({rank, -1});
    problem.arcs_from[static_cast<std::size_t>(rank)].push_back({vertex, -1});
  }
  problem.relays = 0;
  return problem;
}

bool is_connected(const PackingProblem& problem) { return unconnected_rank(problem) == 0; }

void require_connected(const PackingProblem& problem, const Router& router,
                       const Placement& placement) {
  const int apart = unconnected_rank(problem);
  if (apart == 0) return;
  const auto name = [&](int rank) -> const std::string& {
    return router.topology().node(placement.ranks[static_cast<std::size_t>(rank)]).name;
  };
  throw Error(ErrorKind::unsupported, fmt::format("no links in scope join ranks 0 ({}) and {} ({})",
                                                  name(0), apart, name(apart)));
}

std::vector<NodeId> nodes_passed(const PackingProblem& problem, const PackedEdge& edge) {
  std::vector<NodeId> nodes;
  for (const int vertex : edge.vertices) {
    const NodeId node = problem.node[static_cast<std::size_t>(vertex)];
    if (node >= 0 && (nodes.empty() || node != nodes.back())) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace espalier

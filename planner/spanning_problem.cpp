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
    problem_.relays = graph.relays;
    problem_.node = graph.node;
    problem_.arcs_from.resize(graph.node.size());
    for (const CapacityGraph::Arc& arc : graph.arcs) add(arc);
    find_unit();
  }

  PackingProblem take() { return std::move(problem_); }

 private:
  static constexpr int kFree = -1;
  /// Remainders below this part of the largest capacity are taken for rounding, if what comes of it
  /// is as exact as that.
  static constexpr double kRounding = 1e-5;
  static constexpr double kExactness = 1e-8;

  /// The plans of a machine and of one that is faster throughout shall be the same: bandwidths that
  /// are whole multiples of a unit but for their rounding to bytes/s are treated as such.
  void find_unit() {
    std::int64_t common = 0;
    for (const auto& resource : problem_.resources) common = std::gcd(common, resource.capacity);
    const double largest =
        bytes_per_s_.empty() ? 0 : *std::max_element(bytes_per_s_.begin(), bytes_per_s_.end());
    double unit = 0;  // Euclid's algorithm
    for (double rest : bytes_per_s_) {
      while (rest > kRounding * largest) {
        const double remainder = unit - std::round(unit / rest) * rest;
        unit = std::exchange(rest, std::abs(remainder));
      }
    }
    // The largest capacity tells the unit more exactly than the last remainder does.
    if (unit > 0) unit = largest / std::round(largest / unit);
    if (unit == 0 || !is_unit(unit)) unit = static_cast<double>(common);
    for (std::size_t i = 0; i < problem_.resources.size(); ++i) {
      auto& capacity = problem_.resources[i].capacity;
      const Integer bytes_per_s = capacity;
      capacity = std::llround(bytes_per_s_[i] / unit);
      const Rational exact(bytes_per_s, Integer(capacity));
      if (i == 0 || exact > problem_.upper_unit) problem_.upper_unit = exact;
      if (i == 0 || exact < problem_.lower_unit) problem_.lower_unit = exact;
    }
  }

  bool is_unit(double unit) const {
    return std::all_of(bytes_per_s_.begin(), bytes_per_s_.end(), [&](double bytes_per_s) {
      const double whole = std::round(bytes_per_s / unit);
      return whole >= 1 && std::abs(bytes_per_s / unit / whole - 1) < kExactness;
    });
  }

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
    if (arc.from >= problem_.ranks + problem_.relays) join(tail, head, kFree);
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
    const double bytes_per_s = router_.capacity_gbps(link) * 1e9;
    bytes_per_s_.push_back(bytes_per_s);
    problem_.resources.push_back({std::llround(bytes_per_s), load, link});
  }

  void join(int from, int to, int resource) {
    problem_.arcs_from[static_cast<std::size_t>(from)].push_back({to, resource});
  }

  const Router& router_;
  const CapacityGraph& graph_;
  PackingProblem problem_;
  std::vector<double> bytes_per_s_;  ///< by resource, not rounded
  std::map<LinkId, int> of_link_;
  std::map<std::string, int> of_medium_;
  std::map<std::pair<std::string, int>, int> station_;  ///< vertex by medium and vertex joined
};

}  // namespace

PackingProblem packing_problem(const Router& router, const Placement& placement,
                               const std::vector<int>& adopters) {
  const std::vector<RelayRole> roles(placement.relays.size(), RelayRole::forwards);
  PackingProblem problem =
      ProblemMaker(router, capacity_graph(router, placement, MediaUse::evenly, 0, roles)).take();
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

// SPDX-License-Identifier: Apache-2.0
#include "planner/bounds/price_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/words.h"
#include "planner/bounds/class_prices.h"
#include "planner/packing/demand_packing.h"
#include "planner/packing/spanning_trees.h"

namespace espalier {
namespace {

/// Up to these many ranks each is tried as the one that all relays are merged with.
constexpr int kMaxAdopters = 8;
/// A partition of more ranks than these has too many names.
constexpr int kMaxNamedRanks = 64;

/// For every vertex the group of those it reaches over arcs that cost nothing.
std::vector<int> free_groups(const PackingProblem& problem, const std::vector<Rational>& prices) {
  std::vector<int> group(problem.arcs_from.size(), -1);
  std::vector<std::vector<int>> neighbours(group.size());
  for (std::size_t from = 0; from < group.size(); ++from) {
    for (const auto& arc : problem.arcs_from[from]) {
      if (arc.resource >= 0 && prices[static_cast<std::size_t>(arc.resource)] != 0) continue;
      neighbours[from].push_back(arc.to);
      neighbours[static_cast<std::size_t>(arc.to)].push_back(static_cast<int>(from));
    }
  }
  int groups = 0;
  for (std::size_t start = 0; start < group.size(); ++start) {
    if (group[start] >= 0) continue;
    std::vector<int> reached{static_cast<int>(start)};
    group[start] = groups;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const int next : neighbours[static_cast<std::size_t>(reached[i])]) {
        if (group[static_cast<std::size_t>(next)] >= 0) continue;
        group[static_cast<std::size_t>(next)] = groups;
        reached.push_back(next);
      }
    }
    ++groups;
  }
  return group;
}

struct Partition {
  std::vector<SiteSet> parts;
  Integer around = 0;  ///< in the problem's unit
  std::vector<CountedLink> counted;
};

/// The groups of vertices that hold ranks, and what leaves and enters them. Any disjoint vertex
/// sets that hold all ranks between them, and relays with them, make a valid bound. `relays`: how
/// many vertices after the ranks' are relays, merged with ranks.
Partition partition_of(const PackingProblem& problem, const std::vector<int>& group,
                       std::size_t relays, const Topology& topology) {
  std::map<int, SiteSet> parts;
  const std::size_t sites = static_cast<std::size_t>(problem.ranks) + relays;
  for (std::size_t site = 0; site < sites; ++site) {
    parts.try_emplace(group[site], sites, false).first->second[site] = true;
  }
  std::map<std::pair<int, int>, bool> borders;  // (group, resource): whether it leaves forward
  for (std::size_t from = 0; from < problem.arcs_from.size(); ++from) {
    for (const auto& arc : problem.arcs_from[from]) {
      const int to_group = group[static_cast<std::size_t>(arc.to)];
      if (arc.resource < 0 || group[from] == to_group) continue;
      const Link& link =
          topology.link(problem.resources[static_cast<std::size_t>(arc.resource)].link);
      // One of an arc's ends may only join arcs.
      const bool is_forward =
          problem.node[from] == link.a || problem.node[static_cast<std::size_t>(arc.to)] == link.b;
      if (parts.count(group[from]) > 0) {
        borders.emplace(std::pair(group[from], arc.resource), is_forward);
      }
      if (parts.count(to_group) > 0) {
        borders.emplace(std::pair(to_group, arc.resource), !is_forward);
      }
    }
  }
  Partition partition;
  for (const auto& [id, part] : parts) partition.parts.push_back(part);
  for (const auto& [border, is_forward] : borders) {
    const auto& used = problem.resources[static_cast<std::size_t>(border.second)];
    const Integer around = Integer(used.capacity) * (used.load == 1 ? 2 : 1);
    partition.around += around;
    partition.counted.push_back(
        {used.link, is_forward, used.load != 1, rounded_gbps(around * problem.upper_unit) / 2});
  }
  return partition;
}

/// "medium bus", "gpu0-gpu1" or, of one direction, "gpu0->gpu1".
std::string resource_name(const PackingProblem::Resource& resource, const Topology& topology,
                          bool one_direction) {
  const Link& link = topology.link(resource.link);
  if (link.duplex == Duplex::shared) return "medium " + link.medium;
  const std::string& a = topology.node(link.a).name;
  const std::string& b = topology.node(link.b).name;
  if (!one_direction) return a + "-" + b;
  return resource.forward ? a + "->" + b : b + "->" + a;
}

/// "gpu0-plx0, gpu1-plx0"; of very many names the first ones.
std::string names_of_some(std::vector<std::string> names) {
  constexpr std::size_t kMaxNames = 64;
  constexpr std::size_t kShownOfMany = 8;
  if (names.size() <= kMaxNames) return join(names, ", ");
  const std::size_t others = names.size() - kShownOfMany;
  names.resize(kShownOfMany);
  return fmt::format("{} and {} others at this price", join(names, ", "), others);
}

/// "2 for gpu0-plx0, gpu1-plx0; 1 for ...": whole numbers, dearest first.
/// `turned`: prices of a direction are those of the other one.
std::string price_list(const PackingProblem& problem, const std::vector<Rational>& prices,
                       const Integer& scale, const Topology& topology, bool turned = false) {
  std::map<std::pair<LinkId, bool>, Rational> by_direction;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    const auto& resource = problem.resources[r];
    by_direction[{resource.link, resource.forward}] = prices[r];
  }
  std::map<Integer, std::vector<std::string>, std::greater<>> by_price;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    if (prices[r] == 0) continue;
    auto resource = problem.resources[r];
    const auto opposite = by_direction.find({resource.link, !resource.forward});
    const bool is_direction = opposite != by_direction.end();
    const bool both = is_direction && opposite->second == prices[r];
    if (both && !resource.forward) continue;  // named by the other direction
    if (is_direction && turned) resource.forward = !resource.forward;
    by_price[numerator(Rational(prices[r] * scale * resource.load))].push_back(
        resource_name(resource, topology, is_direction && !both));
  }
  std::vector<std::string> lines;
  for (const auto& [price, names] : by_price) {
    lines.push_back(fmt::format("{} for {}", price.str(), names_of_some(names)));
  }
  return join(lines, "; ");
}

/// What is to be said of prices that a search had when it stopped.
std::string incompleteness(bool is_complete) {
  if (is_complete) return "";
  return fmt::format(". The search for prices stopped when {}: a tighter bound may exist",
                     why_search_stopped());
}

/// What makes the prices of a use whole.
Integer whole_scale(const PackingProblem& problem, const std::vector<Rational>& prices) {
  Integer scale = 1;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    scale = lcm(scale, denominator(Rational(prices[r] * problem.resources[r].load)));
  }
  return scale;
}

/// The same as figures.
std::vector<LinkPrice> by_link(const PackingProblem& problem, const std::vector<Rational>& prices,
                               const Topology& topology, bool turned = false) {
  const Integer scale = whole_scale(problem, prices);
  std::vector<LinkPrice> found;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    if (prices[r] == 0) continue;
    const auto& resource = problem.resources[r];
    const bool one_way =
        problem.use == EdgeUse::one_way && topology.link(resource.link).duplex == Duplex::full;
    found.push_back({resource.link, resource.forward != (one_way && turned), !one_way,
                     static_cast<double>(prices[r] * scale * resource.load)});
  }
  return found;
}

/// Who takes the relays: each the rank nearest to it, which is the one with the widest link to it
/// or, where there is none, the first.
std::vector<int> nearest_ranks(const Router& router, const Placement& placement) {
  std::vector<int> nearest;
  for (const NodeId relay : placement.relays) {
    int best = 0;
    double widest = 0;
    for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
      const auto hop = router.hop(relay, placement.ranks[rank]);
      const double gbps = hop ? router.capacity_gbps(hop->link) : 0;
      if (gbps <= widest) continue;
      widest = gbps;
      best = static_cast<int>(rank);
    }
    nearest.push_back(best);
  }
  return nearest;
}

/// "; gpu4 counted as part of gpu1, ..."
std::string adoption(const CutGraph& graph, const std::vector<int>& adopters) {
  std::vector<std::string> words;
  for (std::size_t relay = 0; relay < adopters.size(); ++relay) {
    words.push_back(fmt::format("{} counts as part of {}",
                                graph.site_name(graph.ranks() + static_cast<int>(relay)),
                                graph.site_name(adopters[relay])));
  }
  return words.empty() ? "" : join(words, ", ") + "; ";
}

/// What prices prove for allreduce: `limit`, in bytes/s.
std::string certificate_of(const PackingProblem& problem, const std::vector<Rational>& prices,
                           const Rational& limit, const Topology& topology) {
  const Integer scale = whole_scale(problem, prices);
  const double paid = rounded_gbps(limit * scale);
  return fmt::format(
      "crossing a link costs {} per byte; other links are free. Then the cheapest tree "
      "that joins the GPUs costs {}; every byte goes up one tree and down another, and all "
      "the "
      "bytes that links carry in a second cost at most 2 x {:.6g} GB/s: {:.6g} / {} = "
      "{:.6g} GB/s",
      price_list(problem, prices, scale, topology), scale.str(), paid, paid, scale.str(),
      rounded_gbps(limit));
}

/// Prices and the limit that they prove.
struct PriceProof {
  const std::vector<Rational>& prices;
  const Rational& limit;    ///< in the problem's unit
  bool is_complete = true;  ///< false: the search for better ones ended early
};

/// Shows it as a partition if the prices are those of one with few enough ranks to name.
void show(const PackingProblem& problem, const PriceProof& proof, const std::vector<int>& adopters,
          const Topology& topology, const CutGraph& graph, BoundJudge& judge) {
  const Rational limit = proof.limit * problem.upper_unit;
  if (graph.ranks() <= kMaxNamedRanks) {
    const Partition partition =
        partition_of(problem, free_groups(problem, proof.prices), adopters.size(), topology);
    const auto parts = static_cast<std::int64_t>(partition.parts.size());
    const Rational around = partition.around * problem.upper_unit;
    // Prices of one direction alone can join all ranks into one group, which divides nothing.
    if (parts > 1 && around / (4 * (parts - 1)) == limit) {
      std::vector<std::string> names;
      for (const SiteSet& part : partition.parts) names.push_back(names_of(graph, part));
      judge.partition(partition.parts, around,
                      parts == graph.sites() ? "every GPU is a part by itself" : join(names, " | "),
                      partition.counted);
      return;
    }
  }
  judge.prices(limit,
               adoption(graph, adopters) + certificate_of(problem, proof.prices, limit, topology) +
                   incompleteness(proof.is_complete),
               by_link(problem, proof.prices, topology));
}

void judge_adoption(const Router& router, const Placement& placement,
                    const std::vector<int>& adopters, const CutGraph& graph, BoundJudge& judge,
                    std::int64_t max_work) {
  const PackingProblem problem =
      packing_problem(router, placement, EdgeUse::both_ways, adopters, MixedSwitches::forward);
  if (!is_connected(problem)) return;
  if (judge.limit() && carries_at_once(problem, *judge.limit() / problem.upper_unit, max_work))
    return;
  const TreePacking packing = pack_spanning_trees(problem, max_work);
  if (packing.prices.empty()) return;  // the time ran out before there were any
  show(problem, {packing.prices, packing.limit, packing.is_complete}, adopters, router.topology(),
       graph, judge);
}

/// What the demands' distances or trees are the least cost of.
std::string byte_of_every(Collective collective, const std::vector<Demand>& demands,
                          const CutGraph& graph) {
  if (demands.front().to != kEveryRank) {
    return fmt::format("one byte for each of the {} pairs of GPUs that exchange data",
                       demands.size());
  }
  const bool turned = info(collective).reduces;
  if (demands.size() > 1) {
    return fmt::format("a byte {} each of the {} GPUs {} all others", turned ? "to" : "from",
                       demands.size(), turned ? "from" : "to");
  }
  return fmt::format("a byte {} {} {} all others", turned ? "to" : "from",
                     graph.site_name(demands.front().from), turned ? "from" : "to");
}

}  // namespace

void judge_by_prices(const Router& router, const Placement& placement, const CutGraph& graph,
                     BoundJudge& judge, std::int64_t max_work) {
  const auto judge_with = [&](const std::vector<int>& adopters) {
    judge_adoption(router, placement, adopters, graph, judge, max_work);
  };
  if (placement.relays.empty()) return judge_with({});
  judge_with(nearest_ranks(router, placement));
  if (graph.ranks() > kMaxAdopters) return;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    judge_with(std::vector<int>(placement.relays.size(), rank));
  }
}

bool judge_by_classes(const Router& router, const Placement& placement, const CutGraph& graph,
                      BoundJudge& judge) {
  const PackingProblem problem =
      packing_problem(router, placement, EdgeUse::both_ways, {}, MixedSwitches::forward);
  if (!is_connected(problem)) return false;
  const auto priced = price_classes(problem, resource_classes(problem));
  if (!priced) return false;
  show(problem, {priced->prices, priced->limit, priced->is_complete}, {}, router.topology(), graph,
       judge);
  return priced->is_complete;
}

void judge_by_demands(Collective collective, int root, const Router& router,
                      const Placement& placement, const CutGraph& graph, BoundJudge& judge) {
  const int n = static_cast<int>(placement.ranks.size());
  const PackingProblem problem =
      packing_problem(router, placement, EdgeUse::one_way, {}, MixedSwitches::forward);
  if (!is_connected(problem)) return;
  const std::vector<Demand> demands = demands_of(collective, root, n);
  const DemandPacking packing = pack_demands(problem, demands);
  if (packing.prices.empty()) return;
  const Integer scale = whole_scale(problem, packing.prices);
  const Rational rate = packing.limit * problem.upper_unit;
  const int blocks = info(collective).blocked ? n : 1;
  const double paid = rounded_gbps(rate * scale);
  const bool turned = info(collective).reduces;
  judge.prices(
      rate * blocks,
      fmt::format(
          "crossing a link costs {} per byte; other links are free. Then {} costs at least {}{}, "
          "and the bytes that links carry in a second cost at most {:.6g} GB/s: {}{:.6g} / {} = "
          "{:.6g} GB/s",
          price_list(problem, packing.prices, scale, router.topology(), turned),
          byte_of_every(collective, demands, graph), scale.str(),
          demands.size() > 1 ? " together" : "", paid,
          blocks > 1 ? fmt::format("{} blocks x ", blocks) : "", paid, scale.str(),
          rounded_gbps(rate * blocks)) +
          incompleteness(packing.is_complete),
      by_link(problem, packing.prices, router.topology(), turned));
}

}  // namespace espalier

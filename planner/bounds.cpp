// SPDX-License-Identifier: Apache-2.0
// Three kinds of proof give every bound here. M is the message, T the time, capacities per second.
//
// Cut: whatever must leave a set S of ranks crosses the links that leave it, so
//   T >= demand(S) * M / out(S).
// Where directions share a link's capacity, what enters S counts, too: with both(S) the capacity of
// the links around S in both directions (a full-duplex link 2c, a medium c),
//   T >= (demand(S) + demand(others)) * M / both(S).
//
// Partition, allreduce only (Nash-Williams and Tutte on direct-connect machines; Patarasuk and Yuan
// 2009 for single ranks): when k parts each must learn the combination of all, and only ranks
// combine, every byte needs at least 2(k-1) messages between parts (k-1 to combine, k-1 to tell). A
// message leaves one part and enters another, so with both(P) the capacity of the links around part
// P in both directions, 4(k-1) M <= T * sum of both(P). A full-duplex link counts 2c in both(P), a
// medium that its directions share counts c.
//
// Prices, for allreduce: see spanning_trees.h. They contain partitions as a special case and are
// exact on every machine; partitions are on direct-connect ones. For gather, scatter, alltoall and
// sendrecv: see demand_packing.h. They contain cuts as a special case and are exact on every
// machine; cuts are not, since many pairs share the links.
//
// Relays combine and copy, but need not be told: cuts may have them on either side, and partitions
// must have each in the part of some rank. For prices of trees every relay is merged with a rank,
// which only makes the machine faster. Switches that combine and multicast are relays here, whose
// memory nobody asks for; prices are not tried where there are any.
#include "planner/bounds.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/time_limit.h"
#include "core/words.h"
#include "planner/bounds/bound_judge.h"
#include "planner/bounds/price_proof.h"
#include "planner/bounds/small_partitions.h"
#include "planner/forest.h"
#include "planner/graph/cut_graph.h"
#include "planner/graph/work_budget.h"
#include "planner/pack_paths.h"
#include "planner/packing/demand_packing.h"

namespace espalier {
namespace {

/// Up to these many ranks the best packing of trees or paths is computed for its prices, and the
/// least cut searched for; above, only natural cuts and partitions are tried. A second or so.
constexpr int kMaxPricedRanks = 64;
constexpr int kMaxCutRanks = 64;
/// Above this many ranks prices of classes of links come first. Where these are found, the search
/// for prices of single links gets a twentieth of its work: they are seldom better, and the whole
/// search takes twenty seconds where bandwidths have no common measure.
constexpr int kMaxUnclassedRanks = 16;
constexpr std::int64_t kMaxWorkBesideClasses = kMaxPackingWork / 20;
/// Up to these many, links are told apart for prices of their classes: on a long line, which takes
/// longest, in about a second.
constexpr int kMaxClassedRanks = 2048;
/// Maximum number of pairs of ranks for bounds by paths: those of an alltoall over 32 ranks.
constexpr std::int64_t kMaxPricedPairs = 1024;
/// Collectives without a polynomial search try all subsets of switched machines up to this size.
constexpr int kMaxEnumeratedRanks = 8;

std::vector<bool> members(unsigned mask, int n) {
  std::vector<bool> inside(static_cast<std::size_t>(n));
  for (int at = 0; at < n; ++at) inside[static_cast<std::size_t>(at)] = mask >> at & 1U;
  return inside;
}

std::string description(const CutGraph& graph, const std::vector<VertexSet>& parts) {
  std::vector<std::string> names;
  for (const VertexSet& part : parts) names.push_back(names_of(graph, graph.sites_of(part)));
  return join(names, " | ");
}

/// Few sites and direct links: all cuts, and all partitions where they count.
void judge_subsets(const CutGraph& graph, Collective collective, int root, bool partitions,
                   BoundJudge& judge) {
  const SubsetCapacities capacities(graph);
  const int n = graph.sites();
  const unsigned ranks = (1U << graph.ranks()) - 1;
  unsigned best = 0;
  std::int64_t best_blocks = 0;
  for (unsigned set = 1; set + 1 < 1U << n; ++set) {
    const std::int64_t blocks =
        blocks_leaving(collective, root, members(set & ranks, graph.ranks()));
    // Cross-multiplied: 45 links of 10 sites are below 2^56, blocks below 2^7.
    if (blocks == 0 || (best_blocks != 0 && capacities.leaving(set) * best_blocks >=
                                                capacities.leaving(best) * blocks)) {
      continue;
    }
    best = set;
    best_blocks = blocks;
  }
  const auto vertices = [&](unsigned set) { return graph.vertices_of(members(set, n)); };
  if (best != 0) judge.cut(vertices(best), capacities.leaving(best));
  for (unsigned set = 1; graph.has_media() && set + 1 < 1U << n; ++set) {
    judge.two_way_cut(vertices(set), capacities.around(set));
  }
  if (!partitions) return;
  std::vector<VertexSet> parts;
  Capacity around = 0;
  for (const unsigned part : capacities.weakest_partition()) {
    parts.push_back(vertices(part));
    around += capacities.around(part);
  }
  judge.partition(parts, around, description(graph, parts));
}

void show(const CutGraph::Cut& cut, BoundJudge& judge) { judge.cut(cut.inside, cut.capacity); }

/// The tightest cut when the demand of a set is the number of its ranks, if it misses `outside`:
/// Dinkelbach's method, from the set with the least capacity per rank so far.
CutGraph::Cut least_per_rank(const CutGraph& graph, int outside, CutGraph::Cut best) {
  while (true) {
    CutGraph::Cut next = graph.least_priced(outside, best.capacity, graph.ranks_in(best.inside));
    if (graph.ranks_in(next.inside) == 0) return best;
    best = std::move(next);
  }
}

VertexSet only(const CutGraph& graph, int rank) {
  SiteSet sites(static_cast<std::size_t>(graph.sites()), false);
  sites[static_cast<std::size_t>(rank)] = true;
  return graph.vertices_of(sites);
}

CutGraph::Cut alone(const CutGraph& graph, int rank) {
  return {graph.leaving_each()[static_cast<std::size_t>(rank)], only(graph, rank)};
}

/// Links carry the same in both directions: what can leave a set can enter it.
CutGraph::Cut turned(CutGraph::Cut cut) {
  cut.inside.flip();
  return cut;
}

/// Least cuts by maximum flows, as many as there is time for. False for the collectives whose cuts
/// no flow finds.
bool judge_by_flows(const CutGraph& graph, Collective collective, int root, BoundJudge& judge) {
  const int n = graph.ranks();
  const int other = root == 0 ? 1 : 0;
  switch (collective) {
    case Collective::broadcast:
    case Collective::allreduce:
      for (int rank = 0; rank < n && !is_time_up(); ++rank) {
        if (rank != root) show(graph.between(root, rank), judge);
      }
      return true;
    case Collective::reduce:
      for (int rank = 0; rank < n && !is_time_up(); ++rank) {
        if (rank != root) show(graph.between(rank, root), judge);
      }
      return true;
    case Collective::gather:
      show(least_per_rank(graph, root, alone(graph, other)), judge);
      return true;
    case Collective::scatter:
      show(turned(least_per_rank(graph, root, alone(graph, other))), judge);
      return true;
    case Collective::allgather:
    case Collective::reducescatter: {
      CutGraph::Cut best = alone(graph, 0);
      for (int rank = 0; rank < n && !is_time_up(); ++rank) {
        best = least_per_rank(graph, rank, std::move(best));
      }
      show(collective == Collective::allgather ? best : turned(best), judge);
      // Whatever the set, all blocks cross: its own out of it, the others into it.
      for (int rank = 1; graph.has_media() && rank < n && !is_time_up(); ++rank) {
        const CutGraph::Cut cut = graph.around_between(0, rank);
        judge.two_way_cut(cut.inside, cut.capacity);
      }
      return true;
    }
    case Collective::alltoall:
    case Collective::sendrecv:
      return false;
  }
  return false;
}

/// What a bound is asked for, and whether partitions may prove it.
struct Question {
  Collective collective;
  int root;
  bool partitions;
};

/// Links carry the same in both directions: as much can enter a set as can leave it.
void judge_both_sides(const CutGraph& graph, VertexSet inside, BoundJudge& judge) {
  const Capacity capacity = graph.leaving(inside);
  judge.cut(inside, capacity);
  if (graph.has_media()) judge.two_way_cut(inside, graph.around(inside));
  inside.flip();
  judge.cut(inside, capacity);
}

/// Groups that have no vertex in common; `what` they are.
void judge_groups(const CutGraph& graph, const Question& question,
                  const std::vector<std::vector<int>>& groups, const std::string& what,
                  BoundJudge& judge) {
  const std::vector<CutGraph::Summary> summaries = graph.summaries(groups);
  std::vector<std::size_t> with_ranks;
  Capacity around = 0;
  std::int64_t sites = 0;
  std::set<std::tuple<std::int64_t, bool, Capacity, Capacity>> judged;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const CutGraph::Summary& one = summaries[group];
    if (one.ranks == 0) continue;
    with_ranks.push_back(group);
    sites += one.sites;
    around += one.around;
    const bool has_root = std::ranges::any_of(
        groups[group], [&](int vertex) { return graph.site_of(vertex) == question.root; });
    // The first of those that are alike proves as much as the others, unless it matters which ranks
    // follow one another.
    const bool is_new = judged.emplace(one.ranks, has_root, one.leaving, one.around).second;
    if (!is_new && question.collective != Collective::sendrecv) continue;
    judge_both_sides(graph, graph.set_of(groups[group]), judge);
  }
  // Only a partition when the groups with ranks hold every rank and relay between them.
  const bool is_partition = question.partitions && sites == graph.sites();
  const auto parts = static_cast<int>(with_ranks.size());
  if (!is_partition || !judge.gains_by_partition(parts, Rational(around))) return;
  std::vector<VertexSet> sets;
  for (const std::size_t group : with_ranks) sets.push_back(graph.set_of(groups[group]));
  judge.partition(sets, around, "one part per " + what);
}

/// Cuts and partitions that need no search, for machines with many ranks.
void judge_natural(const CutGraph& graph, const Question& question, BoundJudge& judge) {
  const int root = question.root;
  const CutGraph::NaturalSets sets = graph.natural_sets();
  judge_groups(graph, question, sets.hosts, "host", judge);
  judge_groups(graph, question, sets.sockets, "socket", judge);
  for (const std::vector<bool>& prefix : sets.prefixes) judge_both_sides(graph, prefix, judge);

  if (question.partitions && graph.relays() == 0) {
    Capacity around = 0;
    for (const Capacity capacity : graph.around_each()) around += capacity;
    if (judge.gains_by_partition(graph.ranks(), Rational(around))) {
      std::vector<VertexSet> parts;
      for (int rank = 0; rank < graph.ranks(); ++rank) parts.push_back(only(graph, rank));
      judge.partition(parts, around, "every GPU is a part by itself");
    }
  }
  // Of the single GPUs only the poorest binds, apart from the root, whose demand differs.
  const std::vector<Capacity> outward = graph.leaving_each();
  int poorest = root == 0 ? 1 : 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    if (rank != root && outward[rank] < outward[poorest]) poorest = rank;
  }
  for (const int rank : {root, poorest}) {
    show(alone(graph, rank), judge);
    show(turned(alone(graph, rank)), judge);
  }
}

/// Whether prices can be tighter than cuts: of paths, and of trees where directions share links.
bool is_priced(Collective collective, const CutGraph& graph) {
  const int n = graph.ranks();
  if (has_paths(collective)) {
    return n <= kMaxPricedRanks && count_demands(collective, n) <= kMaxPricedPairs;
  }
  return collective != Collective::allreduce && graph.has_media() && graph.relays() == 0 &&
         n <= kMaxPricedTreeRanks;
}

/// Whether copies of one thing can become one, or one can become many, on the way.
bool gains_in_switches(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::broadcast ||
         collective == Collective::reduce || collective == Collective::allgather ||
         collective == Collective::reducescatter;
}

/// The placement with switches that combine among its relays.
Placement with_switches(const Router& router, const Placement& placement) {
  Placement with = placement;
  const Topology& topology = router.topology();
  for (NodeId id = 0; id < static_cast<NodeId>(topology.nodes.size()); ++id) {
    const Node& node = topology.node(id);
    if (!node.combines) continue;
    const bool in_network = node.kind == NodeKind::fabric;
    const bool can_use = std::ranges::any_of(placement.ranks, [&](NodeId rank) {
      const Node& gpu = topology.node(rank);
      const bool is_near =
          in_network ? router.scope() != LinkScope::fabric : node.host < 0 || node.host == gpu.host;
      return is_near && router.profile().switch_ops(gpu.model, in_network) != nullptr;
    });
    if (can_use) with.relays.push_back(id);
  }
  return with;
}

/// Shows the judge all limits that there is time for. `in_switches`: some combine.
void judge_all(Collective collective, int root, const Router& router, const Placement& placement,
               const CutGraph& graph, const BoundOptions& options, bool in_switches,
               BoundJudge& judge) {
  const int n = graph.ranks();
  const bool priced = !options.helpers && is_priced(collective, graph);
  const bool partitions = collective == Collective::allreduce && !options.helpers;
  if (n <= 1) return;
  if (graph.direct() && graph.sites() <= SubsetCapacities::kMaxSites) {
    judge_subsets(graph, collective, root, partitions, judge);
    if (priced && !is_time_up()) {
      judge_by_demands(collective, root, router, placement, graph, judge);
    }
    return;
  }
  judge_natural(graph, {collective, root, partitions}, judge);
  if (partitions) {
    if (in_switches || is_time_up()) return;
    const bool may_be_classed =
        n > kMaxUnclassedRanks && n <= kMaxClassedRanks && placement.relays.empty();
    const bool is_classed = may_be_classed && judge_by_classes(router, placement, graph, judge);
    if (n > kMaxPricedRanks || is_time_up()) return;
    judge_by_prices(router, placement, graph, judge,
                    is_classed ? kMaxWorkBesideClasses : kMaxPackingWork);
    return;
  }
  const bool searched = n <= kMaxCutRanks && judge_by_flows(graph, collective, root, judge);
  for (unsigned set = 1; !searched && n <= kMaxEnumeratedRanks && set + 1 < 1U << n; ++set) {
    show(graph.out_of(members(set, n)), judge);
  }
  if (priced && !is_time_up()) {
    judge_by_demands(collective, root, router, placement, graph, judge);
  }
}

}  // namespace

BoundProof proven_bound(Collective collective, int root, const Router& router,
                        const Placement& given, const BoundOptions& options) {
  const Placement placement =
      options.in_switches && gains_in_switches(collective) ? with_switches(router, given) : given;
  const CutGraph graph(router, placement);
  BoundJudge judge(collective, root, graph);
  judge_all(collective, root, router, placement, graph, options,
            placement.relays.size() > given.relays.size(), judge);
  BoundProof proof{judge.bound(), {}, judge.link_prices(), judge.counted()};
  for (const SiteSet& part : judge.parts()) {
    std::vector<NodeId>& nodes = proof.parts.emplace_back();
    for (std::size_t site = 0; site < part.size(); ++site) {
      if (part[site]) nodes.push_back(site_node(placement, static_cast<int>(site)));
    }
  }
  return proof;
}

Bound bandwidth_bound(Collective collective, int root, const Router& router,
                      const Placement& placement, const BoundOptions& options) {
  return proven_bound(collective, root, router, placement, options).bound;
}

}  // namespace espalier

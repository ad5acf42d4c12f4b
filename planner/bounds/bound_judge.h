// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/bound_proof.h"
#include "planner/graph/cut_graph.h"
#include "planner/graph/exact.h"

// Private to the room.

namespace espalier {

/// By rank: whether it is in the set.
using RankSet = std::vector<bool>;
/// By site (ranks, then relays): the same.
using SiteSet = std::vector<bool>;
/// By vertex of the graph: the same.
using VertexSet = std::vector<bool>;

/// How many blocks have to leave the ranks in `inside` when the message is one block per rank.
std::int64_t blocks_leaving(Collective collective, int root, const RankSet& inside);

/// "{gpu0, gpu1}"
std::string names_of(const CutGraph& graph, const SiteSet& inside);

/// Keeps the tightest of the limits it is shown, with its certificate.
class BoundJudge {
 public:
  BoundJudge(Collective collective, int root, const CutGraph& graph);

  /// `out`: what leaves the set (see CutGraph::leaving).
  void cut(const VertexSet& inside, Capacity out);
  /// `around`: what leaves the set and what enters it (see CutGraph::around).
  void two_way_cut(const VertexSet& inside, Capacity around);
  /// Whether so many parts would prove a tighter limit than what is known.
  bool gains_by_partition(int parts, const Rational& around) const;
  /// Allreduce. `around`: what leaves and what enters the parts, added up over them (see
  /// CutGraph::around). `description` names the parts.
  void partition(const std::vector<VertexSet>& parts, Capacity around,
                 const std::string& description);
  /// The same of parts whose other vertices are not known: `counted` adds up to half of `around`.
  void partition(const std::vector<SiteSet>& parts, const Rational& around,
                 const std::string& description, std::vector<CountedLink> counted);
  /// A limit in bytes/s that prices of links prove.
  void prices(const Rational& limit, const std::string& certificate,
              std::vector<LinkPrice> by_link);

  Bound bound() const;
  /// The tightest so far, in bytes/s.
  const std::optional<Rational>& limit() const { return best_; }
  /// Of a cut, the set inside; of a partition, all parts; else none.
  const std::vector<SiteSet>& parts() const { return parts_; }
  const std::vector<LinkPrice>& link_prices() const { return prices_; }
  const std::vector<CountedLink>& counted() const { return counted_; }

 private:
  bool is_tighter(const Rational& limit);
  bool would_be_tighter(const Rational& limit) const { return !best_ || limit < *best_; }
  RankSet ranks_of(const VertexSet& vertices) const;

  Collective collective_;
  int root_;
  const CutGraph& graph_;
  std::optional<Rational> best_;  ///< bytes/s
  std::string kind_;
  std::string certificate_ = "nothing has to cross a link";
  std::vector<SiteSet> parts_;
  std::vector<LinkPrice> prices_;
  std::vector<CountedLink> counted_;
};

}  // namespace espalier

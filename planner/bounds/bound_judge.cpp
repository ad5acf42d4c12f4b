// SPDX-License-Identifier: Apache-2.0
#include "planner/bounds/bound_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "core/words.h"

namespace espalier {

std::int64_t blocks_leaving(Collective collective, int root, const RankSet& inside) {
  const auto n = static_cast<std::int64_t>(inside.size());
  const std::int64_t s = std::count(inside.begin(), inside.end(), true);
  const bool has_root = inside[static_cast<std::size_t>(root)];
  if (s == 0 || s == n) return 0;
  switch (collective) {
    case Collective::broadcast:
      return has_root ? n : 0;
    case Collective::reduce:
      return has_root ? 0 : n;
    case Collective::allreduce:
      return n;
    case Collective::allgather:
      return s;
    case Collective::reducescatter:
      return n - s;
    case Collective::gather:
      return has_root ? 0 : s;
    case Collective::scatter:
      return has_root ? n - s : 0;
    case Collective::alltoall:
      return s * (n - s);
    case Collective::sendrecv: {
      std::int64_t leaving = 0;
      for (std::size_t i = 0; i < inside.size(); ++i) {
        if (inside[i] && !inside[(i + 1) % inside.size()]) leaving += n;
      }
      return leaving;
    }
  }
  CHECK(false);
}

std::string names_of(const CutGraph& graph, const SiteSet& inside) {
  std::vector<std::string> words;
  for (std::size_t site = 0; site < inside.size(); ++site) {
    if (inside[site]) words.push_back(graph.site_name(static_cast<int>(site)));
  }
  return "{" + join(words, ", ") + "}";
}

/// Every byte takes 2 (parts - 1) messages between parts, and `around` counts links twice.
Rational limit_of_partition(std::int64_t parts, const Rational& around) {
  return around / (4 * (parts - 1));
}

BoundJudge::BoundJudge(Collective collective, int root, const CutGraph& graph)
    : collective_(collective), root_(root), graph_(graph) {}

bool BoundJudge::is_tighter(const Rational& limit) {
  if (!would_be_tighter(limit)) return false;
  best_ = limit;
  parts_.clear();
  prices_.clear();
  counted_.clear();
  return true;
}

RankSet BoundJudge::ranks_of(const VertexSet& vertices) const {
  RankSet ranks = graph_.sites_of(vertices);
  ranks.resize(static_cast<std::size_t>(graph_.ranks()));
  return ranks;
}

void BoundJudge::cut(const VertexSet& inside, Capacity out) {
  const std::int64_t n = graph_.ranks();
  const std::int64_t blocks = blocks_leaving(collective_, root_, ranks_of(inside));
  if (blocks == 0 || !is_tighter(Rational(Integer(out) * n, Integer(blocks)))) return;
  const double need = static_cast<double>(blocks) / static_cast<double>(n);
  const double gbps = rounded_gbps(out);
  kind_ = "cut";
  parts_ = {graph_.sites_of(inside)};
  for (const CutGraph::Arc& arc : graph_.arcs_leaving(inside)) {
    counted_.push_back(
        {arc.hop.link, arc.hop.forward, arc.medium >= 0, rounded_gbps(arc.capacity)});
  }
  certificate_ = fmt::format(
      "the links out of {} carry {:.6g} GB/s and {:.6g} of the message must cross them: "
      "{:.6g} / {:.6g} = {:.6g} GB/s",
      names_of(graph_, parts_.front()), gbps, need, gbps, need, rounded_gbps(*best_));
}

void BoundJudge::two_way_cut(const VertexSet& inside, Capacity around) {
  const std::int64_t n = graph_.ranks();
  const RankSet ranks = ranks_of(inside);
  RankSet others = ranks;
  others.flip();
  const std::int64_t blocks =
      blocks_leaving(collective_, root_, ranks) + blocks_leaving(collective_, root_, others);
  if (blocks == 0 || !is_tighter(Rational(Integer(around) * n, Integer(blocks)))) return;
  const double need = static_cast<double>(blocks) / static_cast<double>(n);
  const double gbps = rounded_gbps(around);
  kind_ = "cut";
  parts_ = {graph_.sites_of(inside)};
  for (const CutGraph::Arc& arc : graph_.arcs_leaving(inside)) {
    const CountedLink one{arc.hop.link, arc.hop.forward, arc.medium >= 0,
                          rounded_gbps(arc.capacity)};
    counted_.push_back(one);
    if (!one.both) counted_.push_back({one.link, !one.forward, false, one.gbps});
  }
  certificate_ = fmt::format(
      "the links between {} and the other GPUs carry {:.6g} GB/s in both directions together, and "
      "{:.6g} "
      "of "
      "the message must cross them: {:.6g} / {:.6g} = {:.6g} GB/s",
      names_of(graph_, parts_.front()), gbps, need, gbps, need, rounded_gbps(*best_));
}

bool BoundJudge::gains_by_partition(int parts, const Rational& around) const {
  return parts > 1 && would_be_tighter(limit_of_partition(parts, around));
}

void BoundJudge::partition(const std::vector<VertexSet>& sets, Capacity around,
                           const std::string& description) {
  if (!gains_by_partition(static_cast<int>(sets.size()), around)) return;
  std::vector<SiteSet> sites;
  std::vector<CountedLink> counted;
  for (const VertexSet& part : sets) {
    sites.push_back(graph_.sites_of(part));
    for (const CutGraph::Arc& arc : graph_.arcs_leaving(part)) {
      // A medium takes messages that leave any of its parts, and counts half for each.
      const double share = arc.medium >= 0 ? 0.5 : 1;
      counted.push_back(
          {arc.hop.link, arc.hop.forward, arc.medium >= 0, share * rounded_gbps(arc.capacity)});
    }
  }
  partition(sites, Rational(around), description, std::move(counted));
}

void BoundJudge::partition(const std::vector<SiteSet>& sets, const Rational& around,
                           const std::string& description, std::vector<CountedLink> counted) {
  const auto parts = static_cast<std::int64_t>(sets.size());
  if (parts < 2 || !is_tighter(limit_of_partition(parts, around))) return;
  // A full-duplex link counts twice in `around`; in words, what leaves the parts is plainer.
  const std::int64_t messages = 2 * (parts - 1);
  const double gbps = rounded_gbps(*best_ * messages);
  kind_ = "partition";
  parts_ = sets;
  counted_ = std::move(counted);
  certificate_ = fmt::format(
      "{}: the links out of the {} parts carry {:.6g} GB/s together and every byte takes "
      "2 x ({} - 1) = {} messages between parts: {:.6g} / {} = {:.6g} GB/s",
      description, parts, gbps, parts, messages, gbps, messages, rounded_gbps(*best_));
}

void BoundJudge::prices(const Rational& limit, const std::string& certificate,
                        std::vector<LinkPrice> by_link) {
  if (!is_tighter(limit)) return;
  prices_ = std::move(by_link);
  kind_ = "lp";
  certificate_ = certificate;
}

Bound BoundJudge::bound() const {
  if (!best_) {
    return {std::numeric_limits<double>::infinity(), "unlimited", "", certificate_};
  }
  return {rounded_gbps(*best_), exact_gbps(*best_), kind_, certificate_};
}

}  // namespace espalier

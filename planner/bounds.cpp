// SPDX-License-Identifier: Apache-2.0
// Two inequalities give every bound here. M is the message, T the time, capacities per second.
//
// Cut: whatever must leave a set S of ranks crosses the links that leave it, so
//   T >= demand(S) * M / out(S).
//
// Partition, allreduce only (Nash-Williams and Tutte on direct-connect machines; Patarasuk and Yuan
// 2009 for single ranks): when k parts each must learn the combination of all, and only ranks
// combine, every byte needs at least 2(k-1) messages between parts (k-1 to combine, k-1 to tell). A
// message leaves one part and enters another, so with both(P) the capacity of the links around part
// P in both directions, 4(k-1) M <= T * sum of both(P). A full-duplex link counts 2c in both(P), a
// medium that its directions share counts c: hence "halve_media" when only the outward half is
// summed.
#include "planner/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/words.h"
#include "planner/cut_graph.h"

namespace espalier {
namespace {

/// All subsets of ranks are tried up to these many ranks; above, the natural sets only.
constexpr int kExactRanksDirect = 10;
constexpr int kExactRanksSwitched = 8;

using RankSet = std::vector<bool>;

/// How much of the message has to leave the ranks in `inside`, in units of M.
double demand(Collective collective, int root, const RankSet& inside) {
  const double n = static_cast<double>(inside.size());
  const double s = static_cast<double>(std::count(inside.begin(), inside.end(), true));
  const bool has_root = inside[root];
  if (s == 0 || s == n) return 0;
  switch (collective) {
    case Collective::broadcast:
      return has_root ? 1 : 0;
    case Collective::reduce:
      return has_root ? 0 : 1;
    case Collective::allreduce:
      return 1;
    case Collective::allgather:
      return s / n;
    case Collective::reducescatter:
      return (n - s) / n;
    case Collective::gather:
      return has_root ? 0 : s / n;
    case Collective::scatter:
      return has_root ? (n - s) / n : 0;
    case Collective::alltoall:
      return s * (n - s) / n;
    case Collective::sendrecv: {
      double leaving = 0;
      for (std::size_t i = 0; i < inside.size(); ++i) {
        if (inside[i] && !inside[(i + 1) % inside.size()]) ++leaving;
      }
      return leaving;
    }
  }
  CHECK(false);
}

double gbps(Capacity capacity) { return static_cast<double>(capacity) * 1e-9; }

std::string names(const CutGraph& graph, const RankSet& inside) {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> words;
  std::size_t left_out = 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    if (!inside[rank]) continue;
    if (words.size() < kMost) {
      words.push_back(graph.rank_name(rank));
    } else {
      ++left_out;
    }
  }
  if (left_out) words.push_back(fmt::format("{} more", left_out));
  return "{" + join(words, ", ") + "}";
}

class Judge {
 public:
  Judge(Collective collective, int root, const CutGraph& graph)
      : collective_(collective), root_(root), graph_(graph) {
    best_.algbw_gbps = std::numeric_limits<double>::infinity();
    best_.certificate = "nothing has to cross a link";
  }

  void cut(const RankSet& inside, Capacity out) {
    const double need = demand(collective_, root_, inside);
    if (need == 0) return;
    const double algbw = gbps(out) / need;
    if (algbw >= best_.algbw_gbps) return;
    best_.algbw_gbps = algbw;
    best_.kind = "cut";
    best_.certificate = fmt::format(
        "the links out of {} carry {:.6g} GB/s and {:.6g} of the message must cross them: "
        "{:.6g} / {:.6g} = {:.6g} GB/s",
        names(graph_, inside), gbps(out), need, gbps(out), need, algbw);
  }

  /// `leaving`: sum over the parts of the capacity that leaves each, media halved.
  void partition(int parts, Capacity leaving, const std::string& description) {
    if (parts < 2) return;
    const double messages = 2.0 * (parts - 1);
    const double algbw = gbps(leaving) / messages;
    // Equal within rounding: the plain cut says the same in fewer words.
    if (algbw >= best_.algbw_gbps * (1 - 1e-12)) return;
    best_.algbw_gbps = algbw;
    best_.kind = "partition";
    best_.certificate = fmt::format(
        "{}: the links out of the {} parts carry {:.6g} GB/s together and every byte takes "
        "2 x ({} - 1) = {:g} messages between parts: {:.6g} / {:g} = {:.6g} GB/s",
        description, parts, gbps(leaving), parts, messages, gbps(leaving), messages, algbw);
  }

  const Bound& best() const { return best_; }

 private:
  Collective collective_;
  int root_;
  const CutGraph& graph_;
  Bound best_;
};

RankSet members(unsigned mask, int n) {
  RankSet inside(n);
  for (int rank = 0; rank < n; ++rank) inside[rank] = mask >> rank & 1U;
  return inside;
}

/// The partition into k parts, for the k that binds most: least[k][set] is the least capacity
/// leaving k parts that make up `set`, built by splitting off the part that holds the set's first
/// rank.
void best_partition(const CutGraph& graph, Judge& judge) {
  const int n = graph.ranks();
  const unsigned all = (1U << n) - 1;
  std::vector<Capacity> out(all + 1, 0);
  for (unsigned set = 1; set < all; ++set) out[set] = graph.out_of(members(set, n), true);
  constexpr Capacity kNone = std::numeric_limits<Capacity>::max() / 2;
  std::vector<std::vector<Capacity>> least(n + 1, std::vector<Capacity>(all + 1, kNone));
  std::vector<std::vector<unsigned>> choice(n + 1, std::vector<unsigned>(all + 1, 0));
  least[0][0] = 0;
  for (int k = 1; k <= n; ++k) {
    for (unsigned set = 1; set <= all; ++set) {
      const unsigned first = set & -set;
      const unsigned rest = set ^ first;
      for (unsigned extra = rest;; extra = (extra - 1) & rest) {
        const unsigned part = first | extra;
        const Capacity sum = least[k - 1][set ^ part] + out[part];
        if (sum < least[k][set]) {
          least[k][set] = sum;
          choice[k][set] = part;
        }
        if (extra == 0) break;
      }
    }
  }
  for (int k = n; k >= 2; --k) {
    std::vector<std::string> parts;
    unsigned set = all;
    for (int left = k; left > 0; --left) {
      parts.push_back(names(graph, members(choice[left][set], n)));
      set ^= choice[left][set];
    }
    judge.partition(k, least[k][all], join(parts, " | "));
  }
}

void all_cuts(const CutGraph& graph, Judge& judge) {
  const int n = graph.ranks();
  for (unsigned set = 1; set + 1 < 1U << n; ++set) {
    const RankSet inside = members(set, n);
    judge.cut(inside, graph.out_of(inside, false));
  }
}

/// Cuts and partitions that need no search, for machines with many ranks.
void natural_cuts(const CutGraph& graph, int root, bool partitions, Judge& judge) {
  const auto both_sides = [&](std::vector<bool> set) {
    judge.cut(graph.ranks_of(set), graph.leaving(set, false));
    set.flip();
    judge.cut(graph.ranks_of(set), graph.leaving(set, false));
  };
  const auto by_group = [&](const std::vector<std::vector<bool>>& groups, const std::string& what) {
    int parts = 0;
    Capacity leaving = 0;
    std::size_t ranks = 0;
    for (const std::vector<bool>& group : groups) {
      const RankSet inside = graph.ranks_of(group);
      const auto held = static_cast<std::size_t>(std::count(inside.begin(), inside.end(), true));
      if (held == 0) continue;
      ++parts;
      ranks += held;
      leaving += graph.leaving(group, true);
      both_sides(group);
    }
    // Only a partition when the groups hold every rank between them.
    if (partitions && ranks == static_cast<std::size_t>(graph.ranks())) {
      judge.partition(parts, leaving, "one part per " + what);
    }
  };
  const CutGraph::NaturalSets sets = graph.natural_sets();
  by_group(sets.hosts, "host");
  by_group(sets.sockets, "socket");
  for (const std::vector<bool>& prefix : sets.prefixes) both_sides(prefix);

  const std::vector<Capacity> single = graph.leaving_each(true);
  if (partitions) {
    Capacity leaving = 0;
    for (const Capacity capacity : single) leaving += capacity;
    judge.partition(graph.ranks(), leaving, "every GPU a part of its own");
  }
  // Of the single GPUs only the poorest binds, apart from the root, whose demand differs.
  const std::vector<Capacity> outward = graph.leaving_each(false);
  int poorest = root == 0 ? 1 : 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    if (rank != root && outward[rank] < outward[poorest]) poorest = rank;
  }
  for (const int rank : {root, poorest}) {
    RankSet inside(graph.ranks(), false);
    inside[rank] = true;
    judge.cut(inside, outward[rank]);
    inside.flip();  // links carry the same in both directions: what can leave a GPU can enter it
    judge.cut(inside, outward[rank]);
  }
}

}  // namespace

Bound bandwidth_bound(Collective collective, int root, const Router& router,
                      const Placement& placement, const BoundOptions& options) {
  const CutGraph graph(router, placement);
  Judge judge(collective, root, graph);
  const bool partitions = collective == Collective::allreduce && !options.helpers;
  const int most = graph.direct() ? kExactRanksDirect : kExactRanksSwitched;
  if (graph.ranks() <= 1) return judge.best();
  if (graph.ranks() <= most) {
    all_cuts(graph, judge);
    if (partitions) best_partition(graph, judge);
  } else {
    natural_cuts(graph, root, partitions, judge);
  }
  return judge.best();
}

}  // namespace espalier

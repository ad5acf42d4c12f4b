// SPDX-License-Identifier: Apache-2.0
#include "planner/bounds/small_partitions.h"

#include <bit>
#include <limits>

#include "core/check.h"
#include "planner/graph/exact.h"

namespace espalier {
namespace {

/// What leaves every subset when a link counts as `weight[a][b]`: that of the set without its
/// lowest rank, and that rank's links to the outside instead of those to the inside.
std::vector<Capacity> by_subset(const std::vector<std::vector<Capacity>>& weight) {
  const auto n = weight.size();
  std::vector<Capacity> sums(std::size_t{1} << n, 0);
  for (unsigned set = 1; set < sums.size(); ++set) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(set));
    Capacity sum = sums[set & (set - 1)];
    for (std::size_t other = 0; other < n; ++other) {
      if (other == lowest) continue;
      sum += (set >> other & 1U) != 0 ? -weight[lowest][other] : weight[lowest][other];
    }
    sums[set] = sum;
  }
  return sums;
}

}  // namespace

SubsetCapacities::SubsetCapacities(const CutGraph& graph)
    : sites_(graph.sites()), rank_mask_((1U << graph.ranks()) - 1) {
  CHECK(graph.direct() && sites_ <= kMaxSites);
  const auto n = static_cast<std::size_t>(sites_);
  std::vector<std::vector<Capacity>> out(n, std::vector<Capacity>(n, 0));
  std::vector<std::vector<Capacity>> both = out;
  for (const CutGraph::Arc& arc : graph.arcs()) {
    const auto from = static_cast<std::size_t>(graph.site_of(arc.from));
    const auto to = static_cast<std::size_t>(graph.site_of(arc.to));
    out[from][to] += arc.capacity;
    both[from][to] += arc.medium < 0 ? 2 * arc.capacity : arc.capacity;
  }
  leaving_ = by_subset(out);
  around_ = by_subset(both);
}

/// Dinkelbach's method: while some partition has around(P) < ratio * (parts - 1), take the one with
/// the least around(P) - ratio * parts. least[set] is that least for the partitions of `set`, built
/// by splitting off the part that holds its lowest site; a set of relays alone has no partition.
std::vector<unsigned> SubsetCapacities::weakest_partition() const {
  CHECK(std::popcount(rank_mask_) >= 2);
  const unsigned all = (1U << sites_) - 1;
  std::vector<unsigned> parts{1U | (all & ~rank_mask_)};  // the relays with rank 0
  for (int rank = 1; rank < std::popcount(rank_mask_); ++rank) parts.push_back(1U << rank);
  constexpr Wide kNone = Wide{std::numeric_limits<Capacity>::max()} << kMaxSites;
  std::vector<Wide> minimum(all + 1);
  std::vector<unsigned> choice(all + 1);
  while (true) {
    Wide sum = 0;
    for (const unsigned part : parts) sum += around_[part];
    const Wide splits = static_cast<Wide>(parts.size()) - 1;
    for (unsigned set = 1; set <= all; ++set) {
      const unsigned lowest = set & (0U - set);
      const unsigned rest = set ^ lowest;
      Wide best = kNone;
      for (unsigned extra = rest;; extra = (extra - 1) & rest) {
        const unsigned part = lowest | extra;
        if ((part & rank_mask_) != 0 && minimum[set ^ part] != kNone) {
          const Wide value = splits * around_[part] - sum + minimum[set ^ part];
          if (value < best) {
            best = value;
            choice[set] = part;
          }
        }
        if (extra == 0) break;
      }
      minimum[set] = best;
    }
    // Zero is what the present partition reaches; the whole as its only part reaches it, too.
    if (minimum[all] + sum >= 0) return parts;
    parts.clear();
    for (unsigned set = all; set != 0; set ^= choice[set]) parts.push_back(choice[set]);
  }
}

}  // namespace espalier

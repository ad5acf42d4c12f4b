// SPDX-License-Identifier: Apache-2.0
#include "planner/rings/ring_packing.h"

#include <algorithm>
#include <bit>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

/// Steps a search may take: a few milliseconds.
constexpr int kBudget = 200'000;

/// Lays rings by depth-first search on what is left of the links.
class RingPacker {
 public:
  RingPacker(const FabricLinks& links, const RingRules& rules)
      : links_(links), rules_(rules), n_(links.ranks()) {
    free_.reserve(static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_));
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) free_.push_back(links.units(a, b));
    }
  }

  /// Adds `count` rings with at most `relays` relayed hops in all. False, and nothing added, when
  /// there are none or `budget` (steps, counted down) is used up.
  bool lay(int count, int relays, int& budget) {
    wanted_ = static_cast<int>(rings_.size()) + count;
    relays_left_ = relays;
    budget_ = &budget;
    return lay_next_ring();
  }

  const std::vector<Ring>& rings() const { return rings_; }

 private:
  using Ranks = boost::container::static_vector<int, kMaxRingRanks>;

  bool is_used(int rank) const { return (used_ >> rank & 1U) != 0; }

  int& free(int a, int b) {
    return free_[static_cast<std::size_t>(a) * static_cast<std::size_t>(n_) +
                 static_cast<std::size_t>(b)];
  }

  void use(int a, int b, int units) {
    free(a, b) -= units;
    if (rules_.both_ways) free(b, a) -= units;
  }

  bool lay_next_ring() {
    if (static_cast<int>(rings_.size()) == wanted_) return true;
    if (!every_rank_has_links_left()) return false;
    // A frame of its own, because the ring before is put back when this one can't be laid.
    Ring outer = std::exchange(ring_, Ring{{0}, {}});
    const std::uint32_t outer_used = std::exchange(used_, 1U);  // rank 0
    const bool laid = extend();
    ring_ = std::move(outer);
    used_ = outer_used;
    return laid;
  }

  bool every_rank_has_links_left() {
    const int needed = (wanted_ - static_cast<int>(rings_.size())) * (rules_.both_ways ? 2 : 1);
    for (int a = 0; a < n_; ++a) {
      int out = 0;
      for (int b = 0; b < n_; ++b) out += free(a, b);
      if (out < needed) return false;
    }
    return true;
  }

  bool extend() {
    if (--*budget_ < 0) return false;
    const int last = ring_.order.back();
    if (static_cast<int>(ring_.order.size()) == n_) return close(last);
    for (const int next : candidates(last)) {
      used_ ^= 1U << next;
      ring_.order.push_back(next);
      if (hop(last, next, [&] { return extend(); })) return true;
      ring_.order.pop_back();
      used_ ^= 1U << next;
    }
    return false;
  }

  bool close(int last) {
    // Of a ring and its reverse, which is the same ring when used both ways, only one is tried.
    if (rules_.both_ways && ring_.order[1] > last) return false;
    // Nor are the same rings laid in another sequence.
    if (rules_.both_ways && !rings_.empty() && n_ <= kExactRingRanks &&
        ring_.order < rings_.back().order) {
      return false;
    }
    return hop(last, 0, [&] {
      rings_.push_back(ring_);
      if (lay_next_ring()) return true;
      rings_.pop_back();
      return false;
    });
  }

  /// Unused ranks, those with the fewest links to other unused ones first where the search is a
  /// heuristic: they would be hard to reach later.
  Ranks candidates(int last) {
    Ranks order;
    if (n_ <= kExactRingRanks) {
      for (int next = 0; next < n_; ++next) {
        if (!is_used(next)) order.push_back(next);
      }
      return order;
    }
    boost::container::static_vector<std::pair<int, int>, kMaxRingRanks> found;
    for (int distance = 1; distance < n_; ++distance) {
      const int next = (last + distance) % n_;
      if (is_used(next)) continue;
      int onward = 0;
      for (int b = 0; b < n_; ++b) onward += !is_used(b) && free(next, b) != 0 ? 1 : 0;
      found.emplace_back(onward, distance);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [onward, distance] : found) order.push_back((last + distance) % n_);
    return order;
  }

  /// Goes from `a` to `b` in every way there is until `then` succeeds.
  template <typename Then>
  bool hop(int a, int b, Then then) {
    if (free(a, b) > 0) {
      if (step({{a, b}}, -1, then)) return true;
    }
    if (!rules_.relays || relays_left_ == 0 || links_.units(a, b) > 0) return false;
    for (int relay = 0; relay < n_; ++relay) {
      if (relay == a || relay == b || free(a, relay) <= 0 || free(relay, b) <= 0) continue;
      --relays_left_;
      if (step({{a, relay}, {relay, b}}, relay, then)) return true;
      ++relays_left_;
    }
    return false;
  }

  template <typename Then>
  bool step(std::initializer_list<std::pair<int, int>> parts, int relay, Then then) {
    for (const auto& [from, to] : parts) use(from, to, 1);
    ring_.relays.push_back(relay);
    if (then()) return true;
    ring_.relays.pop_back();
    for (const auto& [from, to] : parts) use(from, to, -1);
    return false;
  }

  const FabricLinks& links_;
  const RingRules rules_;
  const int n_;
  std::vector<int> free_;   ///< units left from rank to rank
  Ring ring_;               ///< in the making
  std::uint32_t used_ = 0;  ///< a bit for each rank on it
  std::vector<Ring> rings_;
  int wanted_ = 0;
  int relays_left_ = 0;
  int* budget_ = nullptr;
};

/// No more rings than this: each crosses every cut, there and back, and takes a unit per hop.
int max_rings(const FabricLinks& links, const RingRules& rules) {
  const int n = links.ranks();
  const int per_ring = rules.both_ways ? 2 : 1;
  int maximum = std::numeric_limits<int>::max();
  int total = 0;
  std::vector<int> degrees;
  for (int rank = 0; rank < n; ++rank) {
    degrees.push_back(links.degree(rank));
    maximum = std::min(maximum, degrees.back() / per_ring);
    total += degrees.back();
  }
  maximum = std::min(maximum, total / per_ring / n);
  if (n > kExactRingRanks) return maximum;
  std::vector<int> crossing(std::size_t{1} << n, 0);  // by set of ranks: units out of it
  for (unsigned set = 1; set + 1 < 1U << n; ++set) {
    const int first = std::countr_zero(set);
    const unsigned others = set & (set - 1);
    int among = 0;
    for (int other = first + 1; other < n; ++other) {
      if ((others >> other & 1U) != 0) among += links.units(first, other);
    }
    crossing[set] = crossing[others] + degrees[static_cast<std::size_t>(first)] - 2 * among;
    maximum = std::min(maximum, crossing[set] / per_ring);
  }
  return maximum;
}

}  // namespace

std::vector<Ring> pack_rings(const FabricLinks& links, const RingRules& rules) {
  const int n = links.ranks();
  CHECK(n >= 3 && n <= kMaxRingRanks);
  const int maximum = max_rings(links, rules);
  if (n > kExactRingRanks) {
    RingPacker packer(links, rules);
    for (int laid = 0; laid < maximum; ++laid) {
      int budget = kBudget;
      if (!packer.lay(1, rules.relays ? n : 0, budget)) break;
    }
    return packer.rings();
  }
  int budget = kBudget;
  for (int rings = maximum; rings > 0; --rings) {
    // As few relayed hops as possible: each loads two links.
    for (int relays = 0; relays <= (rules.relays ? n * rings : 0); ++relays) {
      RingPacker packer(links, rules);
      if (packer.lay(rings, relays, budget)) return packer.rings();
    }
  }
  return {};
}

}  // namespace espalier

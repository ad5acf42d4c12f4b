// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/whole_weights.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/activity.h"
#include "core/time_limit.h"

namespace espalier {
namespace {

/// Exact weights are used up to this many units: programs may be cut into units.
constexpr std::int64_t kMaxExactUnits = 1 << 11;
/// Otherwise the fewest units, doubling up to these, that reach this much of the exact rate.
constexpr std::int64_t kFewestUnits = 64;
constexpr std::int64_t kMaxRoundedUnits = 1 << 12;
const Rational kLittleLost(998, 1000);

/// Units that are left go to links that are least full as long as that takes a second or so.
constexpr std::int64_t kMaxRoundingWork = 100'000'000;

/// Who gets a unit that is left when shares are rounded down: the portion with the largest
/// remainder, which stays nearest to the shares, or the one that leaves the fullest of its links
/// least full: on narrow links that few portions use, a unit too many slows down all.
enum class Leftover : std::uint8_t { nearest, least_full };

/// A portion whose loads are looked at again and again.
struct FlatPortion {
  explicit FlatPortion(const Portion& portion)
      : demand(portion.demand),
        share(portion.share),
        loads(portion.loads.begin(), portion.loads.end()) {}

  int demand;
  Rational share;
  std::vector<std::pair<int, std::int64_t>> loads;  ///< by resource
};

class Rounder {
 public:
  Rounder(const PackingProblem& problem, const std::vector<FlatPortion>& portions,
          std::int64_t units, Leftover leftover)
      : problem_(problem),
        portions_(portions),
        leftover_(leftover),
        loads_(problem.resources.size(), 0) {
    for (std::size_t i = 0; i < portions.size(); ++i) {
      const Rational exact = portions[i].share * units;
      const Integer whole = numerator(exact) / denominator(exact);
      weights_.push_back(0);
      remainders_.push_back(static_cast<double>(Rational(exact - whole)));
      add(i, static_cast<std::int64_t>(whole));
      left_.try_emplace(portions[i].demand, units).first->second -= weights_[i];
      of_demand_[portions[i].demand].push_back(i);
    }
  }

  std::vector<std::int64_t> run() {
    for (auto& [demand, left] : left_) {
      for (; left > 0; --left) {
        const std::size_t portion = best_of(of_demand_.at(demand));
        add(portion, 1);
        remainders_[portion] -= 1;
      }
    }
    return std::move(weights_);
  }

 private:
  void add(std::size_t portion, std::int64_t units) {
    weights_[portion] += units;
    for (const auto& [resource, load] : portions_[portion].loads) {
      loads_[static_cast<std::size_t>(resource)] += units * load;
    }
  }

  /// Of the portion's links, with another unit, where that counts.
  double fullest(std::size_t portion) const {
    double fullest = 0;
    if (leftover_ == Leftover::nearest) return fullest;
    for (const auto& [resource, load] : portions_[portion].loads) {
      const auto r = static_cast<std::size_t>(resource);
      fullest = std::max(fullest, static_cast<double>(loads_[r] + load) /
                                      static_cast<double>(problem_.resources[r].capacity));
    }
    return fullest;
  }

  std::size_t best_of(const std::vector<std::size_t>& portions) const {
    std::size_t best = portions.front();
    double minimum = fullest(best);
    for (const std::size_t portion : portions) {
      const double filled = fullest(portion);
      if (filled > minimum || (filled == minimum && remainders_[portion] <= remainders_[best]))
        continue;
      minimum = filled;
      best = portion;
    }
    return best;
  }

  const PackingProblem& problem_;
  const std::vector<FlatPortion>& portions_;
  const Leftover leftover_;
  std::vector<std::int64_t> weights_;
  std::vector<double> remainders_;   ///< exact weights less those given
  std::vector<std::int64_t> loads_;  ///< by resource
  std::map<int, std::int64_t> left_;
  std::map<int, std::vector<std::size_t>> of_demand_;
};

/// Loads looked at when every unit that is left over goes where links are least full, about: there
/// are fewer such units than portions.
std::int64_t work_of_least_full(const std::vector<FlatPortion>& portions) {
  struct Demanded {
    std::int64_t portions = 0, loads = 0;
  };
  std::map<int, Demanded> demands;
  for (const FlatPortion& portion : portions) {
    ++demands[portion.demand].portions;
    demands[portion.demand].loads += static_cast<std::int64_t>(portion.loads.size());
  }
  std::int64_t work = 0;
  for (const auto& [demand, of] : demands) work += of.portions * of.loads;
  return work;
}

/// Of portions with these amounts instead of their shares.
template <typename Amount>
Rational fullest_load(const PackingProblem& problem, const std::vector<FlatPortion>& portions,
                      const std::vector<Amount>& amounts) {
  std::vector<Amount> loads(problem.resources.size(), 0);
  for (std::size_t i = 0; i < portions.size(); ++i) {
    for (const auto& [resource, load] : portions[i].loads) {
      loads[static_cast<std::size_t>(resource)] += amounts[i] * load;
    }
  }
  Rational fullest = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    if (loads[r] == 0) continue;
    fullest = std::max(fullest, Rational(Rational(loads[r]) / problem.resources[r].capacity));
  }
  return fullest;
}

WholeWeights weighed(const PackingProblem& problem, const std::vector<FlatPortion>& portions,
                     std::int64_t units) {
  WholeWeights result;
  for (const Leftover leftover : {Leftover::nearest, Leftover::least_full}) {
    const bool is_long = work_of_least_full(portions) > kMaxRoundingWork;
    if (leftover == Leftover::least_full && (is_long || is_time_up())) break;
    WholeWeights tried{units, Rounder(problem, portions, units, leftover).run(), 0};
    tried.rate = units / fullest_load(problem, portions, tried.weights);
    if (tried.rate > result.rate) result = std::move(tried);
  }
  return result;
}

std::vector<FlatPortion> flat(const std::vector<Portion>& portions) {
  return {portions.begin(), portions.end()};
}

}  // namespace

void add_loads(const PackingProblem& problem, const PackedEdge& edge, ResourceLoads& loads) {
  for (const int resource : edge.resources) {
    loads[resource] += problem.resources[static_cast<std::size_t>(resource)].load;
  }
}

Rational attained_rate(const PackingProblem& problem, const std::vector<Portion>& portions) {
  std::vector<Rational> shares;
  for (const Portion& portion : portions) shares.push_back(portion.share);
  return 1 / fullest_load(problem, flat(portions), shares);
}

WholeWeights whole_weights(const PackingProblem& problem, const std::vector<Portion>& portions) {
  const std::vector<FlatPortion> flat_portions = flat(portions);
  Integer exact_units = 1;
  for (const Portion& portion : portions) {
    exact_units = lcm(exact_units, denominator(portion.share));
    if (exact_units > kMaxExactUnits) break;
  }
  if (exact_units <= kMaxExactUnits) {
    return weighed(problem, flat_portions, static_cast<std::int64_t>(exact_units));
  }
  const Activity activity("rounding weights");
  const Rational good_enough = attained_rate(problem, portions) * kLittleLost;
  WholeWeights best;
  for (std::int64_t units = kFewestUnits; units <= kMaxRoundedUnits; units *= 2) {
    WholeWeights tried = weighed(problem, flat_portions, units);
    if (tried.rate > best.rate) best = std::move(tried);
    if (best.rate >= good_enough || is_time_up()) break;
  }
  return best;
}

}  // namespace espalier

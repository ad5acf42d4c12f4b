// SPDX-License-Identifier: Apache-2.0
#include "planner/whole_weights.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace espalier {
namespace {

/// Exact weights are used up to this many units: programs may be cut into units.
constexpr std::int64_t kMostExactUnits = 1 << 11;
/// Otherwise the fewest units, doubling up to these, that reach this much of the exact rate.
constexpr std::int64_t kFewestUnits = 64;
constexpr std::int64_t kMostUnits = 1 << 12;
const Rational kGoodEnough(998, 1000);

using Weights = std::vector<std::int64_t>;

/// Whole numbers that add up to `units` for every demand, as near to the shares as that goes: each
/// rounded down, the rest to the largest remainders.
Weights nearest_weights(const std::vector<Portion>& portions, std::int64_t units) {
  Weights weights;
  std::map<int, std::vector<std::pair<Rational, std::size_t>>> remainders;  // by demand
  std::map<int, std::int64_t> left;
  for (std::size_t i = 0; i < portions.size(); ++i) {
    const Rational exact = portions[i].share * units;
    const Integer whole = numerator(exact) / denominator(exact);
    weights.push_back(static_cast<std::int64_t>(whole));
    remainders[portions[i].demand].emplace_back(whole - exact, i);
    left.try_emplace(portions[i].demand, units).first->second -= weights.back();
  }
  for (auto& [demand, parts] : remainders) {
    std::sort(parts.begin(), parts.end());
    for (std::int64_t i = 0; i < left[demand]; ++i) {
      ++weights[parts[static_cast<std::size_t>(i)].second];
    }
  }
  return weights;
}

/// Of portions with these amounts instead of their shares.
template <typename Amount>
Rational fullest_load(const PackingProblem& problem, const std::vector<Portion>& portions,
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

WholeWeights weighed(const PackingProblem& problem, const std::vector<Portion>& portions,
                     std::int64_t units) {
  WholeWeights result{units, nearest_weights(portions, units), 0};
  result.rate = units / fullest_load(problem, portions, result.weights);
  return result;
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
  return 1 / fullest_load(problem, portions, shares);
}

WholeWeights whole_weights(const PackingProblem& problem, const std::vector<Portion>& portions) {
  Integer exact_units = 1;
  for (const Portion& portion : portions) {
    exact_units = lcm(exact_units, denominator(portion.share));
    if (exact_units > kMostExactUnits) break;
  }
  if (exact_units <= kMostExactUnits) {
    return weighed(problem, portions, static_cast<std::int64_t>(exact_units));
  }
  const Rational good_enough = attained_rate(problem, portions) * kGoodEnough;
  WholeWeights best;
  for (std::int64_t units = kFewestUnits; units <= kMostUnits; units *= 2) {
    WholeWeights tried = weighed(problem, portions, units);
    if (tried.rate > best.rate) best = std::move(tried);
    if (best.rate >= good_enough) break;
  }
  return best;
}

}  // namespace espalier

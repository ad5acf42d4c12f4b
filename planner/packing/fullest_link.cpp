// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/fullest_link.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/check.h"
#include "planner/graph/common_unit.h"
#include "planner/link_loads.h"

namespace espalier {

namespace {

/// Bytes/s at which the fullest link is full.
Rational rate_of_fullest_link(const Forest& forest, const Router& router,
                              const Placement& placement) {
  LinkLoads counter(router, placement);
  for (const PlannedTree& tree : forest.trees) {
    for (const TreeEdge& edge : tree.edges) {
      CHECK(counter.add(edge, forest.collective, tree.weight));
    }
  }
  const std::vector<LinkLoad> loads = counter.loaded();
  CHECK(!loads.empty());
  std::vector<double> bytes_per_s;
  for (const LinkLoad& load : loads) bytes_per_s.push_back(load.capacity_gbps * 1e9);
  const CommonUnit unit = in_common_unit(bytes_per_s);
  Rational minimum;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const Rational rate(Integer(unit.multiples[i]) * forest.units, Integer(loads[i].units));
    if (i == 0 || rate < minimum) minimum = rate;
  }
  return minimum * unit.lower;
}

/// The planner's own figure stands where the two differ by the rounding to bytes per second.
constexpr double kRoundingOfRates = 1e-8;

void set(Forest& forest, const Rational& algbw) {
  forest.algbw_gbps = rounded_gbps(algbw);
  forest.exact_algbw = exact_gbps(algbw);
}

}  // namespace

void raise_to_fullest_link(Forest& forest, const Router& router, const Placement& placement) {
  const auto is_full = [](const Link& link) { return link.duplex == Duplex::full; };
  if (std::ranges::all_of(router.topology().links, is_full)) return;
  const Rational algbw = rate_of_fullest_link(forest, router, placement);
  if (rounded_gbps(algbw) > forest.algbw_gbps * (1 + kRoundingOfRates)) set(forest, algbw);
}

void set_to_fullest_link(Forest& forest, const Router& router, const Placement& placement) {
  const Rational algbw = rate_of_fullest_link(forest, router, placement);
  const double change = rounded_gbps(algbw) / forest.algbw_gbps - 1;
  if (change < -1e-10 || change > kRoundingOfRates) set(forest, algbw);
}

}  // namespace espalier

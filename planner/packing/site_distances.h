// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "planner/packing/cheapest_ways.h"

// Private to the room.

namespace espalier {

/// Cheapest ways between the sites of a packing problem, its ranks and relays, when every load of a
/// resource costs a price. A way passes no other site: two ways that meet there serve a tree as
/// well.
template <typename Price>
class SiteDistances {
 public:
  using Reach = typename CheapestWays<Price>::Reach;
  static constexpr int kUnreached = CheapestWays<Price>::kUnreached;

  /// `prices`: of one load, by resource, none negative.
  SiteDistances(const PackingProblem& problem, const std::vector<Price>& prices) {
    std::vector<Price> price_of_use;
    for (std::size_t i = 0; i < prices.size(); ++i) {
      price_of_use.push_back(prices[i] * problem.resources[i].load);
    }
    for (int site = 0; site < problem.sites(); ++site) {
      ways_.emplace_back(problem, price_of_use, site, /*through_sites=*/false);
    }
  }

  int sites() const { return static_cast<int>(ways_.size()); }
  const Reach& at(int from, int to) const { return ways_[static_cast<std::size_t>(from)].at(to); }
  /// The way itself. \pre there is one
  PackedEdge edge(int from, int to) const {
    return ways_[static_cast<std::size_t>(from)].edge_to(to);
  }

 private:
  std::vector<CheapestWays<Price>> ways_;  ///< by site
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "planner/packing/cheapest_arborescence.h"
#include "planner/packing/demand_packing.h"
#include "planner/packing/site_distances.h"

// The pricing problem of demand packing. Private to the room.

namespace espalier {

/// The cheapest way to serve each demand when every use of a resource costs a price: a path over
/// ranks and relays, or a tree over the ranks. `Price`: double while searching, exact to prove.
template <typename Price>
class DemandWays {
 public:
  /// `prices`: of one use, by resource, none negative. Keeps references to problem and demands.
  /// \pre one_way, connected; trees where there are no relays only
  DemandWays(const PackingProblem& problem, const std::vector<Price>& prices,
             const std::vector<Demand>& demands)
      : problem_(problem), prices_(prices), demands_(demands) {}

  Price price(std::size_t demand) {
    const Demand& wanted = demands_[demand];
    if (wanted.to != kEveryRank) return paths_from(wanted.from).at(wanted.to).price;
    Price sum{};
    for (const auto& [from, to] : tree(wanted.from)) sum += distances().at(from, to).price;
    return sum;
  }

  /// Parents first.
  std::vector<PackedEdge> edges(std::size_t demand) {
    const Demand& wanted = demands_[demand];
    if (wanted.to != kEveryRank) {
      return paths_from(wanted.from).path_to(wanted.to, problem_.sites());
    }
    std::vector<PackedEdge> edges;
    std::vector<int> reached{wanted.from};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const auto& [from, to] : tree(wanted.from)) {
        if (from != reached[i]) continue;
        edges.push_back(distances().edge(from, to));
        reached.push_back(to);
      }
    }
    return edges;
  }

 private:
  using Tree = std::vector<std::pair<int, int>>;

  const CheapestWays<Price>& paths_from(int rank) {
    return paths_.try_emplace(rank, problem_, prices_, rank, /*through_sites=*/true).first->second;
  }

  const SiteDistances<Price>& distances() {
    if (!distances_) distances_.emplace(problem_, prices_);
    return *distances_;
  }

  const Tree& tree(int root) {
    const auto [known, fresh] = trees_.try_emplace(root);
    if (fresh) {
      const auto ranks = static_cast<std::size_t>(problem_.ranks);
      ArcPrices<Price> prices(ranks, std::vector<std::optional<Price>>(ranks));
      for (int from = 0; from < problem_.ranks; ++from) {
        for (int to = 0; to < problem_.ranks; ++to) {
          const auto& reach = distances().at(from, to);
          if (from == to || reach.arcs == SiteDistances<Price>::kUnreached) continue;
          prices[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = reach.price;
        }
      }
      known->second = cheapest_arborescence(prices, root);
    }
    return known->second;
  }

  const PackingProblem& problem_;
  const std::vector<Price>& prices_;
  const std::vector<Demand>& demands_;
  std::map<int, CheapestWays<Price>> paths_;  ///< by first rank
  std::optional<SiteDistances<Price>> distances_;
  std::map<int, Tree> trees_;  ///< by root
};

}  // namespace espalier

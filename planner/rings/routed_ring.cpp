// SPDX-License-Identifier: Apache-2.0
#include "planner/rings/routed_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/check.h"
#include "planner/graph/link_resources.h"

namespace espalier {
namespace {

/// How bad a ring is: seconds per byte on its busiest link, then links crossed.
using Cost = std::pair<double, std::size_t>;

/// What hops between ranks load. Ranks are indices into the list given.
class HopLoads {
 public:
  HopLoads(const Router& router, const Placement& placement, const std::vector<int>& ranks)
      : router_(router), placement_(placement), ranks_(ranks), resources_(router) {}

  const Route* route(int a, int b) const { return router_.route(node(a), node(b)); }
  NodeId node(int index) const {
    const int rank = ranks_[static_cast<std::size_t>(index)];
    return placement_.ranks[static_cast<std::size_t>(rank)];
  }

  /// Adds the hop from a to b `times` times (-1 takes it away again). Gives the load of the busiest
  /// link it crosses.
  double add(int a, int b, int times) {
    double busiest = 0;
    for (const int resource : crossed(a, b)) {
      double& load = load_[static_cast<std::size_t>(resource)];
      load += times;
      busiest = std::max(busiest, load / static_cast<double>(resources_.bytes_per_s(resource)));
    }
    return busiest;
  }

 private:
  const std::vector<int>& crossed(int a, int b) {
    const auto [entry, is_new] = crossed_.try_emplace({a, b});
    if (is_new) {
      entry->second = resources_.of(*route(a, b));
      load_.resize(static_cast<std::size_t>(resources_.count()), 0);
    }
    return entry->second;
  }

  const Router& router_;
  const Placement& placement_;
  const std::vector<int>& ranks_;
  LinkResources resources_;
  std::map<std::pair<int, int>, std::vector<int>> crossed_;
  std::vector<double> load_;  ///< by resource
};

/// Branch and bound over all orders that begin with 0.
class BestOrder {
 public:
  BestOrder(HopLoads& loads, int n) : loads_(loads), n_(n), used_(n, false) {
    order_.push_back(0);
    used_[0] = true;
    extend({0, 0});
  }
  const std::vector<int>& best() const { return best_; }

 private:
  void extend(Cost so_far) {
    const int last = order_.back();
    if (static_cast<int>(order_.size()) == n_) {
      hop(last, 0, so_far, [&](Cost cost) {
        best_cost_ = cost;
        best_ = order_;
      });
      return;
    }
    for (int next = 1; next < n_; ++next) {
      if (used_[static_cast<std::size_t>(next)]) continue;
      used_[static_cast<std::size_t>(next)] = true;
      order_.push_back(next);
      hop(last, next, so_far, [&](Cost cost) { extend(cost); });
      order_.pop_back();
      used_[static_cast<std::size_t>(next)] = false;
    }
  }

  template <typename Then>
  void hop(int a, int b, Cost cost, Then then) {
    const Route* route = loads_.route(a, b);
    if (route == nullptr) return;
    cost.first = std::max(cost.first, loads_.add(a, b, 1));
    cost.second += route->hops.size();
    if (cost < best_cost_) then(cost);
    loads_.add(a, b, -1);
  }

  HopLoads& loads_;
  const int n_;
  std::vector<int> order_;
  std::vector<bool> used_;
  std::vector<int> best_;
  Cost best_cost_{std::numeric_limits<double>::infinity(), 0};
};

std::vector<int> nearest_next(const HopLoads& loads, int n) {
  std::vector<int> order = {0};
  std::vector<bool> used(static_cast<std::size_t>(n), false);
  used[0] = true;
  while (static_cast<int>(order.size()) < n) {
    int nearest = -1;
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (int next = 1; next < n; ++next) {
      const Route* route = loads.route(order.back(), next);
      if (used[static_cast<std::size_t>(next)] || route == nullptr) continue;
      if (route->hops.size() >= fewest) continue;
      fewest = route->hops.size();
      nearest = next;
    }
    if (nearest < 0) return {};
    order.push_back(nearest);
    used[static_cast<std::size_t>(nearest)] = true;
  }
  return order;
}

/// Nothing when a hop has no route.
std::optional<Cost> cost_of(HopLoads& loads, const std::vector<int>& order) {
  Cost cost{0, 0};
  std::size_t done = 0;
  for (; done < order.size(); ++done) {
    const int a = order[done], b = order[(done + 1) % order.size()];
    const Route* route = loads.route(a, b);
    if (route == nullptr) break;
    cost.first = std::max(cost.first, loads.add(a, b, 1));
    cost.second += route->hops.size();
  }
  for (std::size_t i = 0; i < done; ++i) loads.add(order[i], order[(i + 1) % order.size()], -1);
  if (done < order.size() || order.empty()) return std::nullopt;
  return cost;
}

std::string first_gap(const Router& router, const HopLoads& loads, int n) {
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      if (a == b || loads.route(a, b) != nullptr) continue;
      const Topology& topology = router.topology();
      return fmt::format("no route joins {} and {}", topology.node(loads.node(a)).name,
                         topology.node(loads.node(b)).name);
    }
  }
  CHECK(false);
}

}  // namespace

RoutedRing routed_ring(const Router& router, const Placement& placement,
                       const std::vector<int>& ranks) {
  const int n = static_cast<int>(ranks.size());
  CHECK(n >= 2);
  HopLoads loads(router, placement, ranks);
  std::vector<int> order;
  if (n <= kExactRingRanks) {
    order = BestOrder(loads, n).best();
  } else {
    for (int i = 0; i < n; ++i) order.push_back(i);
    std::optional<Cost> cost = cost_of(loads, order);
    if (!cost) order.clear();
    if (n <= kMaxRingRanks) {
      std::vector<int> other = nearest_next(loads, n);
      const std::optional<Cost> other_cost = cost_of(loads, other);
      if (other_cost && (!cost || *other_cost < *cost)) order = std::move(other);
    }
  }
  if (order.empty()) return {{}, first_gap(router, loads, n)};
  RoutedRing ring;
  for (const int index : order) ring.order.push_back(ranks[static_cast<std::size_t>(index)]);
  return ring;
}

}  // namespace espalier

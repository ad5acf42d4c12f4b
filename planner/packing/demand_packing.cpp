// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/demand_packing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "planner/packing/demand_ways.h"
#include "planner/packing/packing_master.h"
#include "planner/packing/whole_weights.h"

namespace espalier {
namespace {

/// The search ends when prices prove that no more than this part of the rate is missing. On
/// machines of many links a thousandth is left where it is: it takes most of the time.
constexpr double kMissing = 1e-9;
constexpr double kMissingOfMany = 1e-3;
constexpr std::size_t kManyDemandResources = 400;
constexpr int kMaxDemandRounds = 2000;
/// Ways that avoid each other, to start with.
constexpr int kBalancedRounds = 8;
/// What a path loses of its value per transfer, or a tree per edge of height, so that of optimal
/// packings a short or low one is found: far above the solver's tolerance, far below what any
/// change of the rate could win.
constexpr double kCostOfDepth = 1e-5;

/// Of all demands, when a use of each resource costs so much.
template <typename Price>
Price total_cost(const PackingProblem& problem, const std::vector<Demand>& demands,
                 const std::vector<Price>& prices) {
  DemandWays<Price> ways(problem, prices, demands);
  Price total{};
  for (std::size_t k = 0; k < demands.size(); ++k) total += ways.price(k);
  return total;
}

/// Edges on the longest way from the first rank. Parents come first.
int height_of(const std::vector<PackedEdge>& edges) {
  std::map<int, int> depth;
  int height = 0;
  for (const PackedEdge& edge : edges) {
    depth[edge.to] = depth[edge.from] + 1;
    height = std::max(height, depth[edge.to]);
  }
  return height;
}

/// Prices at which all demands together cost 1, and what they prove.
struct Proof {
  std::vector<Rational> prices;
  Rational limit;
};

/// Scales the prices so that they are a proof.
Proof prove_demands(const PackingProblem& problem, const std::vector<Demand>& demands,
                    const std::vector<Rational>& prices) {
  const std::vector<Integer> whole = whole_prices(prices);
  const Integer total = total_cost(problem, demands, whole);
  CHECK(total > 0);
  Proof proof;
  for (std::size_t r = 0; r < whole.size(); ++r) {
    proof.prices.emplace_back(whole[r], total);
    proof.limit += proof.prices.back() * problem.resources[r].capacity;
  }
  return proof;
}

/// The paths found so far and the linear program over them. Rows: a demand each (rate - weights of
/// its paths <= 0), then the resources. Column 0 is the rate, the others are paths.
class DemandSearch {
 public:
  DemandSearch(const PackingProblem& problem, const std::vector<Demand>& demands)
      : problem_(problem), demands_(demands), master_(limits()) {
    ResourceLoads rate;
    for (int k = 0; k < count(); ++k) rate.emplace(k, 1);
    master_.add(rate);
    master_.set_value(0, count());  // so that demands are worth 1 on average
  }

  void run() {
    add_balanced_ways();
    const double missing =
        problem_.resources.size() > kManyDemandResources ? kMissingOfMany : kMissing;
    for (int round = 0; round < kMaxDemandRounds; ++round) {
      if (!master_.solve() || !improve(missing)) return;
    }
  }

  /// Lets the solver prefer short paths and low trees, or none.
  void prefer_low(bool prefer) {
    for (int column = 1; column < master_.columns(); ++column) {
      master_.set_value(column, prefer ? -kCostOfDepth * height_of(carrier(column).edges) : 0);
    }
    master_.solve();
  }

  std::vector<Rational> rough_prices() const {
    const std::vector<double> all = master_.prices();
    return {all.begin() + count(), all.end()};
  }

  /// The paths of the solver's basis with its weights, or with exact ones where those are right.
  std::vector<Carrier> carriers() const {
    const Basis basis = this->basis();
    if (const auto exact = exact_weights(basis)) return weighed(*exact);
    std::map<int, Rational> weights;
    const std::vector<double> all = master_.weights();
    for (int column = 1; column < master_.columns(); ++column) {
      const double weight = all[static_cast<std::size_t>(column)];
      if (weight > 0) weights.emplace(column, weight);
    }
    return weighed(weights);
  }

  /// Exact prices of the basis, by resource.
  std::optional<std::vector<Rational>> exact_prices() const {
    const Basis basis = this->basis();
    if (!is_soluble(basis.matrix)) return std::nullopt;
    const std::size_t n = basis.full.size();
    std::vector<std::int64_t> values(n, 0);  // of the rate, and of what is carried
    values[0] = 1;
    const auto solution = solve_prices(basis.matrix, values);
    if (!solution) return std::nullopt;
    std::vector<Rational> prices(problem_.resources.size());
    for (std::size_t i = 0; i < n; ++i) {
      prices[static_cast<std::size_t>(basis.full[i])] = (*solution)[i];
    }
    return prices;
  }

 private:
  /// The basis with one path of every demand, its key, expressed by the rate and the demand's other
  /// paths: one equation for every full resource, one unknown for the rate and every path that is
  /// no key.
  struct Basis {
    std::vector<int> full;     ///< resources
    std::vector<int> columns;  ///< 0 first
    std::map<int, int> keys;   ///< column by demand
    Matrix matrix;             ///< by full resource, by column
  };

  int count() const { return static_cast<int>(demands_.size()); }
  const Carrier& carrier(int column) const {
    return carriers_[static_cast<std::size_t>(column) - 1];
  }
  const ResourceLoads& loads(int column) const {
    return loads_[static_cast<std::size_t>(column) - 1];
  }

  std::vector<std::int64_t> limits() const {
    std::vector<std::int64_t> limits(demands_.size(), 0);
    for (const auto& resource : problem_.resources) limits.push_back(resource.capacity);
    return limits;
  }

  bool add(int demand, std::vector<PackedEdge> edges) {
    ResourceLoads loads;
    for (const PackedEdge& edge : edges) add_loads(problem_, edge, loads);
    if (!known_.emplace(demand, loads).second) return false;
    ResourceLoads rows{{demand, -1}};
    for (const auto& [resource, load] : loads) rows.emplace(count() + resource, load);
    master_.add(rows);
    master_.set_value(master_.columns() - 1, 0);
    carriers_.push_back({demand, std::move(edges), 0});
    loads_.push_back(std::move(loads));
    return true;
  }

  /// Ways that avoid what the ones before them use, by multiplicative prices.
  void add_balanced_ways() {
    std::vector<double> prices;
    for (const auto& resource : problem_.resources) {
      prices.push_back(1 / static_cast<double>(resource.capacity));
    }
    for (int round = 0; round < kBalancedRounds; ++round) {
      std::vector<double> used(prices.size(), 0);  // part of its capacity
      DemandWays<double> ways(problem_, prices, demands_);
      for (int k = 0; k < count(); ++k) {
        std::vector<PackedEdge> edges = ways.edges(static_cast<std::size_t>(k));
        for (const PackedEdge& edge : edges) {
          for (const int r : edge.resources) {
            const auto resource = static_cast<std::size_t>(r);
            used[resource] += 1 / static_cast<double>(problem_.resources[resource].capacity);
          }
        }
        add(k, std::move(edges));
      }
      const double maximum = *std::max_element(used.begin(), used.end());
      for (std::size_t r = 0; r < prices.size(); ++r) prices[r] *= 1 + used[r] / maximum;
    }
  }

  /// Adds ways cheaper than what their demands pay at present prices; false when nothing is to be
  /// gained.
  bool improve(double missing) {
    const std::vector<double> all = master_.prices();
    const std::vector<double> prices(all.begin() + count(), all.end());
    DemandWays<double> ways(problem_, prices, demands_);
    double paid = 0, cost = 0;
    bool any = false;
    for (int k = 0; k < count(); ++k) {
      constexpr double kCheaper = 1e-8;
      const auto demand = static_cast<std::size_t>(k);
      const double cheapest = ways.price(demand);
      paid += all[demand];
      cost += cheapest;
      if (cheapest > all[demand] - kCheaper) continue;
      any = add(k, ways.edges(demand)) || any;
    }
    return any && cost < paid * (1 - missing);
  }

  Basis basis() const {
    Basis basis;
    std::set<int> tight;  // demands that get the rate and no more
    for (const int row : master_.full_resources()) {
      if (row < count()) {
        tight.insert(row);
      } else {
        basis.full.push_back(row - count());
      }
    }
    basis.columns.push_back(0);
    for (const int column : master_.basic_columns()) {
      if (column == 0) continue;
      const int demand = carrier(column).demand;
      const bool is_key = tight.count(demand) > 0 && basis.keys.emplace(demand, column).second;
      if (!is_key) basis.columns.push_back(column);
    }
    if (basis.full.size() != basis.columns.size() || basis.full.size() > kMaxExactEquations) {
      return basis;
    }
    const auto load = [&](int column, int resource) -> std::int64_t {
      const auto found = loads(column).find(resource);
      return found == loads(column).end() ? 0 : found->second;
    };
    for (const int resource : basis.full) {
      std::vector<std::int64_t>& row = basis.matrix.emplace_back(basis.columns.size(), 0);
      for (const auto& [demand, key] : basis.keys) row[0] += load(key, resource);
      for (std::size_t i = 1; i < row.size(); ++i) {
        row[i] = load(basis.columns[i], resource);
        const auto key = basis.keys.find(carrier(basis.columns[i]).demand);
        if (key != basis.keys.end()) row[i] -= load(key->second, resource);
      }
    }
    return basis;
  }

  /// Weights by column; nothing when the floating point basis is off.
  std::optional<std::map<int, Rational>> exact_weights(const Basis& basis) const {
    if (!is_soluble(basis.matrix)) return std::nullopt;
    std::vector<std::int64_t> capacities;
    for (const int r : basis.full) {
      capacities.push_back(problem_.resources[static_cast<std::size_t>(r)].capacity);
    }
    const auto solution = solve_exactly(basis.matrix, capacities);
    if (!solution) return std::nullopt;
    std::map<int, Rational> weights;
    for (const auto& [demand, key] : basis.keys) weights.emplace(key, solution->front());
    for (std::size_t i = 1; i < solution->size(); ++i) {
      weights.emplace(basis.columns[i], (*solution)[i]);
      const auto key = basis.keys.find(carrier(basis.columns[i]).demand);
      if (key != basis.keys.end()) weights[key->second] -= (*solution)[i];
    }
    for (const auto& [column, weight] : weights) {
      if (weight < 0) return std::nullopt;
    }
    return weights;
  }

  /// The paths with these weights, as shares of their demands, in their order.
  std::vector<Carrier> weighed(const std::map<int, Rational>& weights) const {
    std::vector<Rational> sums(demands_.size());
    for (const auto& [column, weight] : weights) {
      sums[static_cast<std::size_t>(carrier(column).demand)] += weight;
    }
    std::vector<Carrier> paths;
    for (const auto& [column, weight] : weights) {
      if (weight == 0) continue;
      Carrier& used = paths.emplace_back(carrier(column));
      used.share = weight / sums[static_cast<std::size_t>(used.demand)];
    }
    for (const Rational& sum : sums) {
      if (sum == 0) return {};
    }
    std::stable_sort(paths.begin(), paths.end(),
                     [](const Carrier& a, const Carrier& b) { return a.demand < b.demand; });
    return paths;
  }

  const PackingProblem& problem_;
  const std::vector<Demand>& demands_;
  PackingMaster master_;
  std::vector<Carrier> carriers_;
  std::vector<ResourceLoads> loads_;
  std::set<std::pair<int, ResourceLoads>> known_;
};

}  // namespace

std::vector<Demand> demands_of(Collective collective, int root, int ranks) {
  std::vector<Demand> demands;
  for (int rank = 0; rank < ranks; ++rank) {
    switch (collective) {
      case Collective::gather:
        if (rank != root) demands.push_back({rank, root});
        break;
      case Collective::scatter:
        if (rank != root) demands.push_back({root, rank});
        break;
      case Collective::alltoall:
        for (int to = 0; to < ranks; ++to) {
          if (to != rank) demands.push_back({rank, to});
        }
        break;
      case Collective::broadcast:
      case Collective::reduce:
        if (rank == root && ranks > 1) demands.push_back({rank, kEveryRank});
        break;
      case Collective::allgather:
      case Collective::reducescatter:
        if (ranks > 1) demands.push_back({rank, kEveryRank});
        break;
      case Collective::sendrecv:
        if (ranks > 1) demands.push_back({rank, (rank + 1) % ranks});
        break;
      case Collective::allreduce:
        break;
    }
  }
  return demands;
}

DemandPacking pack_demands(const PackingProblem& problem, const std::vector<Demand>& demands) {
  CHECK(problem.use == LinkUse::one_way && !demands.empty());
  DemandSearch search(problem, demands);
  search.run();
  Proof proof =
      prove_demands(problem, demands, search.exact_prices().value_or(search.rough_prices()));
  DemandPacking packing{{}, 0, std::move(proof.prices), proof.limit};
  for (const bool prefer : {true, false}) {
    search.prefer_low(prefer);
    std::vector<Carrier> carriers = search.carriers();
    const Rational rate = attained_rate(problem, portions_of(problem, carriers));
    if (rate <= packing.rate) continue;
    packing.rate = rate;
    packing.carriers = std::move(carriers);
    if (packing.rate == packing.limit) break;
  }
  CHECK(packing.rate > 0);
  return packing;
}

std::vector<Portion> portions_of(const PackingProblem& problem,
                                 const std::vector<Carrier>& carriers) {
  std::vector<Portion> portions;
  for (const Carrier& carrier : carriers) {
    Portion& portion = portions.emplace_back(Portion{carrier.demand, carrier.share, {}});
    for (const PackedEdge& edge : carrier.edges) add_loads(problem, edge, portion.loads);
  }
  return portions;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/demand_packing.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/time_limit.h"
#include "planner/packing/column_generation.h"
#include "planner/packing/demand_ways.h"
#include "planner/packing/whole_weights.h"

namespace espalier {
namespace {

constexpr GenerationEnds kDemandEnds{.missing = 1e-9, .rounds = 2000};
constexpr std::size_t kManyDemandResources = 400;
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

/// Scales the prices so that they are a proof; keeps them where it is tighter.
void prove_demands(const PackingProblem& problem, const std::vector<Demand>& demands,
                   const std::vector<Rational>& prices, DemandPacking& packing) {
  const std::vector<Integer> whole = whole_prices(prices);
  const Integer total = total_cost(problem, demands, whole);
  if (total <= 0) return;
  std::vector<Rational> scaled;
  Rational limit = 0;
  for (std::size_t r = 0; r < whole.size(); ++r) {
    scaled.emplace_back(whole[r], total);
    limit += scaled.back() * problem.resources[r].capacity;
  }
  if (!packing.prices.empty() && limit >= packing.limit) return;
  packing.prices = std::move(scaled);
  packing.limit = limit;
}

/// The paths found so far and the linear program over them. Rows: a demand each (rate - weights of
/// its paths <= 0), then the resources. Column 0 is the rate, the others are paths.
class DemandSearch {
 public:
  DemandSearch(const PackingProblem& problem, const std::vector<Demand>& demands,
               std::int64_t max_work)
      : problem_(problem),
        demands_(demands),
        many_(problem.resources.size() > kManyDemandResources),
        ends_(many_ ? on_many_links(kDemandEnds) : kDemandEnds),
        max_work_(max_work),
        budget_(max_work),
        master_(limits()) {
    ResourceLoads rate;
    for (int k = 0; k < count(); ++k) rate.emplace(k, 1);
    master_.add(rate);
    master_.set_value(0, count());  // so that demands are worth 1 on average
  }

  /// False when the work is spent before it is known how good the packing is.
  bool run() {
    int rounds = kBalancedRounds;
    if (many_) {
      // Where all ranks are alike, the shortest ways are best, and balanced prices prove it.
      // Otherwise few demands between many links take many ways each.
      add_balanced_ways(1);
      if (!master_.solve(budget_)) return false;
      if (rate() >= best_prices_.limit() * (1 - ends_.missing)) return true;
      const auto ways = static_cast<int>(4 * problem_.resources.size() / demands_.size());
      rounds = std::clamp(ways, kBalancedRounds, std::max(kBalancedRounds, problem_.ranks));
    }
    add_balanced_ways(rounds);
    return generate_columns(master_, ends_, budget_, [&] { return improve(); });
  }

  /// Lets the solver prefer short paths and low trees, or none.
  void prefer_low(bool prefer) {
    for (int column = 1; column < master_.columns(); ++column) {
      master_.set_value(column, prefer ? -kCostOfDepth * height_of(carrier(column).edges) : 0);
    }
    budget_ = WorkBudget(max_work_);
    master_.solve(budget_);
  }

  const BestPrices& best_prices() const { return best_prices_; }

  /// All that were found, every demand shared out evenly over its own: for a search that ended
  /// before the solver's weights were any good.
  std::vector<Carrier> even_carriers() const {
    std::map<int, Rational> even;
    for (int column = 1; column < master_.columns(); ++column) even.emplace(column, 1);
    return weighed(even);
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

  double rate() const { return master_.weights().front(); }

  /// Links looked at to find the cheapest way of every demand, those from one rank all at once.
  std::int64_t work_of_ways() const {
    std::int64_t arcs = 0;
    for (const auto& from : problem_.arcs_from) arcs += static_cast<std::int64_t>(from.size());
    return 2 * std::min(count(), problem_.ranks) * 2 * arcs + 16 * count();
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

  /// Ways that avoid what the ones before them use, by multiplicative prices. Goes on to so many
  /// rounds.
  void add_balanced_ways(int rounds) {
    if (balanced_prices_.empty()) {
      for (const auto& resource : problem_.resources) {
        balanced_prices_.push_back(1 / static_cast<double>(resource.capacity));
      }
    }
    const std::int64_t kept_work = kept_from_balanced(max_work_);
    for (; balanced_rounds_ < rounds; ++balanced_rounds_) {
      if (balanced_rounds_ > 0 && budget_.left() <= kept_work) return;  // one round serves them all
      budget_.spend(work_of_ways());
      std::vector<double> used(balanced_prices_.size(), 0);  // part of its capacity
      DemandWays<double> ways(problem_, balanced_prices_, demands_);
      double cost = 0;
      for (int k = 0; k < count(); ++k) {
        cost += ways.price(static_cast<std::size_t>(k));
        std::vector<PackedEdge> edges = ways.edges(static_cast<std::size_t>(k));
        for (const PackedEdge& edge : edges) {
          for (const int r : edge.resources) {
            const auto resource = static_cast<std::size_t>(r);
            used[resource] += 1 / static_cast<double>(problem_.resources[resource].capacity);
          }
        }
        add(k, std::move(edges));
      }
      best_prices_.offer(balanced_prices_, paid_to_all(problem_, balanced_prices_) / cost);
      const double maximum = *std::max_element(used.begin(), used.end());
      for (std::size_t r = 0; r < used.size(); ++r) balanced_prices_[r] *= 1 + used[r] / maximum;
    }
  }

  /// Adds ways cheaper than what their demands pay at present prices.
  PricedColumns improve() {
    const std::vector<double> all = master_.prices();
    const std::vector<double> prices(all.begin() + count(), all.end());
    DemandWays<double> ways(problem_, prices, demands_);
    budget_.spend(work_of_ways());
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
    if (cost > 0) best_prices_.offer(prices, paid_to_all(problem_, prices) / cost);
    if (many_) return {any, rate(), best_prices_.limit()};
    return {any, cost, paid};
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

  /// Weights by column; nothing when the floating point basis is off, or the time is up.
  std::optional<std::map<int, Rational>> exact_weights(const Basis& basis) const {
    if (!is_soluble(basis.matrix) || is_time_up()) return std::nullopt;
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
  const bool many_;  ///< links
  const GenerationEnds ends_;
  const std::int64_t max_work_;
  WorkBudget budget_;
  PackingMaster master_;
  std::vector<double> balanced_prices_;
  int balanced_rounds_ = 0;
  BestPrices best_prices_;
  std::vector<Carrier> carriers_;
  std::vector<ResourceLoads> loads_;
  std::set<std::pair<int, ResourceLoads>> known_;
};

/// The tightest of the proofs that the search has come by; when time is up, one that does not take
/// long.
void prove_demand_packing(const PackingProblem& problem, const std::vector<Demand>& demands,
                          const DemandSearch& search, DemandPacking& packing) {
  constexpr double kSame = 1e-9;
  const BestPrices& best = search.best_prices();
  if (is_time_up()) return prove_demands(problem, demands, best.rounded(), packing);
  if (const auto exact = search.exact_prices()) prove_demands(problem, demands, *exact, packing);
  const bool is_proved = !packing.prices.empty();
  if (is_proved && packing.limit.convert_to<double>() <= best.limit() * (1 + kSame)) return;
  prove_demands(problem, demands, best.rounded(), packing);
  prove_demands(problem, demands, best.raw(), packing);
}

}  // namespace

DemandPacking pack_demands(const PackingProblem& problem, const std::vector<Demand>& demands,
                           std::int64_t max_work) {
  CHECK(problem.use == EdgeUse::one_way && !demands.empty());
  const Activity activity(demands.front().to == kEveryRank ? "packing trees" : "packing paths");
  DemandSearch search(problem, demands, max_work);
  DemandPacking packing;
  packing.is_complete = search.run();
  prove_demand_packing(problem, demands, search, packing);
  const auto offer = [&](std::vector<Carrier> carriers) {
    if (carriers.empty()) return;
    const Rational rate = attained_rate(problem, portions_of(problem, carriers));
    if (rate <= packing.rate) return;
    packing.rate = rate;
    packing.carriers = std::move(carriers);
  };
  if (!packing.is_complete) {
    offer(search.carriers());
    offer(search.even_carriers());
    return packing;
  }
  for (const bool prefer : {true, false}) {
    search.prefer_low(prefer);
    offer(search.carriers());
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

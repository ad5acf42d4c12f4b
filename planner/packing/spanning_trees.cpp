// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/spanning_trees.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "planner/packing/cheapest_tree.h"
#include "planner/packing/packing_master.h"

namespace espalier {
namespace {

/// A tree cheaper than this (of 1) improves the packing. On machines of many links a thousandth of
/// the rate is left where it is: the last one takes most of the time.
constexpr double kCheapEnough = 1 - 1e-8;
constexpr double kCheapEnoughOfMany = 1 - 1e-3;
constexpr std::size_t kManyTreeResources = 300;
constexpr int kMaxTreeRounds = 5000;
/// What a tree loses of its value for every link that the whole message would keep busy on it, so
/// that of optimal packings one that leaves links idle is found, and per edge of height, for a low
/// one: far above the solver's tolerance, far below what any change of the rate could win.
constexpr double kCostOfBusyLinks = 1e-5;
constexpr double kCostOfHeight = 1e-6;

using TreeWeights = std::vector<Rational>;

Loads capacities_of(const PackingProblem& problem) {
  Loads capacities;
  for (const auto& resource : problem.resources) capacities.push_back(resource.capacity);
  return capacities;
}

/// The trees found so far and the linear program over them.
class TreeSearch {
 public:
  explicit TreeSearch(const PackingProblem& problem)
      : problem_(problem),
        master_(capacities_of(problem)),
        cost_of_load_(problem.resources.size(), 0) {}

  void run() {
    add_balanced_trees();
    generate();
  }

  /// Goes on to an optimum that keeps links least busy, all together, and among those to one of low
  /// trees. On direct links, where all trees have as many edges, low ones are all that is wanted.
  void prefer_light_and_low() {
    const bool passes_switches =
        problem_.arcs_from.size() > static_cast<std::size_t>(problem_.sites());
    if (passes_switches) make_busy_links_cost();
    const std::vector<double> prices = even_out(prices_of_use());
    const RankDistances<double> distances(problem_, prices);
    for (int root = 0; root < problem_.ranks; ++root) add(distances.tree(root).tree);
    value_columns(kCostOfHeight);
    master_.solve();
  }

  void prefer_none() {
    cost_of_load_.assign(cost_of_load_.size(), 0);
    value_columns(/*cost_of_height=*/0);
    master_.solve();
  }

  std::vector<double> prices() const { return master_.prices(); }
  std::vector<int> basic_columns() const { return master_.basic_columns(); }
  const SpanningTree& tree(int column) const { return trees_[static_cast<std::size_t>(column)]; }
  const Loads& loads(int column) const { return loads_[static_cast<std::size_t>(column)]; }

  /// Weights of the basic columns, in their order, as the solver has them.
  TreeWeights rough_weights() const {
    const std::vector<double> all = master_.weights();
    TreeWeights weights;
    for (const int column : basic_columns()) {
      weights.emplace_back(all[static_cast<std::size_t>(column)]);
    }
    return weights;
  }

  /// The same exactly.
  std::optional<TreeWeights> weights() const {
    const std::vector<int> full = master_.full_resources();
    std::vector<std::int64_t> capacities;
    for (const int r : full) {
      capacities.push_back(problem_.resources[static_cast<std::size_t>(r)].capacity);
    }
    const Matrix matrix = basis();
    return is_soluble(matrix) ? solve_exactly(matrix, capacities) : std::nullopt;
  }

  /// Exact prices of the basis, by resource.
  std::optional<std::vector<Rational>> exact_prices() const {
    const Matrix matrix = basis();
    const std::size_t n = matrix.size();
    const std::vector<int> full = master_.full_resources();
    if (!is_soluble(matrix)) return std::nullopt;
    const auto solution = solve_prices(matrix, std::vector<std::int64_t>(n, 1));
    if (!solution) return std::nullopt;
    std::vector<Rational> prices(problem_.resources.size());
    for (std::size_t i = 0; i < n; ++i) prices[static_cast<std::size_t>(full[i])] = (*solution)[i];
    return prices;
  }

 private:
  bool add(const SpanningTree& tree) {
    Loads loads = loads_of(problem_, tree);
    const int height = centre_of(tree).height;
    if (!known_.emplace(loads, height).second) return false;
    master_.add(loads);
    master_.set_value(master_.columns() - 1, 1 - cost_of(loads));
    loads_.push_back(std::move(loads));
    trees_.push_back(tree);
    heights_.push_back(height);
    return true;
  }

  /// Trees that avoid what the ones before them use, by multiplicative prices: a start that covers
  /// every link.
  void add_balanced_trees() {
    std::vector<double> share;  // of its capacity that a load of 1 takes
    for (const auto& resource : problem_.resources) {
      share.push_back(1 / static_cast<double>(resource.capacity));
    }
    std::vector<double> prices = share;
    const int trees = problem_.ranks + static_cast<int>(problem_.resources.size());
    for (int i = 0; i < trees; ++i) {
      const SpanningTree tree =
          RankDistances<double>(problem_, prices).tree(i % problem_.ranks).tree;
      add(tree);
      const Loads loads = loads_of(problem_, tree);
      double maximum = 0;
      for (std::size_t r = 0; r < loads.size(); ++r) {
        maximum = std::max(maximum, static_cast<double>(loads[r]) * share[r]);
      }
      for (std::size_t r = 0; r < loads.size(); ++r) {
        prices[r] *= 1 + 0.5 * static_cast<double>(loads[r]) * share[r] / maximum;
      }
    }
  }

  double capacity(std::size_t resource) const {
    return static_cast<double>(problem_.resources[resource].capacity);
  }

  double cost_of(const Loads& loads) const {
    double cost = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      cost += static_cast<double>(loads[r]) * cost_of_load_[r];
    }
    return cost;
  }

  void value_columns(double cost_of_height) {
    for (int column = 0; column < master_.columns(); ++column) {
      const int height = heights_[static_cast<std::size_t>(column)];
      master_.set_value(column, 1 - cost_of(loads(column)) - cost_of_height * height);
    }
  }

  void make_busy_links_cost() {
    const std::vector<double> duals = master_.prices();
    double rate = 0;
    for (std::size_t r = 0; r < duals.size(); ++r) rate += duals[r] * capacity(r);
    for (std::size_t r = 0; r < duals.size(); ++r) {
      cost_of_load_[r] = kCostOfBusyLinks * rate / capacity(r);
    }
    value_columns(/*cost_of_height=*/0);
    generate();
  }

  void generate() {
    for (int round = 0; round < kMaxTreeRounds; ++round) {
      if (!master_.solve() || !improve()) return;
    }
  }

  /// What a tree pays for a load: its present price, and what loads cost besides.
  std::vector<double> prices_of_use() const {
    std::vector<double> prices = master_.prices();
    for (std::size_t r = 0; r < prices.size(); ++r) prices[r] += cost_of_load_[r];
    return prices;
  }

  /// Adds trees cheaper than 1 at the present prices; false when there are none.
  bool improve() {
    const RankDistances<double> distances(problem_, prices_of_use());
    const double cheap_enough =
        problem_.resources.size() > kManyTreeResources ? kCheapEnoughOfMany : kCheapEnough;
    bool any = false;
    for (int root = 0; root < problem_.ranks; root += std::max(1, problem_.ranks / 4)) {
      const CheapestTree<double> cheapest = distances.tree(root);
      if (cheapest.price >= cheap_enough) return any;
      any = add(cheapest.tree) || any;
    }
    return any;
  }

  /// Prices that differ within the solver's tolerance become equal.
  static std::vector<double> even_out(std::vector<double> prices) {
    const double maximum = *std::max_element(prices.begin(), prices.end());
    for (double& price : prices) price = std::round(price / maximum * 1e7);
    return prices;
  }

  /// Loads of the full resources (rows) by the basic columns.
  Matrix basis() const {
    const std::vector<int> columns = master_.basic_columns();
    Matrix matrix;
    for (const int r : master_.full_resources()) {
      auto& row = matrix.emplace_back();
      for (const int column : columns) row.push_back(loads(column)[static_cast<std::size_t>(r)]);
    }
    return matrix;
  }

  const PackingProblem& problem_;
  PackingMaster master_;
  std::vector<double> cost_of_load_;  ///< by resource, besides its price
  std::vector<SpanningTree> trees_;
  std::vector<Loads> loads_;
  std::vector<int> heights_;
  std::set<std::pair<Loads, int>> known_;
};

/// Scales the prices so that the cheapest tree costs 1, which makes them a proof of `limit`.
void prove_trees(const PackingProblem& problem, const std::vector<Rational>& prices,
                 TreePacking& packing) {
  const std::vector<Integer> whole = whole_prices(prices);
  const CheapestTree<Integer> cheapest = RankDistances<Integer>(problem, whole).tree(0);
  CHECK(cheapest.price > 0);
  packing.prices.clear();
  packing.limit = 0;
  for (std::size_t r = 0; r < whole.size(); ++r) {
    packing.prices.emplace_back(whole[r], cheapest.price);
    packing.limit += packing.prices.back() * problem.resources[r].capacity;
  }
}

/// Takes the trees of the search's basis with these weights as the packing. Returns how full the
/// fullest resource is, 1 at most when the weights are right; -1 when a weight is below 0.
Rational take_basis(const PackingProblem& problem, const TreeSearch& search,
                    const TreeWeights& weights, TreePacking& packing) {
  const std::vector<int> columns = search.basic_columns();
  TreeWeights used(problem.resources.size());
  packing.trees.clear();
  packing.weights.clear();
  packing.rate = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (weights[i] < 0) return -1;
    if (weights[i] == 0) continue;
    packing.trees.push_back(search.tree(columns[i]));
    packing.weights.push_back(weights[i]);
    packing.rate += weights[i];
    const Loads& loads = search.loads(columns[i]);
    for (std::size_t r = 0; r < loads.size(); ++r) {
      if (loads[r] != 0) used[r] += weights[i] * loads[r];
    }
  }
  Rational fullest = 0;
  for (std::size_t r = 0; r < used.size(); ++r) {
    fullest = std::max(fullest, Rational(used[r] / problem.resources[r].capacity));
  }
  return fullest;
}

/// With exact weights, if they are a packing: the floating point basis may be off.
bool take_exactly(const PackingProblem& problem, const TreeSearch& search, TreePacking& packing) {
  const std::optional<TreeWeights> weights = search.weights();
  if (!weights) return false;
  const Rational fullest = take_basis(problem, search, *weights, packing);
  return fullest >= 0 && fullest <= 1;
}

/// With the solver's weights, scaled so that nothing is overloaded.
void take_roughly(const PackingProblem& problem, const TreeSearch& search, TreePacking& packing) {
  const Rational fullest = take_basis(problem, search, search.rough_weights(), packing);
  CHECK(fullest > 0);
  for (Rational& weight : packing.weights) weight /= fullest;
  packing.rate /= fullest;
}

}  // namespace

Loads loads_of(const PackingProblem& problem, const SpanningTree& tree) {
  Loads loads(problem.resources.size(), 0);
  for (const PackedEdge& edge : tree) {
    for (const int resource : edge.resources) {
      const auto r = static_cast<std::size_t>(resource);
      loads[r] += problem.resources[r].load;
    }
  }
  return loads;
}

TreePacking pack_spanning_trees(const PackingProblem& problem) {
  CHECK(problem.ranks >= 2);
  TreeSearch search(problem);
  search.run();
  TreePacking packing;
  std::optional<std::vector<Rational>> prices = search.exact_prices();
  if (!prices) {
    prices.emplace();
    for (const double price : search.prices()) prices->emplace_back(price);
  }
  prove_trees(problem, *prices, packing);
  search.prefer_light_and_low();
  if (take_exactly(problem, search, packing) && packing.rate == packing.limit) return packing;
  search.prefer_none();
  if (!take_exactly(problem, search, packing)) take_roughly(problem, search, packing);
  return packing;
}

TreeCentre centre_of(const SpanningTree& tree) {
  std::size_t n = 1;
  for (const PackedEdge& edge : tree) {
    n = std::max(n, static_cast<std::size_t>(std::max(edge.from, edge.to)) + 1);
  }
  std::vector<std::vector<int>> neighbours(n);
  for (const PackedEdge& edge : tree) {
    neighbours[static_cast<std::size_t>(edge.from)].push_back(edge.to);
    neighbours[static_cast<std::size_t>(edge.to)].push_back(edge.from);
  }
  // The longest path joins the rank farthest from any to the one farthest from that.
  const auto farthest = [&](int start) {
    std::vector<int> path_to(n, -1);
    path_to[static_cast<std::size_t>(start)] = start;
    std::vector<int> order{start};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const int next : neighbours[static_cast<std::size_t>(order[i])]) {
        if (path_to[static_cast<std::size_t>(next)] >= 0) continue;
        path_to[static_cast<std::size_t>(next)] = order[i];
        order.push_back(next);
      }
    }
    std::vector<int> path{order.back()};
    while (path.back() != start) path.push_back(path_to[static_cast<std::size_t>(path.back())]);
    return path;
  };
  const std::vector<int> longest = farthest(farthest(0).front());
  return {longest[longest.size() / 2], static_cast<int>(longest.size() / 2)};
}

}  // namespace espalier

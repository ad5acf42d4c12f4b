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
#include "core/time_limit.h"
#include "planner/packing/cheapest_tree.h"
#include "planner/packing/column_generation.h"

namespace espalier {
namespace {

constexpr GenerationEnds kTreeEnds{.missing = 1e-8, .rounds = 5000};
/// The solver's rounding, and no more: a bound is left as it is where trees carry it.
constexpr double kSameRate = 1e-10;
constexpr std::size_t kManyTreeResources = 300;
/// Up to these many ranks prices are made an exact proof even when the time is up.
constexpr int kMaxRanksProvedLate = 128;
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
  TreeSearch(const PackingProblem& problem, std::int64_t max_work)
      : problem_(problem),
        many_(problem.resources.size() > kManyTreeResources),
        ends_(many_ ? on_many_links(kTreeEnds) : kTreeEnds),
        max_work_(max_work),
        budget_(max_work),
        master_(capacities_of(problem)),
        cost_of_load_(problem.resources.size(), 0) {}

  /// False when the work is spent before it is known how good the packing is.
  bool run() {
    if (many_) {
      // Where all ranks are alike, a tree from each is best, and balanced prices prove it.
      add_balanced_trees(problem_.ranks);
      if (!master_.solve(budget_)) return false;
      if (rate() >= best_prices_.limit() * (1 - ends_.missing)) return true;
    }
    add_balanced_trees(problem_.ranks + static_cast<int>(problem_.resources.size()));
    return generate();
  }

  /// Whether the first trees, half as many as there are ranks at most, carry `rate_wanted`.
  bool carries_at_once(double rate_wanted) {
    for (int trees = 2; trees <= std::max(2, problem_.ranks / 2); trees *= 2) {
      add_balanced_trees(trees);
      if (!master_.solve(budget_)) return false;
      if (rate() >= rate_wanted * (1 - kSameRate)) return true;
    }
    return false;
  }

  /// Goes on to an optimum that keeps links least busy, all together, and among those to one of low
  /// trees. On direct links, where all trees have as many edges, low ones are all that is wanted.
  void prefer_light_and_low() {
    const Activity activity("preferring low ones");
    budget_ = WorkBudget(max_work_);
    const bool passes_switches =
        problem_.arcs_from.size() > static_cast<std::size_t>(problem_.sites());
    if (passes_switches) make_busy_links_cost();
    const std::vector<double> prices = even_out(prices_of_use());
    const RankDistances<double> distances(problem_, prices);
    for (int root = 0; root < problem_.ranks && !budget_.is_spent(); ++root) {
      add(distances.tree(root).tree);
      budget_.spend(work_of_tree());
    }
    value_columns(kCostOfHeight);
    master_.solve(budget_);
  }

  void prefer_none() {
    budget_ = WorkBudget(max_work_);
    cost_of_load_.assign(cost_of_load_.size(), 0);
    value_columns(/*cost_of_height=*/0);
    master_.solve(budget_);
  }

  const BestPrices& best_prices() const { return best_prices_; }
  std::vector<int> basic_columns() const { return master_.basic_columns(); }
  std::vector<int> all_columns() const {
    std::vector<int> columns(trees_.size());
    std::iota(columns.begin(), columns.end(), 0);
    return columns;
  }
  const SpanningTree& tree(int column) const { return trees_[static_cast<std::size_t>(column)]; }
  const Loads& loads(int column) const { return loads_[static_cast<std::size_t>(column)]; }

  /// Weights of the basic columns, in their order, as the solver has them.
  TreeWeights rough_weights() const {
    const std::vector<double> all = master_.weights();
    // Sums of many fractions take long; of multiples of one they don't.
    const double grain = many_ ? *std::max_element(all.begin(), all.end()) / (1 << 20) : 0;
    TreeWeights weights;
    for (const int column : basic_columns()) {
      const double weight = all[static_cast<std::size_t>(column)];
      weights.emplace_back(grain > 0 ? std::round(weight / grain) : weight);
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
  /// every link. Goes on to so many.
  void add_balanced_trees(int trees) {
    if (balanced_prices_.empty()) balanced_prices_ = prices_of_empty(problem_);
    const std::int64_t kept_work = kept_from_balanced(max_work_);
    for (; balanced_trees_ < trees; ++balanced_trees_) {
      if (balanced_trees_ > 0 && budget_.left() <= kept_work) return;  // one tree is a packing
      budget_.spend(work_of_distances() + work_of_tree());
      const CheapestTree<double> cheapest =
          RankDistances<double>(problem_, balanced_prices_).tree(balanced_trees_ % problem_.ranks);
      note_proof(balanced_prices_, cheapest.price);
      add(cheapest.tree);
      raise_prices(problem_, loads_of(problem_, cheapest.tree), balanced_prices_);
    }
  }

  double capacity(std::size_t resource) const {
    return static_cast<double>(problem_.resources[resource].capacity);
  }

  /// Links looked at to find the ways between all sites, and for a tree over these.
  std::int64_t work_of_distances() const {
    std::int64_t arcs = 0;
    for (const auto& from : problem_.arcs_from) arcs += static_cast<std::int64_t>(from.size());
    const auto vertices = static_cast<std::int64_t>(problem_.arcs_from.size());
    return problem_.sites() * (8 * arcs / std::max<std::int64_t>(1, problem_.sites()) + vertices);
  }
  std::int64_t work_of_tree() const {
    const std::int64_t sites = problem_.sites();
    return 4 * sites * sites + static_cast<std::int64_t>(problem_.resources.size());
  }

  /// What all columns in use carry, in the problem's unit.
  double rate() const {
    const std::vector<double> weights = master_.weights();
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  }

  /// `price`: of the cheapest tree.
  void note_proof(const std::vector<double>& prices, double price) {
    best_prices_.offer(prices, paid_to_all(problem_, prices) / price);
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
    links_cost_ = true;
    value_columns(/*cost_of_height=*/0);
    generate();
  }

  bool generate() {
    return generate_columns(master_, ends_, budget_, [&] { return improve(); });
  }

  /// What a tree pays for a load: its present price, and what loads cost besides.
  std::vector<double> prices_of_use() const {
    std::vector<double> prices = master_.prices();
    for (std::size_t r = 0; r < prices.size(); ++r) prices[r] += cost_of_load_[r];
    return prices;
  }

  /// Adds trees cheaper than 1, which is what those in use pay at the present prices.
  PricedColumns improve() {
    const std::vector<double> prices = prices_of_use();
    const RankDistances<double> distances(problem_, prices);
    budget_.spend(work_of_distances());
    PricedColumns found{.any_new = false, .rate = 1, .limit = 1};
    for (int root = 0; root < problem_.ranks; root += std::max(1, problem_.ranks / 4)) {
      const CheapestTree<double> cheapest = distances.tree(root);
      budget_.spend(work_of_tree());
      if (root == 0 && !links_cost_) note_proof(prices, cheapest.price);
      found.limit = 1 / cheapest.price;
      if (cheapest.price >= 1 - ends_.missing) break;
      found.any_new = add(cheapest.tree) || found.any_new;
    }
    if (many_ && !links_cost_) found.limit = std::min(found.limit, best_prices_.limit() / rate());
    return found;
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
  const bool many_;  ///< links
  const GenerationEnds ends_;
  const std::int64_t max_work_;
  WorkBudget budget_;
  PackingMaster master_;
  std::vector<double> balanced_prices_;
  int balanced_trees_ = 0;
  BestPrices best_prices_;
  std::vector<double> cost_of_load_;  ///< by resource, besides its price
  bool links_cost_ = false;
  std::vector<SpanningTree> trees_;
  std::vector<Loads> loads_;
  std::vector<int> heights_;
  std::set<std::pair<Loads, int>> known_;
};

/// Scales the prices so that the cheapest tree costs 1, which makes them a proof of `limit`. Keeps
/// them where they prove more than what is known.
void prove_trees(const PackingProblem& problem, const std::vector<Rational>& prices,
                 TreePacking& packing) {
  const std::vector<Integer> whole = whole_prices(prices);
  const CheapestTree<Integer> cheapest = RankDistances<Integer>(problem, whole).tree(0);
  if (cheapest.price == 0) return;  // of a search that ended before prices joined all ranks
  std::vector<Rational> scaled;
  Rational limit = 0;
  for (std::size_t r = 0; r < whole.size(); ++r) {
    scaled.emplace_back(whole[r], cheapest.price);
    limit += scaled.back() * problem.resources[r].capacity;
  }
  if (!packing.prices.empty() && limit >= packing.limit) return;
  packing.prices = std::move(scaled);
  packing.limit = limit;
}

/// Takes these trees of the search with these weights as the packing. Returns how full the fullest
/// resource is, 1 at most when the weights are right; -1 when a weight is below 0.
Rational take(const PackingProblem& problem, const TreeSearch& search,
              const std::vector<int>& columns, const TreeWeights& weights, TreePacking& packing) {
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

/// The basis with exact weights, if they are a packing: the floating point basis may be off.
bool take_exactly(const PackingProblem& problem, const TreeSearch& search, TreePacking& packing) {
  const std::optional<TreeWeights> weights = search.weights();
  if (!weights) return false;
  const Rational fullest = take(problem, search, search.basic_columns(), *weights, packing);
  return fullest >= 0 && fullest <= 1;
}

/// Scaled so that nothing is overloaded. False where the weights are all 0.
bool take_scaled(const PackingProblem& problem, const TreeSearch& search,
                 const std::vector<int>& columns, const TreeWeights& weights,
                 TreePacking& packing) {
  const Rational fullest = take(problem, search, columns, weights, packing);
  if (fullest <= 0) return false;
  for (Rational& weight : packing.weights) weight /= fullest;
  packing.rate /= fullest;
  return true;
}

/// With the solver's weights. Those of a search that ended early may be worse than no weights: the
/// balanced trees share links evenly.
void take_roughly(const PackingProblem& problem, const TreeSearch& search, TreePacking& packing) {
  const bool any =
      take_scaled(problem, search, search.basic_columns(), search.rough_weights(), packing);
  if (any && packing.is_complete) return;
  TreePacking even = packing;
  const std::vector<int> columns = search.all_columns();
  CHECK(take_scaled(problem, search, columns, TreeWeights(columns.size(), 1), even));
  if (!any || even.rate > packing.rate) packing = std::move(even);
}

/// The tightest of the proofs that the search has come by. When time is up, one that does not take
/// long to be made exact, or none.
void prove_packing(const PackingProblem& problem, const TreeSearch& search, TreePacking& packing) {
  constexpr double kSame = 1e-9;
  const BestPrices& best = search.best_prices();
  if (is_time_up()) {
    if (problem.ranks <= kMaxRanksProvedLate) prove_trees(problem, best.rounded(), packing);
    return;
  }
  if (const auto exact = search.exact_prices()) prove_trees(problem, *exact, packing);
  const bool is_proved = !packing.prices.empty();
  if (is_proved && packing.limit.convert_to<double>() <= best.limit() * (1 + kSame)) return;
  prove_trees(problem, best.rounded(), packing);
  prove_trees(problem, best.raw(), packing);
}

}  // namespace

std::vector<Portion> portions_of(const PackingProblem& problem, const TreePacking& packing) {
  std::vector<Portion> portions;
  for (std::size_t i = 0; i < packing.trees.size(); ++i) {
    Portion& portion = portions.emplace_back();
    portion.share = packing.weights[i] / packing.rate;
    for (const PackedEdge& edge : packing.trees[i]) add_loads(problem, edge, portion.loads);
  }
  return portions;
}

bool carries_at_once(const PackingProblem& problem, const Rational& rate, std::int64_t max_work) {
  CHECK(problem.ranks >= 2);
  const Activity activity("packing trees");
  return TreeSearch(problem, max_work).carries_at_once(rate.convert_to<double>());
}

TreePacking pack_spanning_trees(const PackingProblem& problem, std::int64_t max_work) {
  CHECK(problem.ranks >= 2);
  const Activity activity("packing trees");
  TreeSearch search(problem, max_work);
  TreePacking packing;
  packing.is_complete = search.run();
  prove_packing(problem, search, packing);
  if (packing.is_complete) {
    search.prefer_light_and_low();
    if (take_exactly(problem, search, packing) && packing.rate == packing.limit) return packing;
    search.prefer_none();
  }
  if (packing.is_complete && take_exactly(problem, search, packing)) return packing;
  take_roughly(problem, search, packing);
  return packing;
}

}  // namespace espalier

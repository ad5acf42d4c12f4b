// SPDX-License-Identifier: Apache-2.0
#include "planner/bounds/class_prices.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/activity.h"
#include "core/check.h"
#include "planner/graph/colour_refinement.h"
#include "planner/packing/column_generation.h"
#include "planner/packing/nearest_sites.h"

namespace espalier {
namespace {

constexpr GenerationEnds kClassEnds{.missing = 1e-10, .rounds = 2000};

using ClassLoads = std::vector<std::int64_t>;

/// One price for every class, found by column generation over the classes.
class ClassSearch {
 public:
  ClassSearch(const PackingProblem& problem, const ResourceClasses& classes, std::int64_t max_work)
      : problem_(problem),
        classes_(classes),
        budget_(max_work),
        capacities_(capacities()),
        master_(capacities_) {}

  bool run() {
    add_tree(prices_by_capacity());
    return generate_columns(master_, kClassEnds, budget_, [&] {
      PricedColumns found{.any_new = false, .rate = 1, .limit = 1};
      const double price = add_tree(master_.prices());
      found.any_new = is_new_;
      found.limit = 1 / price;  // without limit where prices join no ranks yet
      return found;
    });
  }

  /// By class: exact ones of the basis, where it can be solved, and the tightest met on the way.
  std::vector<std::vector<Rational>> proofs() const {
    std::vector<std::vector<Rational>> proofs{best_.rounded(), best_.raw()};
    const std::vector<int> full = master_.full_resources();
    Matrix basis;
    for (const int row : full) {
      auto& loads = basis.emplace_back();
      for (const int column : master_.basic_columns()) {
        loads.push_back(columns_[static_cast<std::size_t>(column)][static_cast<std::size_t>(row)]);
      }
    }
    if (!is_soluble(basis)) return proofs;
    const auto solution = solve_prices(basis, std::vector<std::int64_t>(basis.size(), 1));
    if (!solution) return proofs;
    std::vector<Rational> exact(capacities_.size());
    for (std::size_t i = 0; i < full.size(); ++i) {
      exact[static_cast<std::size_t>(full[i])] = (*solution)[i];
    }
    proofs.insert(proofs.begin(), std::move(exact));
    return proofs;
  }

 private:
  std::vector<std::int64_t> capacities() const {
    std::vector<std::int64_t> sums(static_cast<std::size_t>(classes_.count), 0);
    for (std::size_t r = 0; r < problem_.resources.size(); ++r) {
      sums[static_cast<std::size_t>(classes_.of_resource[r])] += problem_.resources[r].capacity;
    }
    return sums;
  }

  std::vector<double> prices_by_capacity() const {
    std::vector<double> prices;
    for (const std::int64_t capacity : capacities_) {
      prices.push_back(1 / static_cast<double>(capacity));
    }
    return prices;
  }

  /// Adds the cheapest tree at these prices of classes; returns what it costs.
  double add_tree(const std::vector<double>& of_class) {
    std::vector<double> prices;
    for (const int one : classes_.of_resource) {
      prices.push_back(of_class[static_cast<std::size_t>(one)]);
    }
    const CheapestTree<double> cheapest = NearestSites<double>(problem_, prices).tree();
    budget_.spend(16 * static_cast<std::int64_t>(problem_.arcs_from.size() + prices.size()));
    if (cheapest.price > 0) best_.offer(of_class, paid(of_class) / cheapest.price);
    ClassLoads loads(capacities_.size(), 0);
    for (const PackedEdge& edge : cheapest.tree) {
      for (const int resource : edge.resources) {
        const auto r = static_cast<std::size_t>(resource);
        loads[static_cast<std::size_t>(classes_.of_resource[r])] += problem_.resources[r].load;
      }
    }
    is_new_ = known_.insert(loads).second;
    if (is_new_) {
      master_.add(loads);
      columns_.push_back(std::move(loads));
    }
    return cheapest.price;
  }

  double paid(const std::vector<double>& of_class) const {
    double sum = 0;
    for (std::size_t i = 0; i < of_class.size(); ++i) {
      sum += of_class[i] * static_cast<double>(capacities_[i]);
    }
    return sum;
  }

  const PackingProblem& problem_;
  const ResourceClasses& classes_;
  WorkBudget budget_;
  const std::vector<std::int64_t> capacities_;  ///< by class, of all its resources
  PackingMaster master_;
  BestPrices best_;
  std::vector<ClassLoads> columns_;
  std::set<ClassLoads> known_;
  bool is_new_ = false;
};

}  // namespace

/// Colour refinement of a graph whose vertices are those of the problem, its resources and its
/// arcs: an arc is joined to its two ends and to what it uses.
ResourceClasses resource_classes(const PackingProblem& problem) {
  CHECK(problem.relays == 0);
  enum Label { kTail, kHead, kUse };
  enum Colour { kRank, kVertex, kArc, kFirstResource };
  std::vector<int> colours;
  std::vector<LabelledEdge> edges;
  for (int v = 0; v < static_cast<int>(problem.arcs_from.size()); ++v) {
    colours.push_back(v < problem.ranks ? kRank : kVertex);
  }
  const auto first_resource = static_cast<int>(colours.size());
  std::map<std::pair<std::int64_t, int>, int> kinds;
  for (const PackingProblem::Resource& resource : problem.resources) {
    const int kind = kFirstResource + static_cast<int>(kinds.size());
    colours.push_back(
        kinds.emplace(std::pair(resource.capacity, resource.load), kind).first->second);
  }
  for (int from = 0; from < first_resource; ++from) {
    for (const PackingProblem::Arc& arc : problem.arcs_from[static_cast<std::size_t>(from)]) {
      const auto own = static_cast<int>(colours.size());
      colours.push_back(kArc);
      edges.push_back({own, from, kTail});
      edges.push_back({own, arc.to, kHead});
      if (arc.resource >= 0) edges.push_back({own, first_resource + arc.resource, kUse});
    }
  }
  const std::vector<int> refined = refine_colours(std::move(colours), edges);
  ResourceClasses classes;
  std::map<int, int> numbers;
  for (std::size_t r = 0; r < problem.resources.size(); ++r) {
    const int colour = refined[static_cast<std::size_t>(first_resource) + r];
    classes.of_resource.push_back(
        numbers.emplace(colour, static_cast<int>(numbers.size())).first->second);
  }
  classes.count = static_cast<int>(numbers.size());
  return classes;
}

std::optional<ClassPrices> price_classes(const PackingProblem& problem,
                                         const ResourceClasses& classes, std::int64_t max_work) {
  const auto count = static_cast<std::size_t>(classes.count);
  if (count > kMaxExactEquations || 2 * count > problem.resources.size()) return std::nullopt;
  const Activity activity("pricing classes of links");
  ClassSearch search(problem, classes, max_work);
  ClassPrices best;
  best.is_complete = search.run();
  for (const std::vector<Rational>& of_class : search.proofs()) {
    const std::vector<Integer> whole = whole_prices(of_class);
    std::vector<Integer> by_resource;
    for (const int one : classes.of_resource) {
      by_resource.push_back(whole[static_cast<std::size_t>(one)]);
    }
    const Integer cheapest = NearestSites<Integer>(problem, by_resource).tree().price;
    if (cheapest == 0) continue;
    Integer paid = 0;
    for (std::size_t r = 0; r < by_resource.size(); ++r) {
      paid += by_resource[r] * problem.resources[r].capacity;
    }
    const Rational limit(paid, cheapest);
    if (!best.prices.empty() && limit >= best.limit) continue;
    best.limit = limit;
    best.prices.clear();
    for (const Integer& price : by_resource) best.prices.emplace_back(price, cheapest);
  }
  return best.prices.empty() ? std::nullopt : std::optional(std::move(best));
}

}  // namespace espalier

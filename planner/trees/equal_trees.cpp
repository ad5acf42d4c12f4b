// SPDX-License-Identifier: Apache-2.0
#include "planner/trees/equal_trees.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/check.h"
#include "planner/graph/work_budget.h"

namespace espalier {
namespace {

/// What completing the trees may cost, some seconds (see WorkBudget): 64 trees of 128 ranks take a
/// tenth of it.
constexpr std::int64_t kMaxExchangeWork = 1'000'000'000;

/// Edges between ranks by resource, and edge-disjoint forests of them.
class Forests {
 public:
  struct Ends {
    int a = 0, b = 0;
  };

  /// `copies`: how often an edge may be used, by resource.
  Forests(int ranks, std::vector<Ends> ends, std::vector<std::int64_t> copies, int count)
      : ranks_(static_cast<std::size_t>(ranks)),
        ends_(std::move(ends)),
        left_(std::move(copies)),
        member_(static_cast<std::size_t>(count), std::vector<bool>(ends_.size(), false)),
        at_(static_cast<std::size_t>(count), std::vector<std::vector<int>>(ranks_)) {}

  bool has_left(int resource) const { return left_[index(resource)] > 0; }

  /// Adds the edge to the forest if there is a copy left and no circle comes of it.
  void add_if_free(int forest, int resource) {
    if (!has_left(resource) || !circle(forest, resource).empty()) return;
    join(forest, resource);
    --left_[index(resource)];
  }

  /// Gives one more copy of the edge to the forests, moving others between them where that is
  /// needed. False when the forests can't take it, now or later, or the work is spent.
  bool augment(int resource) {
    std::vector<Step> steps{{resource, -1, -1}};
    std::vector<std::vector<bool>> seen(member_.size(), std::vector<bool>(ends_.size(), false));
    for (std::size_t at = 0; at < steps.size(); ++at) {
      for (std::size_t f = 0; f < member_.size(); ++f) {
        const int forest = static_cast<int>(f);
        const Step step = steps[at];
        if (forest == step.forest || member_[f][index(step.resource)]) continue;
        if (budget_.is_spent()) return false;
        const std::vector<int> circled = circle(forest, step.resource);
        if (circled.empty()) {
          move_along(steps, at, forest);
          --left_[index(resource)];
          return true;
        }
        for (const int other : circled) {
          if (seen[f][index(other)]) continue;
          seen[f][index(other)] = true;
          steps.push_back({other, forest, static_cast<int>(at)});
        }
      }
    }
    return false;
  }

  std::vector<int> edges(int forest) const {
    std::vector<int> edges;
    for (std::size_t r = 0; r < ends_.size(); ++r) {
      if (member_[index(forest)][r]) edges.push_back(static_cast<int>(r));
    }
    return edges;
  }
  const Ends& ends(int resource) const { return ends_[index(resource)]; }
  bool is_out_of_work() const { return budget_.is_spent(); }

 private:
  /// A copy of an edge looking for another forest; `forest` is where it is now, `cause` the step
  /// whose edge would take its place.
  struct Step {
    int resource;
    int forest;
    int cause;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void move_along(const std::vector<Step>& steps, std::size_t last, int forest) {
    for (int at = static_cast<int>(last); at >= 0;) {
      const Step& step = steps[index(at)];
      if (step.forest >= 0) leave(step.forest, step.resource);
      join(forest, step.resource);
      forest = step.forest;
      at = step.cause;
    }
  }

  void join(int forest, int resource) {
    member_[index(forest)][index(resource)] = true;
    for (const int rank : {ends(resource).a, ends(resource).b}) {
      at_[index(forest)][index(rank)].push_back(resource);
    }
  }
  void leave(int forest, int resource) {
    member_[index(forest)][index(resource)] = false;
    for (const int rank : {ends(resource).a, ends(resource).b}) {
      std::erase(at_[index(forest)][index(rank)], resource);
    }
  }

  /// The path of the forest between the ends of an edge; empty when there is none.
  std::vector<int> circle(int forest, int resource) {
    const Ends& ends = ends_[index(resource)];
    std::vector<int> last(ranks_, -1);  // edge by which a rank is reached
    std::vector<int> reached{ends.a};
    for (std::size_t i = 0; i < reached.size() && last[index(ends.b)] < 0; ++i) {
      for (const int r : at_[index(forest)][index(reached[i])]) {
        if (last[index(reached[i])] == r) continue;
        const int next = other_end(r, reached[i]);
        last[index(next)] = r;
        reached.push_back(next);
      }
    }
    budget_.spend(static_cast<std::int64_t>(ranks_ + reached.size()));
    std::vector<int> path;
    if (last[index(ends.b)] < 0) return path;
    for (int rank = ends.b; rank != ends.a; rank = other_end(path.back(), rank)) {
      path.push_back(last[index(rank)]);
    }
    return path;
  }

  int other_end(int resource, int rank) const {
    const Ends& ends = ends_[index(resource)];
    return ends.a == rank ? ends.b : ends.a;
  }

  std::size_t ranks_;
  std::vector<Ends> ends_;
  std::vector<std::int64_t> left_;
  std::vector<std::vector<bool>> member_;          ///< by forest, by resource
  std::vector<std::vector<std::vector<int>>> at_;  ///< edges, by forest, by rank
  WorkBudget budget_{kMaxExchangeWork};
};

/// Copies of the packing's trees as its weights say, rounded down, and then what fits of the
/// others, those with most left over first.
void start_from(const TreePacking& packing, std::int64_t count, Forests& forests) {
  std::vector<std::pair<Rational, std::size_t>> remainders;
  int next = 0;
  const auto add = [&](const SpanningTree& tree) {
    for (const PackedEdge& edge : tree) forests.add_if_free(next, edge.resources.front());
    ++next;
  };
  for (std::size_t i = 0; i < packing.trees.size(); ++i) {
    const Rational wanted = packing.weights[i] / packing.rate * count;
    const Integer whole = numerator(wanted) / denominator(wanted);
    for (Integer copy = 0; copy < whole; ++copy) add(packing.trees[i]);
    remainders.emplace_back(whole - wanted, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (const auto& [remainder, i] : remainders) {
    if (next < count) add(packing.trees[i]);
  }
}

}  // namespace

std::optional<TreePacking> equal_trees(const PackingProblem& problem, const TreePacking& packing,
                                       std::int64_t max_trees) {
  if (problem.arcs_from.size() != static_cast<std::size_t>(problem.ranks)) return std::nullopt;
  Integer cut_into = denominator(packing.rate);
  for (const auto& resource : problem.resources) {
    if (resource.capacity % resource.load != 0) cut_into = lcm(cut_into, Integer(resource.load));
  }
  const Rational trees = packing.rate * cut_into;
  if (trees > max_trees) return std::nullopt;
  const int count = static_cast<int>(numerator(trees));

  std::vector<Forests::Ends> ends(problem.resources.size());
  std::vector<bool> joins(problem.resources.size(), false);
  for (int rank = 0; rank < problem.ranks; ++rank) {
    for (const auto& arc : problem.arcs_from[static_cast<std::size_t>(rank)]) {
      ends[static_cast<std::size_t>(arc.resource)] = {rank, arc.to};
      joins[static_cast<std::size_t>(arc.resource)] = true;
    }
  }
  std::vector<std::int64_t> usable(problem.resources.size(), 0);
  for (std::size_t i = 0; i < usable.size(); ++i) {
    if (!joins[i]) continue;  // peer limits leave links out
    const PackingProblem::Resource& resource = problem.resources[i];
    // No tree uses an edge twice, so more copies than trees are of no use.
    const Integer all = resource.capacity * cut_into / resource.load;
    usable[i] = all < count ? static_cast<std::int64_t>(all) : count;
  }
  const Activity activity("making trees of one weight");
  Forests forests(problem.ranks, std::move(ends), std::move(usable), count);
  start_from(packing, count, forests);
  for (int r = 0; r < static_cast<int>(problem.resources.size()); ++r) {
    while (forests.has_left(r) && forests.augment(r)) {
    }
  }
  if (forests.is_out_of_work()) return std::nullopt;

  std::map<std::vector<int>, std::int64_t> alike;
  for (int i = 0; i < count; ++i) ++alike[forests.edges(i)];
  // The resources that a plan may use (peer limits leave some out) need not hold that many trees.
  const auto spans = [&](const auto& one) {
    return static_cast<int>(one.first.size()) == problem.ranks - 1;
  };
  if (!std::ranges::all_of(alike, spans)) return std::nullopt;
  TreePacking result;
  result.prices = packing.prices;
  result.limit = packing.limit;
  result.is_complete = packing.is_complete;
  for (const auto& [edges, copies] : alike) {
    SpanningTree tree;
    for (const int r : edges) tree.push_back({forests.ends(r).a, forests.ends(r).b, {}, {r}});
    result.trees.push_back(std::move(tree));
    result.weights.emplace_back(Integer(copies), cut_into);
    result.rate += result.weights.back();
  }
  return result;
}

}  // namespace espalier

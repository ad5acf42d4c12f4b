// SPDX-License-Identifier: Apache-2.0
#include "planner/cells/plan_cells.h"
#include "planner/alike_nodes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "core/activity.h"
#include "core/check.h"
#include "core/time_limit.h"
#include "planner/bounds.h"
#include "planner/cells/cell_problem.h"
#include "planner/cells/cell_trees.h"
#include "planner/cells/cells.h"
#include "planner/packing/demand_packing.h"
#include "planner/packing/fullest_link.h"
#include "planner/packing/peer_limits.h"
#include "planner/packing/spanning_trees.h"
#include "planner/packing/whole_weights.h"

namespace espalier {
namespace {

/// With two binary trees for each of a cell's, a cell has as many neighbours as in a ring, of which
/// one in n is too many. Where that loses more than this, all turns are taken.
constexpr double kLittleLost = 0.015;

/// Of the bound: with so much no other plan is looked for, where a search is exact, where it would
/// end in time, and beyond.
constexpr double kExactByCells = 1 - 1e-9;
constexpr double kGoodByCells = 0.99;
constexpr double kEnoughByCells = 0.9;

/// A use of a link between cells by a tree that goes through all of them.
constexpr int kNeighbours = 2;

/// A cell's tree, and how it is joined to those of other cells. Vertices are those of the first
/// cell; ways to the hub end there.
struct CellPlan {
  std::vector<PackedEdge> inside;  ///< between ranks of the cell; one way: from the entry, parents
                                   ///< first
  std::vector<PackedEdge> out;     ///< from a rank to the hub: where the tree leaves the cell
  std::vector<PackedEdge> in;      ///< one way: from the hub to a rank: where it enters the cell
};

class Composer {
 public:
  Composer(const PackingProblem& whole, const Cells& cells) : whole_(whole), cells_(cells) {}

  /// Takes a tree of the cell's problem apart.
  CellPlan take_apart(const CellProblem& part, const std::vector<PackedEdge>& tree) const {
    CellPlan plan;
    for (const PackedEdge& edge : tree) {
      PackedEdge own{edge.from, edge.to, {}, {}};
      for (const int vertex : edge.vertices) {
        const int origin = part.origin[static_cast<std::size_t>(vertex)];
        if (origin >= 0) own.vertices.push_back(origin);
      }
      if (is_one_way() && edge.from == part.others) {
        plan.in.push_back(std::move(own));
      } else if (edge.to == part.onward) {
        plan.out.push_back(std::move(own));
      } else if (edge.from == part.others) {
        plan.out.push_back(turned(std::move(own)));
      } else {
        plan.inside.push_back(std::move(own));
      }
    }
    return plan;
  }

  bool is_one_way() const { return whole_.use == EdgeUse::one_way; }

  static PackedEdge turned(PackedEdge edge) {
    std::swap(edge.from, edge.to);
    std::ranges::reverse(edge.vertices);
    return edge;
  }

  /// The edges inside the cell as seen from one of its ranks, parents first and children in turn,
  /// counted around from their parent: so trees of the cell that are the same, turned, are written
  /// alike, and their ranks behave alike. Only edges that are connected to the rank.
  std::vector<PackedEdge> hung_at(int root, const std::vector<PackedEdge>& edges) const {
    std::vector<PackedEdge> result;
    std::vector<bool> placed(edges.size(), false);
    std::vector<int> order{root};
    for (std::size_t next = 0; next < order.size(); ++next) {
      const int parent = order[next];
      const auto first = static_cast<std::ptrdiff_t>(result.size());
      for (std::size_t i = 0; i < edges.size(); ++i) {
        if (placed[i] || (edges[i].from != parent && edges[i].to != parent)) continue;
        placed[i] = true;
        result.push_back(edges[i].from == parent ? edges[i] : turned(edges[i]));
      }
      const auto around = [&](const PackedEdge& edge) {
        return (edge.to - parent + cells_.ranks) % cells_.ranks;
      };
      std::ranges::sort(result.begin() + first, result.end(), {}, around);
      for (auto edge = result.begin() + first; edge != result.end(); ++edge) {
        order.push_back(edge->to);
      }
    }
    return result;
  }

  /// The plan with its edges as seen from where it leaves the cell. \pre every rank of the cell is
  /// connected to exactly one way out
  CellPlan hung_at_ways(CellPlan plan) const {
    std::vector<PackedEdge> inside;
    for (const PackedEdge& way : plan.out) {
      std::ranges::copy(hung_at(way.from, plan.inside), std::back_inserter(inside));
    }
    CHECK(inside.size() == plan.inside.size());
    plan.inside = std::move(inside);
    return plan;
  }

  /// The edge of a cell as that of another.
  PackedEdge inside(const PackedEdge& edge, int cell) const {
    PackedEdge result{in_cell(edge.from, cell), in_cell(edge.to, cell), {}, {}};
    append(edge.vertices, cell, result.vertices);
    return result;
  }

  /// From where `out` leaves a cell to where `in` enters another.
  PackedEdge between(const PackedEdge& out, int from_cell, const PackedEdge& in,
                     int to_cell) const {
    PackedEdge result{in_cell(out.from, from_cell), in_cell(in.to, to_cell), {}, {}};
    append(out.vertices, from_cell, result.vertices);
    result.vertices.pop_back();  // the hub's, which `in` has, too
    append(in.vertices, to_cell, result.vertices);
    return result;
  }

  /// Whether what leaves by one comes to where the other enters: at one vertex of the hub.
  static bool meet(const PackedEdge& out, const PackedEdge& in) {
    return out.vertices.back() == in.vertices.front();
  }

  int in_cell(int position, int cell) const {
    return cells_.vertices[static_cast<std::size_t>(cell)][static_cast<std::size_t>(position)];
  }

 private:
  void append(const std::vector<int>& vertices, int cell, std::vector<int>& to) const {
    for (const int vertex : vertices) {
      to.push_back(cells_.in_hub(vertex)
                       ? vertex
                       : in_cell(cells_.position[static_cast<std::size_t>(vertex)], cell));
    }
  }

  const PackingProblem& whole_;
  const Cells& cells_;
};

/// The cell's tree in every cell, and one tree over cells for each way out.
std::optional<SpanningTree> joined(const Composer& composer, const CellPlan& plan,
                                   const CellTree& over_cells, int cells) {
  SpanningTree tree;
  for (int cell = 0; cell < cells; ++cell) {
    for (const PackedEdge& edge : plan.inside) tree.push_back(composer.inside(edge, cell));
  }
  const PackedEdge* before = nullptr;
  for (const PackedEdge& way : plan.out) {
    const PackedEdge back = Composer::turned(way);
    for (const auto& [parent, child] : over_cells.edges) {
      tree.push_back(composer.between(way, parent, back, child));
    }
    // Where the cell's ranks hang together over other cells alone.
    if (before != nullptr) {
      if (!Composer::meet(*before, back)) return std::nullopt;
      tree.push_back(
          composer.between(*before, over_cells.top, back, over_cells.edges.back().second));
    }
    before = &way;
  }
  return tree;
}

/// Trees for one cell, both ways, and what each carries.
struct CellPacking {
  CellProblem part;
  TreePacking packing;
  WholeWeights whole;
};

CellPacking pack_cell(const PackingProblem& problem, const Cells& cells) {
  CellPacking packed{cell_problem(problem, cells, kNeighbours), {}, {}};
  packed.packing = pack_spanning_trees(packed.part.problem);
  packed.whole =
      whole_weights(packed.part.problem, portions_of(packed.part.problem, packed.packing));
  return packed;
}

std::optional<Forest> compose_allreduce(const PackingProblem& problem, const Cells& cells) {
  const CellPacking packed = pack_cell(problem, cells);
  const Composer composer(problem, cells);
  std::vector<CellTree> turns = balanced_cell_trees(cells.count());
  if (cells.count() * kLittleLost > 1) turns.resize(2);
  Forest forest;
  forest.collective = Collective::allreduce;
  forest.units = packed.whole.units * static_cast<std::int64_t>(turns.size());
  // Two turns that complement each other stand side by side, for all of the cell's trees, so that
  // the first of all trees are a good plan of a few.
  for (std::size_t turn = 0; turn < turns.size(); turn += 2) {
    for (std::size_t i = 0; i < packed.packing.trees.size(); ++i) {
      const std::int64_t weight = packed.whole.weights[i];
      if (weight == 0) continue;
      const CellPlan plan =
          composer.hung_at_ways(composer.take_apart(packed.part, packed.packing.trees[i]));
      for (std::size_t of_two = turn; of_two < std::min(turn + 2, turns.size()); ++of_two) {
        const auto tree = joined(composer, plan, turns[of_two], cells.count());
        if (!tree) return std::nullopt;
        forest.trees.push_back(hung_at_centre(problem, *tree, weight));
      }
    }
  }
  return forest;
}

/// The tree of a rank: over its own cell, and from cell to cell, each from where it is entered.
PlannedTree tree_from(const PackingProblem& problem, const Composer& composer, const CellPlan& plan,
                      int root, const CellTree& over_cells) {
  PlannedTree tree;
  tree.root = composer.in_cell(root, over_cells.top);
  const auto add = [&](const PackedEdge& edge) {
    tree.edges.push_back({edge.from, edge.to, nodes_passed(problem, edge)});
  };
  for (const PackedEdge& edge : composer.hung_at(root, plan.inside)) {
    add(composer.inside(edge, over_cells.top));
  }
  for (const auto& [parent, child] : over_cells.edges) {
    add(composer.between(plan.out.front(), parent, plan.in.front(), child));
    for (const PackedEdge& edge : plan.inside) add(composer.inside(edge, child));
  }
  return tree;
}

/// A one-way plan of the cell and what it carries of what comes into the cell, in units.
struct WeighedPlan {
  CellPlan plan;
  std::int64_t weight = 0;
};

/// Whether data enters a cell once and leaves it once, from where it can enter another.
bool is_passed_once(const CellPlan& plan) {
  return plan.in.size() == 1 && plan.out.size() == 1 &&
         Composer::meet(plan.out.front(), plan.in.front());
}

/// Trees that were planned for both ways, taken one way: from where they come into the cell.
std::vector<WeighedPlan> halves_of_both_ways(const PackingProblem& problem, const Cells& cells) {
  const CellPacking packed = pack_cell(problem, cells);
  const Composer composer(problem, cells);
  std::vector<WeighedPlan> plans;
  for (std::size_t i = 0; i < packed.packing.trees.size(); ++i) {
    if (packed.whole.weights[i] == 0) continue;
    CellPlan plan =
        composer.hung_at_ways(composer.take_apart(packed.part, packed.packing.trees[i]));
    for (const PackedEdge& way : plan.out) plan.in.push_back(Composer::turned(way));
    plans.push_back({std::move(plan), packed.whole.weights[i]});
  }
  return plans;
}

/// The best for one way alone.
std::vector<WeighedPlan> one_way_plans(const PackingProblem& problem, const Cells& cells) {
  const CellProblem part = cell_problem(problem, cells, /*uses=*/1);
  const DemandPacking packing = pack_demands(part.problem, {{part.others, kEveryRank}});
  const WholeWeights whole =
      whole_weights(part.problem, portions_of(part.problem, packing.carriers));
  const Composer composer(problem, cells);
  std::vector<WeighedPlan> plans;
  for (std::size_t i = 0; i < packing.carriers.size(); ++i) {
    if (whole.weights[i] == 0) continue;
    plans.push_back({composer.take_apart(part, packing.carriers[i].edges), whole.weights[i]});
  }
  return plans;
}

/// A tree or a few of every rank. Of a cell's ranks together, as much takes each plan as it
/// carries, so that the cell's own blocks go out where those of others do, and if they can from
/// where they are.
std::optional<Forest> compose_blocks(Collective collective, const PackingProblem& problem,
                                     const Cells& cells, std::vector<WeighedPlan> plans) {
  std::int64_t units = 0;
  for (WeighedPlan& weighed : plans) {
    if (!is_passed_once(weighed.plan)) return std::nullopt;
    units += weighed.weight;
    weighed.weight *= cells.ranks;
  }
  std::ranges::stable_sort(plans, {},
                           [](const WeighedPlan& weighed) { return weighed.plan.in.front().to; });
  const Composer composer(problem, cells);
  Forest forest;
  forest.collective = collective;
  forest.units = units * problem.ranks;
  std::int64_t common = units;
  for (int cell = 0; cell < cells.count(); ++cell) {
    const CellTree over_cells = cell_tree_from(cell, cells.count());
    auto next = plans.begin();
    std::int64_t left = next->weight;
    for (int rank = 0; rank < cells.ranks; ++rank) {
      for (std::int64_t missing = units; missing > 0;) {
        if (left == 0) left = (++next)->weight;
        const std::int64_t taken = std::min(missing, left);
        missing -= taken;
        left -= taken;
        common = std::gcd(common, taken);
        forest.trees.push_back(tree_from(problem, composer, next->plan, rank, over_cells));
        forest.trees.back().weight = taken;
      }
    }
  }
  forest.units /= common;
  for (PlannedTree& tree : forest.trees) tree.weight /= common;
  return forest;
}

/// The better of both ways' trees and, where these are not good enough, trees for one way.
std::optional<Forest> plan_blocks(Collective collective, const Router& router,
                                  const Placement& placement) {
  std::optional<Forest> best;
  for (const EdgeUse use : {EdgeUse::both_ways, EdgeUse::one_way}) {
    const PackingProblem problem = packing_problem(router, placement, use);
    const std::optional<Cells> cells = find_cells(problem, router.topology());
    if (!cells) return std::nullopt;
    auto plans = use == EdgeUse::both_ways ? halves_of_both_ways(problem, *cells)
                                           : one_way_plans(problem, *cells);
    auto forest = compose_blocks(collective, problem, *cells, std::move(plans));
    if (!forest) continue;
    set_to_fullest_link(*forest, router, placement);
    if (!best || forest->algbw_gbps > best->algbw_gbps) best = std::move(forest);
    if (is_good_by_cells(*best, router, placement) || is_time_up()) break;
  }
  return best;
}

std::optional<Forest> plan_allreduce(const Router& router, const Placement& placement) {
  const PackingProblem problem = packing_problem(router, placement, EdgeUse::both_ways);
  const std::optional<Cells> cells = find_cells(problem, router.topology());
  if (!cells) return std::nullopt;
  auto forest = compose_allreduce(problem, *cells);
  if (forest) set_to_fullest_link(*forest, router, placement);
  return forest;
}

}  // namespace

std::optional<Forest> plan_by_cells(Collective collective, const Router& router,
                                    const Placement& placement) {
  const Activity activity("planning one of alike nodes");
  auto forest = collective == Collective::allreduce ? plan_allreduce(router, placement)
                                                    : plan_blocks(collective, router, placement);
  return forest && keeps_peer_limits(*forest, router, placement) ? std::move(forest) : std::nullopt;
}

bool is_good_by_cells(const Forest& forest, const Router& router, const Placement& placement) {
  const Bound bound = bandwidth_bound(forest.collective, 0, router, placement,
                                      {.helpers = false, .in_switches = false});
  const auto ranks = static_cast<int>(placement.ranks.size());
  const double good = ranks <= kMaxRanksWithoutCells ? kExactByCells
                      : ranks <= kMaxSearchedRanks   ? kGoodByCells
                                                     : kEnoughByCells;
  return forest.algbw_gbps >= good * bound.algbw_gbps;
}

}  // namespace espalier

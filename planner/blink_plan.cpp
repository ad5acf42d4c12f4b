// SPDX-License-Identifier: Apache-2.0
#include "planner/blink_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "core/check.h"
#include "planner/blink/blink_trees.h"
#include "planner/graph/exact.h"
#include "planner/graph/link_resources.h"
#include "planner/inside_hosts.h"
#include "planner/packing/fullest_link.h"
#include "planner/packing/packing_master.h"

namespace espalier {
namespace {

/// What a tree loses of its value per edge of height, so that of equally good shares those of low
/// trees are found: far below what any change of the rate could win.
constexpr double kCostPerLevel = 1e-6;
/// A tree carries at most one part in this many of a block; one with a larger share comes several
/// times. Trees that share a link get equal parts of it, whatever they carry.
constexpr std::int64_t kEqualParts = 64;
/// Capacities are counted in this part of the narrowest link's: exact for the ratios of links that
/// machines have, and independent of how fast they are.
constexpr std::int64_t kGrains = 720;
/// Units that a block is divided into at most where the exact shares would take more.
constexpr std::int64_t kMaxBlinkUnits = 5040;

/// A tree that may carry a share of one demand: of a rank's block, or of the whole message.
struct Candidate {
  int demand = 0;
  int root = 0;
  TreeEdges edges;
};

int height(const TreeEdges& edges) {
  std::map<int, int> depth;  // parents come first
  int height = 0;
  for (const auto& [parent, child] : edges) {
    depth[child] = depth[parent] + 1;
    height = std::max(height, depth[child]);
  }
  return height;
}

bool is_reduction(Collective collective) {
  return collective == Collective::reduce || collective == Collective::reducescatter;
}

std::vector<Candidate> candidates(Collective collective, int root, int ranks,
                                  const BlinkTrees& trees) {
  std::vector<Candidate> found;
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce:
      for (TreeEdges& edges : trees.from(root)) found.push_back({0, root, std::move(edges)});
      break;
    case Collective::allgather:
    case Collective::reducescatter:
      for (int rank = 0; rank < ranks; ++rank) {
        for (TreeEdges& edges : trees.from(rank)) found.push_back({rank, rank, std::move(edges)});
      }
      break;
    case Collective::gather:
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == root) continue;
        const int demand = rank < root ? rank : rank - 1;
        for (TreeEdges& edges : trees.paths(root, rank)) {
          found.push_back({demand, root, std::move(edges)});
        }
      }
      break;
    case Collective::allreduce: {
      // Up and down a tree load the same links wherever its root is: the lowest one will do.
      std::map<std::set<std::pair<int, int>>, Candidate> by_links;
      for (int rank = 0; rank < ranks; ++rank) {
        for (TreeEdges& edges : trees.from(rank)) {
          std::set<std::pair<int, int>> links;
          for (const auto& [a, b] : edges) links.emplace(std::min(a, b), std::max(a, b));
          const auto [known, is_new] = by_links.try_emplace(links, Candidate{0, rank, edges});
          if (!is_new && height(edges) < height(known->second.edges)) {
            known->second = {0, rank, std::move(edges)};
          }
        }
      }
      for (auto& [links, candidate] : by_links) found.push_back(std::move(candidate));
      break;
    }
    default:
      CHECK(false);
  }
  return found;
}

/// Times that a tree crosses each resource, per byte of its demand.
class BlinkLoads {
 public:
  BlinkLoads(Collective collective, const Router& router, const Placement& placement)
      : down_(!is_reduction(collective) && collective != Collective::gather),
        up_(!down_ || collective == Collective::allreduce),
        router_(router),
        placement_(placement),
        resources_(router) {}

  std::map<int, std::int64_t> of(const TreeEdges& edges) {
    std::map<int, std::int64_t> loads;
    const auto add = [&](int from, int to) {
      for (const int resource : resources_.of(*route(from, to))) ++loads[resource];
    };
    for (const auto& [parent, child] : edges) {
      if (down_) add(parent, child);
      if (up_) add(child, parent);
    }
    return loads;
  }

  const LinkResources& resources() const { return resources_; }

 private:
  const Route* route(int from, int to) const {
    return router_.route(placement_.ranks[static_cast<std::size_t>(from)],
                         placement_.ranks[static_cast<std::size_t>(to)]);
  }

  const bool down_;
  const bool up_;
  const Router& router_;
  const Placement& placement_;
  LinkResources resources_;
};

/// Capacity in grains, rounded down: the plan is right and, where links are not multiples of each
/// other, loses up to a kGrains-th.
std::int64_t grains(std::int64_t bytes_per_s, std::int64_t narrowest) {
  constexpr double kRounding = 1e-6;  // of bandwidths to whole bytes per second
  const double ratio = static_cast<double>(bytes_per_s) / static_cast<double>(narrowest);
  return static_cast<std::int64_t>(ratio * kGrains * (1 + kRounding));
}

/// Bandwidths, in bytes per second: what each demand gets at once, and each candidate's part.
struct Shares {
  Rational rate;
  std::vector<Rational> by_candidate;
};

/// Maximises the rate, which every demand's candidates together must have, within the capacities.
/// Rows: the demands (rate - sum of shares <= 0), then the resources. Column 0 is the rate.
Shares best_shares(const std::vector<Candidate>& candidates, int demands, BlinkLoads loads) {
  std::vector<std::map<int, std::int64_t>> crossed;
  for (const Candidate& candidate : candidates) crossed.push_back(loads.of(candidate.edges));
  const LinkResources& resources = loads.resources();
  std::int64_t narrowest = resources.bytes_per_s(0);
  for (int r = 1; r < resources.count(); ++r) {
    narrowest = std::min(narrowest, resources.bytes_per_s(r));
  }
  std::vector<std::int64_t> limits(static_cast<std::size_t>(demands), 0);
  for (int r = 0; r < resources.count(); ++r) {
    limits.push_back(grains(resources.bytes_per_s(r), narrowest));
  }

  std::vector<std::vector<std::int64_t>> columns;
  std::vector<std::int64_t>& rate = columns.emplace_back(limits.size(), 0);
  std::fill_n(rate.begin(), demands, 1);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    std::vector<std::int64_t>& column = columns.emplace_back(limits.size(), 0);
    column[static_cast<std::size_t>(candidates[i].demand)] = -1;
    for (const auto& [r, times] : crossed[i]) column[static_cast<std::size_t>(demands + r)] = times;
  }
  PackingMaster master(limits);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    master.add(columns[i]);
    if (i > 0) {
      master.set_value(static_cast<int>(i), -kCostPerLevel * height(candidates[i - 1].edges));
    }
  }
  CHECK(master.solve());

  const std::vector<int> basic = master.basic_columns();
  const std::vector<int> full = master.full_resources();
  Matrix matrix;
  std::vector<std::int64_t> right;
  for (const int row : full) {
    std::vector<std::int64_t>& entries = matrix.emplace_back();
    for (const int column : basic) {
      entries.push_back(columns[static_cast<std::size_t>(column)][static_cast<std::size_t>(row)]);
    }
    right.push_back(limits[static_cast<std::size_t>(row)]);
  }
  // The solver's own figures where its basis is off: what they overload, the rate pays for.
  const std::vector<double> rough = master.weights();
  const auto solution = is_soluble(matrix) ? solve_exactly(matrix, right) : std::nullopt;
  Shares shares{0, std::vector<Rational>(candidates.size())};
  for (std::size_t i = 0; i < basic.size(); ++i) {
    const auto column = static_cast<std::size_t>(basic[i]);
    const Rational solved = solution ? (*solution)[i] : Rational(rough[column]);
    const Rational value = solved * narrowest / kGrains;
    (column == 0 ? shares.rate : shares.by_candidate[column - 1]) = value;
  }
  CHECK(shares.rate > 0);
  return shares;
}

/// Whole units for every demand's candidates, `units` in all: exact where the shares allow it, else
/// the nearest (largest remainders first).
std::vector<std::int64_t> whole_units(const std::vector<Candidate>& candidates, int demands,
                                      const Shares& shares, std::int64_t units) {
  std::vector<std::int64_t> weights(candidates.size(), 0);
  std::vector<std::vector<std::pair<Rational, std::size_t>>> remainders(
      static_cast<std::size_t>(demands));
  std::vector<std::int64_t> left(static_cast<std::size_t>(demands), units);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (shares.by_candidate[i] <= 0) continue;
    const Rational exact = shares.by_candidate[i] / shares.rate * units;
    weights[i] = static_cast<std::int64_t>(Integer(numerator(exact) / denominator(exact)));
    const auto demand = static_cast<std::size_t>(candidates[i].demand);
    weights[i] = std::min(weights[i], left[demand]);  // shares may add up to more than the rate
    left[demand] -= weights[i];
    remainders[demand].emplace_back(weights[i] - exact, i);
  }
  for (std::size_t demand = 0; demand < left.size(); ++demand) {
    std::sort(remainders[demand].begin(), remainders[demand].end());
    for (std::size_t i = 0; left[demand] > 0; i = (i + 1) % remainders[demand].size()) {
      ++weights[remainders[demand][i].second];
      --left[demand];
    }
  }
  return weights;
}

/// The least common denominator of the shares of a block, unless it is too large.
std::int64_t units_per_block(const Shares& shares) {
  Integer units = 1;
  for (const Rational& share : shares.by_candidate) {
    units = lcm(units, denominator(Rational(share / shares.rate)));
    if (units > kMaxBlinkUnits) return kMaxBlinkUnits;
  }
  return static_cast<std::int64_t>(units);
}

/// Hangs the tree up at another rank.
TreeEdges rerooted(const TreeEdges& edges, int root) {
  TreeEdges turned;
  std::vector<int> reached = {root};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const auto& [a, b] : edges) {
      if (a != reached[i] && b != reached[i]) continue;
      const int other = a == reached[i] ? b : a;
      if (std::find(reached.begin(), reached.end(), other) != reached.end()) continue;
      turned.emplace_back(reached[i], other);
      reached.push_back(other);
    }
  }
  return turned;
}

/// Where a tree crosses between the groups exactly once, its two ends there exchange results.
int exchange_at_crossing(const BlinkTrees& trees, Candidate& tree) {
  std::vector<std::pair<int, int>> crossings;
  for (const auto& [a, b] : tree.edges) {
    if (!trees.same_group(a, b)) crossings.emplace_back(a, b);
  }
  if (crossings.size() != 1) return -1;
  tree.root = std::min(crossings[0].first, crossings[0].second);
  tree.edges = rerooted(tree.edges, tree.root);
  return std::max(crossings[0].first, crossings[0].second);
}

/// Trees, their weights in units of a block, and the rate at which a block moves, if it is known.
struct Plan {
  std::vector<Candidate> trees;
  std::vector<std::int64_t> weights;
  std::int64_t block = 1;
  Rational rate = 0;
};

Plan best_plan(Collective collective, int root, const Router& router, const Placement& placement,
               const BlinkTrees& trees) {
  Plan plan;
  plan.trees = candidates(collective, root, static_cast<int>(placement.ranks.size()), trees);
  const int demands = plan.trees.back().demand + 1;
  const Shares shares = best_shares(plan.trees, demands, BlinkLoads(collective, router, placement));
  plan.block = units_per_block(shares);
  plan.weights = whole_units(plan.trees, demands, shares, plan.block);
  plan.rate = shares.rate;
  return plan;
}

Plan printed_plan(Collective collective, int root, const BlinkTrees& trees) {
  Plan plan;
  for (TreeEdges& edges : collective == Collective::allreduce ? trees.printed_allreduce()
                                                              : trees.printed_broadcast(root)) {
    const int top = edges.front().first;
    plan.trees.push_back({0, top, std::move(edges)});
  }
  plan.weights.assign(plan.trees.size(), 1);
  plan.block = static_cast<std::int64_t>(plan.trees.size());
  return plan;
}

}  // namespace

std::string no_blink_plan(Collective collective, const Router& router, const Placement& placement,
                          BlinkShares shares) {
  const BlinkGroups found = find_blink_groups(router, placement);
  if (!found.why_not.empty())
    return "blink needs one or two groups of fully connected GPUs: " + found.why_not;
  if (shares == BlinkShares::best || collective == Collective::allreduce) return {};
  if (collective != Collective::broadcast) {
    return "the paper prints protocols for broadcast and allreduce only";
  }
  return found.groups.size() == 1 ? "" : "the paper prints a broadcast within one group only";
}

Forest plan_blink(Collective collective, int root, const Router& router, const Placement& placement,
                  BlinkShares shares) {
  CHECK(no_blink_plan(collective, router, placement, shares).empty());
  const int n = static_cast<int>(placement.ranks.size());
  const BlinkTrees trees(router, placement, find_blink_groups(router, placement));
  Plan plan = shares == BlinkShares::best ? best_plan(collective, root, router, placement, trees)
                                          : printed_plan(collective, root, trees);
  const int blocks = info(collective).blocked ? n : 1;
  const Rational algbw = plan.rate * blocks;
  Forest forest{collective, plan.block * blocks, {}, rounded_gbps(algbw), exact_gbps(algbw)};
  for (std::size_t i = 0; i < plan.trees.size(); ++i) {
    if (plan.weights[i] == 0) continue;
    const int partner =
        collective == Collective::allreduce ? exchange_at_crossing(trees, plan.trees[i]) : -1;
    PlannedTree tree{plan.trees[i].root, 0, {}, partner};
    for (const auto& [parent, child] : plan.trees[i].edges) {
      tree.edges.push_back({parent, child,
                            nodes_between(router, placement.ranks[static_cast<std::size_t>(parent)],
                                          placement.ranks[static_cast<std::size_t>(child)])});
    }
    const std::int64_t maximum = (plan.block + kEqualParts - 1) / kEqualParts;
    for (std::int64_t left = plan.weights[i]; left > 0; left -= tree.weight) {
      tree.weight = std::min(left, maximum);
      forest.trees.push_back(tree);
    }
  }
  // Whole units are shares rounded, and the router may take pairs of GPUs over the same link.
  if (n > 1) set_to_fullest_link(forest, router, placement);
  return forest;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/graph/work_budget.h"
#include "planner/packing/packing_master.h"
#include "planner/packing/packing_problem.h"

// Column generation (Gilmore and Gomory, Operations Research 9(6), 1961), by which trees
// (spanning_trees.h) and paths or trees for demands (demand_packing.h) are packed. Private to the
// room.
//
// What is maximised is the rate: a linear program, the master, weighs columns (trees or paths) so
// that no resource is loaded beyond its capacity. There are far too many columns to write down, so
// the master holds a few and the pricing problem finds others. The master's dual prices say what a
// use of each resource costs at present. A column that costs less than what columns in use pay
// would improve the packing; cheapest trees and paths are easy to find, so the question is answered
// for all columns at once.
//
// The same prices prove a limit, however the search goes on: every byte costs at least what the
// cheapest column does, and all resources together can be paid sum of capacity * price in a second.
// The search ends when nothing cheaper is found, when the rate has come as near as wanted to the
// limit, after many rounds, or when its work is spent. In the last case the columns found so far
// are a packing and the best prices so far a proof; the two need not meet.

namespace espalier {

/// What pricing found: columns that the master did not have, and, in one unit, what the columns in
/// use attain and what the prices say is the limit.
struct PricedColumns {
  bool any_new = false;
  double rate = 0;
  double limit = 0;
};

/// When to stop.
struct GenerationEnds {
  double missing = 0;  ///< of the limit: the part that is left where it is
  int rounds = 0;      ///< at most
};

/// The same on a machine of many links: the last thousandth is left where it is, since it takes
/// most of the time.
constexpr GenerationEnds on_many_links(GenerationEnds ends) {
  ends.missing = 1e-3;
  return ends;
}

/// What is left of the work of a search when the columns that it makes without a linear program
/// have taken all they may: a quarter.
constexpr std::int64_t kept_from_balanced(std::int64_t max_work) { return max_work - max_work / 4; }

/// Solves the master and calls `price`, which adds columns at the present prices and returns
/// PricedColumns, in turn. False when the rounds or the work were not enough, or the solver gave
/// up.
template <typename Price>
bool generate_columns(PackingMaster& master, const GenerationEnds& ends, WorkBudget& budget,
                      Price price) {
  for (int round = 0; round < ends.rounds && !budget.is_spent(); ++round) {
    if (!master.solve(budget)) return false;
    const PricedColumns priced = price();
    if (!priced.any_new || priced.rate >= priced.limit * (1 - ends.missing)) return true;
  }
  return false;
}

/// Remembers the prices of uses that prove the tightest limit.
class BestPrices {
 public:
  /// `limit`: what the prices prove, in the problem's unit.
  void offer(const std::vector<double>& prices, double limit);
  /// 0: nothing was offered.
  double limit() const { return limit_; }
  /// In whole numbers, the largest about a million: neighbours in floating point become equal, and
  /// the proof is one that can be read. Any prices are a proof.
  /// \pre something was offered
  std::vector<Rational> rounded() const;
  /// As they were offered.
  std::vector<Rational> raw() const { return {prices_.begin(), prices_.end()}; }

 private:
  std::vector<double> prices_;
  double limit_ = 0;
};

/// A sentence about a plan whose search was not complete: why, and by how much a better one may
/// surpass it. Empty where the limit is attained all the same. `limit` 0: nothing is proved.
std::string note_on_ended_search(const Rational& rate, const Rational& limit);

/// The same, or where there are too many ranks for a search (see alike_nodes.h), that there was
/// none.
std::string note_on_any_search(int ranks, const Rational& rate, const Rational& limit);

/// Sum of capacity * price: what all resources together can be paid in a second.
double paid_to_all(const PackingProblem& problem, const std::vector<double>& prices);

}  // namespace espalier

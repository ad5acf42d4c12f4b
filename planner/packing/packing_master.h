// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "planner/graph/work_budget.h"

// The linear program of tree packing, solved by COIN-OR CLP. Private to the room.

namespace espalier {

/// Maximise sum of (value * weight) with sum of (load * weight) <= capacity for every resource.
/// Columns are added as they are found; solutions are floating point, the basis is what counts.
class PackingMaster {
 public:
  explicit PackingMaster(const std::vector<std::int64_t>& capacities);
  ~PackingMaster();

  /// `loads`: by resource.
  void add(const std::vector<std::int64_t>& loads);
  void add(const std::map<int, std::int64_t>& loads);
  int columns() const { return static_cast<int>(values_.size()); }
  /// What a column is worth; 1 at first.
  void set_value(int column, double value);

  /// Solves from the last basis. False when CLP gives up or the work is spent: prices and weights
  /// are then those of the last step, not the best.
  bool solve(WorkBudget& budget);
  bool solve();  ///< however long it takes, even if the time is up (see TimeLimit)
  // Before the first `solve`, prices and weights are 0 and the basis is empty.

  /// Dual prices by resource, not below 0.
  std::vector<double> prices() const;
  /// Weights by column, not below 0.
  std::vector<double> weights() const;
  /// Columns with a weight in the basis, and as many resources that they use up.
  std::vector<int> basic_columns() const;
  std::vector<int> full_resources() const;

 private:
  bool run(std::int64_t max_steps);

  struct Solver;
  std::unique_ptr<Solver> solver_;
  std::vector<double> values_;
  std::int64_t elements_ = 0;  ///< of all columns
  bool has_solution_ = false;
};

}  // namespace espalier

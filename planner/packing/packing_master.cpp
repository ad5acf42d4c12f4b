// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/packing_master.h"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/time_limit.h"

namespace espalier {

namespace {

/// Stops the solver when the time is up: a single solution can take much longer than all that is
/// looked at between two of them.
class EndOfTime : public ClpEventHandler {
 public:
  explicit EndOfTime(const bool& is_limited) : is_limited_(is_limited) {}
  int event(Event event) override {
    constexpr int kGoOn = -1;
    constexpr int kStop = 0;
    return is_limited_ && event == endOfIteration && is_time_up() ? kStop : kGoOn;
  }
  ClpEventHandler* clone() const override { return new EndOfTime(*this); }

 private:
  const bool& is_limited_;
};

}  // namespace

struct PackingMaster::Solver {
  ClpSimplex simplex;
  bool is_limited = false;  ///< by the time that searches have
};

PackingMaster::PackingMaster(const std::vector<std::int64_t>& capacities)
    : solver_(std::make_unique<Solver>()) {
  ClpSimplex& simplex = solver_->simplex;
  simplex.setLogLevel(0);
  const EndOfTime end_of_time(solver_->is_limited);
  simplex.passInEventHandler(&end_of_time);  // which copies it
  simplex.setOptimizationDirection(-1);
  simplex.setDualTolerance(1e-9);
  simplex.setPrimalTolerance(1e-9);
  simplex.resize(static_cast<int>(capacities.size()), 0);
  for (std::size_t row = 0; row < capacities.size(); ++row) {
    simplex.setRowBounds(static_cast<int>(row), -COIN_DBL_MAX,
                         static_cast<double>(capacities[row]));
  }
}

PackingMaster::~PackingMaster() = default;

void PackingMaster::add(const std::vector<std::int64_t>& loads) {
  std::map<int, std::int64_t> some;
  for (std::size_t row = 0; row < loads.size(); ++row) {
    if (loads[row] != 0) some.emplace(static_cast<int>(row), loads[row]);
  }
  add(some);
}

void PackingMaster::add(const std::map<int, std::int64_t>& loads) {
  std::vector<int> rows;
  std::vector<double> elements;
  for (const auto& [row, load] : loads) {
    rows.push_back(row);
    elements.push_back(static_cast<double>(load));
  }
  solver_->simplex.addColumn(static_cast<int>(rows.size()), rows.data(), elements.data(), 0,
                             COIN_DBL_MAX, 1);
  values_.push_back(1);
  elements_ += static_cast<std::int64_t>(rows.size());
}

void PackingMaster::set_value(int column, double value) {
  values_[static_cast<std::size_t>(column)] = value;
  solver_->simplex.setObjectiveCoefficient(column, value);
}

bool PackingMaster::solve(WorkBudget& budget) {
  // A step of the simplex method looks at rows and at part of the columns.
  const std::int64_t step = solver_->simplex.numberRows() + elements_ / 4 + 1;
  solver_->is_limited = true;
  const bool solved = run(std::max<std::int64_t>(budget.left() / step, 1));
  budget.spend(solver_->simplex.numberIterations() * step);
  return solved;
}

bool PackingMaster::solve() {
  solver_->is_limited = false;
  return run(std::numeric_limits<int>::max());
}

bool PackingMaster::run(std::int64_t max_steps) {
  ClpSimplex& simplex = solver_->simplex;
  simplex.setNumberIterations(0);
  simplex.setMaximumIterations(
      static_cast<int>(std::min<std::int64_t>(max_steps, std::numeric_limits<int>::max())));
  has_solution_ = true;
  // Columns were added to a basis that stays feasible: primal simplex, keeping the factorization.
  return simplex.primal(0, 1 + 2) == 0 && simplex.isProvenOptimal();
}

std::vector<double> PackingMaster::prices() const {
  if (!has_solution_) {
    return std::vector<double>(static_cast<std::size_t>(solver_->simplex.numberRows()), 0);
  }
  const double* duals = solver_->simplex.dualRowSolution();
  std::vector<double> prices(duals, duals + solver_->simplex.numberRows());
  for (double& price : prices) price = std::max(price, 0.0);
  return prices;
}

std::vector<double> PackingMaster::weights() const {
  if (!has_solution_) return std::vector<double>(values_.size(), 0);
  const double* solution = solver_->simplex.primalColumnSolution();
  std::vector<double> weights(solution, solution + columns());
  for (double& weight : weights) weight = std::max(weight, 0.0);
  return weights;
}

std::vector<int> PackingMaster::basic_columns() const {
  std::vector<int> basic;
  for (int column = 0; has_solution_ && column < columns(); ++column) {
    if (solver_->simplex.getColumnStatus(column) == ClpSimplex::basic) basic.push_back(column);
  }
  return basic;
}

std::vector<int> PackingMaster::full_resources() const {
  std::vector<int> full;
  for (int row = 0; has_solution_ && row < solver_->simplex.numberRows(); ++row) {
    if (solver_->simplex.getRowStatus(row) != ClpSimplex::basic) full.push_back(row);
  }
  return full;
}

}  // namespace espalier

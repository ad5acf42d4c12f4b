// SPDX-License-Identifier: Apache-2.0
#include "planner/packing/column_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "planner/alike_nodes.h"

namespace espalier {

void BestPrices::offer(const std::vector<double>& prices, double limit) {
  if (!prices_.empty() && limit >= limit_) return;
  prices_ = prices;
  limit_ = limit;
}

std::vector<Rational> BestPrices::rounded() const {
  constexpr double kGrains = 1 << 20;
  const double maximum = *std::max_element(prices_.begin(), prices_.end());
  std::vector<std::int64_t> whole;
  std::int64_t common = 0;
  for (const double price : prices_) {
    whole.push_back(std::llround(price / maximum * kGrains));
    common = std::gcd(common, whole.back());
  }
  std::vector<Rational> rounded;
  for (const std::int64_t price : whole) rounded.emplace_back(price / common);
  return rounded;
}

std::string note_on_ended_search(const Rational& rate, const Rational& limit) {
  const std::string stopped = fmt::format("the search stopped when {}", why_search_stopped());
  if (limit == 0) return stopped + ": a faster plan may exist";
  const double more = Rational(limit / rate - 1).convert_to<double>();
  if (more <= 0) return "";
  const std::string percent =
      more < 0.1 ? fmt::format("{:.2g} %", 100 * more) : fmt::format("{:.0f} %", 100 * more);
  return fmt::format("{}: a plan up to {} faster may exist", stopped, percent);
}

std::string note_on_any_search(int ranks, const Rational& rate, const Rational& limit) {
  if (ranks <= kMaxSearchedRanks) return note_on_ended_search(rate, limit);
  return fmt::format(
      "above {} ranks trees are searched for only where all nodes are alike: these need no search, "
      "and "
      "a faster plan may exist",
      kMaxSearchedRanks);
}

double paid_to_all(const PackingProblem& problem, const std::vector<double>& prices) {
  double paid = 0;
  for (std::size_t r = 0; r < prices.size(); ++r) {
    paid += static_cast<double>(problem.resources[r].capacity) * prices[r];
  }
  return paid;
}

}  // namespace espalier

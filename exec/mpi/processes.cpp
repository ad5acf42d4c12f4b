// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/processes.h"

#include <algorithm>

namespace espalier {

bool is_crowded(const std::vector<std::vector<int>>& allowed, std::size_t mine) {
  double load = 0;
  for (const std::vector<int>& other : allowed) {
    const auto shared = std::ranges::count_if(other, [&](int processor) {
      return std::ranges::find(allowed[mine], processor) != allowed[mine].end();
    });
    if (!other.empty()) load += static_cast<double>(shared) / static_cast<double>(other.size());
  }
  constexpr double kRounding = 1e-9;
  return load > static_cast<double>(allowed[mine].size()) + kRounding;
}

}  // namespace espalier

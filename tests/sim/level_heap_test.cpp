// SPDX-License-Identifier: Apache-2.0
// The order in which rates are filled, against sorting.
#include "sim/level_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace espalier {
namespace {

using Pair = std::pair<double, ResourceId>;

/// All that is left, from the lowest on.
std::vector<Pair> drained(LevelHeap heap) {
  std::vector<Pair> order;
  while (!heap.empty()) {
    order.emplace_back(heap.lowest().rate, heap.lowest().resource);
    heap.remove_lowest();
  }
  return order;
}

/// Rates are few, so that resources with equal ones are among them.
TEST(LevelHeap, GivesLevelsInOrderOfRateAndResource) {
  const unsigned seed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (ResourceId size = 0; size < 70; ++size) {
    LevelHeap heap;
    std::vector<Pair> expected;
    for (ResourceId resource = 0; resource < size; ++resource) {
      const double rate = std::uniform_int_distribution(0, 9)(random) / 4.0;
      expected.emplace_back(rate, resource);
    }
    std::ranges::shuffle(expected, random);
    for (const auto& [rate, resource] : expected) heap.add({rate, resource});
    heap.order();
    std::ranges::sort(expected);
    EXPECT_EQ(drained(heap), expected) << size << " levels";
    if (size == 0) continue;
    expected.front().first += 1;
    heap.raise_lowest(expected.front().first);
    std::ranges::sort(expected);
    EXPECT_EQ(drained(heap), expected) << size << " levels, one of them raised";
  }
}

}  // namespace
}  // namespace espalier

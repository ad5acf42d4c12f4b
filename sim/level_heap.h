// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/flow_engine.h"
#include "sim/order_key.h"

namespace espalier {

/// What a resource allows each flow without a rate.
struct Level {
  double rate = 0;  ///< not negative
  ResourceId resource = 0;

  friend bool operator<(const Level& a, const Level& b) {
    return order_key(a.rate, a.resource) < order_key(b.rate, b.resource);
  }
};

/// The lowest level; of equal ones, that of the first resource. A binary heap without branches on
/// what is compared: filling rates spends most of its time here.
class LevelHeap {
 public:
  void clear() { levels_.clear(); }
  bool empty() const { return levels_.empty(); }
  /// Before `order`.
  void add(const Level& level) { levels_.push_back(level); }
  /// Makes a heap of what was added.
  void order() {
    for (std::size_t at = levels_.size() / 2; at > 0; --at) sink(at - 1);
  }
  /// \pre not empty
  const Level& lowest() const { return levels_.front(); }
  void remove_lowest() {
    levels_.front() = levels_.back();
    levels_.pop_back();
    if (!levels_.empty()) sink(0);
  }
  /// Of the lowest one. \pre it does not get lower
  void raise_lowest(double rate) {
    levels_.front().rate = rate;
    sink(0);
  }

 private:
  void sink(std::size_t at) {
    const std::span<Level> levels = levels_;
    const Level level = levels[at];
    std::size_t child = 2 * at + 1;
    while (child < levels.size()) {
      const std::size_t other = child + static_cast<std::size_t>(child + 1 < levels.size());
      child += static_cast<std::size_t>(levels[other] < levels[child]);
      if (!(levels[child] < level)) break;
      levels[at] = levels[child];
      at = child;
      child = 2 * at + 1;
    }
    levels[at] = level;
  }

  std::vector<Level> levels_;
};

}  // namespace espalier

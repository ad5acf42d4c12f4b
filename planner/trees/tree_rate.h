// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "planner/graph/capacity_graph.h"

namespace espalier {

/// Thrown where the time is up (see TimeLimit) or the work spent (see WorkBudget) before it is
/// known which trees there are: there is no part of an answer.
class OutOfBudget : public std::exception {
 public:
  const char* what() const noexcept override { return "the budget for trees is spent"; }
};
/// Throws it if the time is up.
void require_time();

/// `supply[r]` trees are rooted at rank r; every rank must be reached by all of them. Broadcast:
/// one root supplies. Allgather: all do, equally. Private to this room.
using Supply = std::vector<std::int64_t>;

/// The minimum, over all vertex sets that contain a root and not every rank, of capacity leaving /
/// supply inside: the maximum rate of each unit of supply (Edmonds). A fraction in lowest terms, in
/// capacity units. `inside`: the set, by vertex.
struct TreeRate {
  std::int64_t capacity = 0;
  std::int64_t supply = 1;
  std::vector<bool> inside;
};

/// Exact; of capacity 0 where nothing joins some ranks. Throws OutOfBudget. \pre two ranks or more.
TreeRate best_rate(const CapacityGraph& graph, const Supply& supply);

/// Throws Error{unsupported} naming a pair of ranks that `rate.inside` separates, when its capacity
/// is 0.
void require_connected(const TreeRate& rate, const CapacityGraph& graph, const Supply& supply,
                       const Router& router);

/// Trees of equal bandwidth, `capacity / trees` capacity units each, and how many every arc holds.
struct TreeGrid {
  std::int64_t capacity = 0;
  std::int64_t trees = 1;
  std::vector<std::int64_t> arc_trees;  ///< by arc, rounded down
};

/// The grid with k trees for every unit of supply on which nothing is lost to rounding, or nothing
/// when k does not allow it. `rate` is best_rate of the same graph and supply. Throws OutOfBudget.
std::optional<TreeGrid> lossless_grid(const CapacityGraph& graph, const Supply& supply,
                                      const TreeRate& rate, std::int64_t k);

/// The widest trees of which every rank can be reached by k for every unit of supply, found by
/// bisection and made exact: some arc is full. Throws OutOfBudget.
TreeGrid widest_grid(const CapacityGraph& graph, const Supply& supply, const TreeRate& rate,
                     std::int64_t k);

/// Whether every rank has a flow as large as the whole supply. Throws OutOfBudget.
bool reaches_all(const CapacityGraph& graph, const std::vector<std::int64_t>& arc_trees,
                 const Supply& supply);

}  // namespace espalier

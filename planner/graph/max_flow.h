// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace espalier {

/// Maximum flows between many pairs of vertices of one small directed graph with integer
/// capacities (augmenting paths that are shortest, after Ahuja and Orlin, on arrays). Private to
/// this room.
///
/// Not Boost's push-relabel: packing trees asks for thousands of flows and spends its time in them.
/// One through 207 vertices and 1627 arcs, as met on two MI250 machines, takes 36-60 us here and
/// 84-109 us there (one core of a shared machine, several runs), before copying the graph into
/// Boost's.
class MaxFlow {
 public:
  using Units = std::int64_t;
  static constexpr Units kUnlimited = std::numeric_limits<Units>::max() / 4;

  explicit MaxFlow(int vertices = 0) { clear(vertices); }

  /// Forgets every arc; keeps the memory.
  void clear(int vertices);
  int vertices() const { return static_cast<int>(first_.size()); }
  /// Returns the arc's number, 0, 1, ... \pre capacity >= 0
  int add(int from, int to, Units capacity);
  void set_capacity(int arc, Units capacity) {
    capacity_[2 * static_cast<std::size_t>(arc)] = capacity;
  }

  /// The largest flow, but no more than `limit`. Every call starts from empty arcs.
  Units run(int source, int sink, Units limit = kUnlimited);
  /// Arcs looked at since this was asked last.
  std::int64_t take_looks() { return std::exchange(looks_, 0); }
  /// After a run that stayed below its limit: the vertices that can still be reached from the
  /// source. The arcs that leave them are a minimum cut.
  bool on_source_side(int vertex) const { return is_reached_[static_cast<std::size_t>(vertex)]; }

 private:
  void find_distances(int sink);
  Units push(int vertex, int sink, Units maximum);
  void find_source_side(int source);

  // Arc a and its reverse a ^ 1 stand side by side; arcs of a vertex form a list.
  std::vector<int> to_, next_;
  std::vector<Units> capacity_, left_;
  // By vertex.
  std::vector<int> first_, current_, distance_;
  std::vector<bool> is_reached_;
  std::vector<int> at_distance_;  ///< how many vertices
  bool is_cut_off_ = false;
  std::int64_t looks_ = 0;
  std::vector<int> queue_;
};

}  // namespace espalier

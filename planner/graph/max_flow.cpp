// SPDX-License-Identifier: Apache-2.0
#include "planner/graph/max_flow.h"

#include <algorithm>

namespace espalier {

void MaxFlow::clear(int vertices) {
  first_.assign(static_cast<std::size_t>(vertices), -1);
  to_.clear();
  next_.clear();
  capacity_.clear();
}

int MaxFlow::add(int from, int to, Units capacity) {
  const int arc = static_cast<int>(to_.size());
  const auto link = [&](int tail, int head, Units units) {
    int& first = first_[static_cast<std::size_t>(tail)];
    to_.push_back(head);
    next_.push_back(first);
    capacity_.push_back(units);
    first = static_cast<int>(to_.size()) - 1;
  };
  link(from, to, capacity);
  link(to, from, 0);
  return arc / 2;
}

/// Steps to the sink over arcs with room left; `vertices()` where none lead.
void MaxFlow::find_distances(int sink) {
  const int far = vertices();
  distance_.assign(first_.size(), far);
  at_distance_.assign(first_.size() + 1, 0);
  queue_.assign(1, sink);
  distance_[sink] = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const int vertex = queue_[i];
    for (int arc = first_[vertex]; arc >= 0; arc = next_[arc]) {
      const int tail = to_[arc];
      ++looks_;
      if (left_[arc ^ 1] == 0 || distance_[tail] < far) continue;
      distance_[tail] = distance_[vertex] + 1;
      queue_.push_back(tail);
    }
  }
  for (const int distance : distance_) ++at_distance_[distance];
}

MaxFlow::Units MaxFlow::push(int vertex, int sink, Units maximum) {
  if (vertex == sink) return maximum;
  Units pushed = 0;
  for (int& arc = current_[vertex]; arc >= 0; arc = next_[arc]) {
    const int next = to_[arc];
    ++looks_;
    if (left_[arc] == 0 || distance_[vertex] != distance_[next] + 1) continue;
    const Units part = push(next, sink, std::min(maximum - pushed, left_[arc]));
    left_[arc] -= part;
    left_[arc ^ 1] += part;
    pushed += part;
    if (pushed == maximum || is_cut_off_) return pushed;  // the arc may have room left: stay at it
  }
  // No way from here at this distance: the next try is one step longer. When nobody is left at a
  // distance, nothing beyond it reaches the sink.
  is_cut_off_ = --at_distance_[distance_[vertex]] == 0;
  distance_[vertex] = std::min(distance_[vertex] + 1, vertices());
  ++at_distance_[distance_[vertex]];
  current_[vertex] = first_[vertex];
  return pushed;
}

MaxFlow::Units MaxFlow::run(int source, int sink, Units limit) {
  left_ = capacity_;
  current_ = first_;
  is_cut_off_ = false;
  find_distances(sink);
  Units total = 0;
  while (total < limit && !is_cut_off_ && distance_[source] < vertices()) {
    total += push(source, sink, limit - total);
  }
  if (total < limit) find_source_side(source);
  return total;
}

void MaxFlow::find_source_side(int source) {
  is_reached_.assign(first_.size(), false);
  is_reached_[source] = true;
  queue_.assign(1, source);
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    for (int arc = first_[queue_[i]]; arc >= 0; arc = next_[arc]) {
      if (left_[arc] == 0 || is_reached_[to_[arc]]) continue;
      is_reached_[to_[arc]] = true;
      queue_.push_back(to_[arc]);
    }
  }
}

}  // namespace espalier

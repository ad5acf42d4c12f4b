// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/order_key.h"
#include "sim/time_unit.h"

namespace espalier {

/// Dates by number, the earliest on top; of equal ones that with the smallest number. A date can be
/// set again, which is what the heaps of the standard library can't do.
class DateHeap {
 public:
  struct Entry {
    Ticks date;  ///< not negative
    std::uint32_t id = 0;
    bool operator<(const Entry& other) const {
      return order_key(date.value, id) < order_key(other.date.value, other.id);
    }
  };

  void clear() {
    heap_.clear();
    position_.clear();
  }
  bool empty() const { return heap_.empty(); }
  std::uint32_t top() const { return heap_.front().id; }
  Ticks top_date() const { return heap_.front().date; }

  void set(std::uint32_t id, Ticks date) {
    if (id >= position_.size()) position_.resize(id + 1, kAbsent);
    if (position_[id] == kAbsent) {
      position_[id] = static_cast<std::uint32_t>(heap_.size());
      heap_.push_back({date, id});
      rise(position_[id]);
    } else {
      move(position_[id], date);
    }
  }

  /// Sets each; of many, in one go.
  void set(std::span<const Entry> entries) {
    if (kSetsPerOrder * entries.size() < heap_.size()) {
      for (const Entry& entry : entries) set(entry.id, entry.date);
      return;
    }
    for (const Entry& entry : entries) {
      if (entry.id >= position_.size()) position_.resize(entry.id + 1, kAbsent);
      if (position_[entry.id] == kAbsent) {
        position_[entry.id] = static_cast<std::uint32_t>(heap_.size());
        heap_.push_back(entry);
      } else {
        heap_[position_[entry.id]].date = entry.date;
      }
    }
    for (std::size_t at = heap_.size() / 2; at > 0; --at) sink(static_cast<std::uint32_t>(at - 1));
  }

  /// Does nothing when it has no date.
  void remove(std::uint32_t id) {
    if (id >= position_.size() || position_[id] == kAbsent) return;
    const std::uint32_t hole = std::exchange(position_[id], kAbsent);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.id == id) return;
    place(hole, last);
    rise(hole);
    sink(position_[last.id]);
  }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  /// Putting all in order costs as much as setting one in so many.
  static constexpr std::size_t kSetsPerOrder = 4;

  void place(std::uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[entry.id] = at;
  }

  void move(std::uint32_t at, Ticks date) {
    const bool is_earlier = date < heap_[at].date;
    heap_[at].date = date;
    if (is_earlier) {
      rise(at);
    } else {
      sink(at);
    }
  }

  void rise(std::uint32_t at) {
    const Entry entry = heap_[at];
    while (at > 0 && entry < heap_[(at - 1) / 2]) {
      place(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    place(at, entry);
  }

  void sink(std::uint32_t at) {
    const Entry entry = heap_[at];
    for (std::size_t child = 2 * std::size_t{at} + 1; child < heap_.size();
         child = 2 * std::size_t{at} + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
      if (!(heap_[child] < entry)) break;
      place(at, heap_[child]);
      at = static_cast<std::uint32_t>(child);
    }
    place(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_;  ///< by number
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What orders thread blocks of a plan while it is carried out symbolically: counters (channels and
// semaphores) and packets. Private to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace espalier {

/// What is known to have happened.
struct MscclppKnowledge {
  std::map<int, std::uint32_t> moves;  ///< the last one of each thread block
  std::vector<bool> begun;             ///< GPUs that have begun to carry out the plan
};

inline void add(std::vector<bool>& begun, const std::vector<bool>& more) {
  if (begun.size() < more.size()) begun.resize(more.size(), false);
  for (std::size_t gpu = 0; gpu < more.size(); ++gpu) begun[gpu] = begun[gpu] || more[gpu];
}

inline void add(MscclppKnowledge& known, const MscclppKnowledge& more) {
  for (const auto& [block, move] : more.moves) {
    const auto [entry, is_new] = known.moves.try_emplace(block, move);
    if (!is_new) entry->second = std::max(entry->second, move);
  }
  add(known.begun, more.begun);
}

/// A counting semaphore: releases end acquires, in any order.
struct MscclppCounter {
  struct Releaser {
    std::int64_t total = 0;  ///< releases in the whole plan
    std::vector<MscclppKnowledge> done;
  };
  std::int64_t initial = 0;
  std::int64_t total = 0;  ///< releases by everybody in the whole plan
  std::int64_t free = 0;
  std::map<int, Releaser> releasers;     ///< by thread block
  std::map<int, std::int64_t> acquired;  ///< by thread block
  std::vector<int> waiting;

  void release(int block, MscclppKnowledge known) {
    releasers[block].done.push_back(std::move(known));
    ++free;
  }

  /// What came with the thread block's last release; nothing before its first.
  MscclppKnowledge released_last(int block) const {
    const auto releaser = releasers.find(block);
    if (releaser == releasers.end() || releaser->second.done.empty()) return {};
    return releaser->second.done.back();
  }

  /// What is certain for a thread block that has acquired once more: of n tokens that were there,
  /// at most so many are initial ones and other releasers'; the rest are this releaser's first.
  void acquire(int block, MscclppKnowledge& known) {
    --free;
    learn(++acquired[block] - initial, known);
  }
  /// What is certain for all that have acquired together.
  void learn_together(MscclppKnowledge& known) const {
    std::int64_t all = 0;
    for (const auto& [block, tokens] : acquired) all += tokens;
    learn(all - initial, known);
  }

 private:
  void learn(std::int64_t tokens, MscclppKnowledge& known) const {
    for (const auto& [from, releaser] : releasers) {
      const std::int64_t certain = tokens - (total - releaser.total);
      if (certain > 0) add(known, releaser.done[static_cast<std::size_t>(certain) - 1]);
    }
  }
};

/// Who first wrote packets where, by unit of a GPU's scratch.
class MscclppPackets {
 public:
  void write(std::int64_t begin, std::int64_t end, std::uint32_t move) {
    for (std::int64_t at = begin; at < end;) {
      auto next = first_.upper_bound(at);
      if (next != first_.begin() && std::prev(next)->second.end > at) {
        at = std::prev(next)->second.end;
        continue;
      }
      const std::int64_t gap = next == first_.end() ? end : std::min(end, next->first);
      first_.emplace_hint(next, at, Run{gap, move});
      at = gap;
    }
  }

  /// The moves that wrote the range, or false where none wrote a part of it.
  bool writers(std::int64_t begin, std::int64_t end, std::vector<std::uint32_t>& moves) const {
    for (std::int64_t at = begin; at < end;) {
      auto next = first_.upper_bound(at);
      if (next == first_.begin() || std::prev(next)->second.end <= at) return false;
      moves.push_back(std::prev(next)->second.move);
      at = std::prev(next)->second.end;
    }
    return true;
  }

 private:
  struct Run {
    std::int64_t end;
    std::uint32_t move;
  };
  std::map<std::int64_t, Run> first_;
};

}  // namespace espalier

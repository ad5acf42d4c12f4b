// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/access_tracker.h"
#include "ir/op_order.h"
#include "ir/program.h"

namespace espalier {

/// Finds out which of many pairs of ops are ordered by
/// dependencies and lanes. Exact; private to this room.
///
/// Pairs are asked for while walking the run order, one by one or for all readers of a unit at
/// once. Most are settled at once: both ops on one lane, or the later one's lane has waited
/// directly for the earlier one or something after it on its lane (all that the builder leaves
/// out); and readers, where they all come before something that the later op waits for, as behind a
/// barrier. The rest is kept for `unordered`, which follows 64 earlier ops at a time through the
/// part of the order that matters, one bit each. Lists of readers are never written out as pairs,
/// of which there may be the square of the number of ops.
class RaceChecker {
 public:
  using Readers = AccessTracker::Readers;

  /// `accesses` is what lists of readers are from. All are referred to.
  RaceChecker(const Program& program, const LaneChains& lanes, const std::vector<OpId>& order,
              const AccessTracker& accesses);

  /// Takes note of what `op` waits for. Ops must come in run order.
  void visit(OpId op);
  /// Whether `earlier` certainly happens before `later`, which was visited. May miss some.
  bool surely_before(OpId earlier, OpId later) const;
  /// Asks whether `earlier` happens before `later`, the op visited last.
  void require(OpId earlier, OpId later);
  /// The same for all readers but `later` itself. \pre there are some
  void require(const Readers& readers, OpId later);
  /// Calls `found(earlier, later)` for the pairs asked for that nothing orders, each once.
  void unordered(const std::function<void(OpId, OpId)>& found);

 private:
  /// One of the earlier ops asked for, or a list of them: its latest, and the list of the others.
  struct Node {
    std::uint32_t place;  ///< in the run order
    std::uint32_t next;   ///< node of the others, or kNone
    std::uint32_t first;  ///< place of the earliest
  };
  /// Whether what `node` stands for comes before the op at the place `later`.
  struct Question {
    std::uint32_t node;
    std::uint32_t later;
    auto operator<=>(const Question&) const = default;
  };
  /// The last position on chain `from` that chain `to` has waited for directly, and the position on
  /// chain `to` where it did.
  struct Sync {
    std::uint32_t to = ~0u;
    std::uint32_t from = 0;
    std::uint32_t position = 0;
    std::uint32_t since = 0;
  };
  static constexpr std::uint32_t kNone = ~0u;

  /// The same, also where a few other ops are in between.
  bool soon_before(OpId earlier, OpId later) const;
  const Sync* find_sync(std::uint32_t to, std::uint32_t from) const;
  std::size_t first_in_bucket(std::uint32_t to, std::uint32_t from) const;
  bool has_room_for(std::uint32_t to, std::uint32_t from) const;
  void keep(const Sync& sync);
  bool is_worth_doubling() const;
  void double_syncs();
  void ask(std::uint32_t node, OpId later);
  std::uint32_t node_of(OpId earlier);
  std::uint32_t node_of(const Readers& readers);
  bool is_settled(const Readers& readers, OpId op) const;
  /// The same for all of them. \pre `later` is not one
  bool surely_all_before(const Readers& readers, OpId later);
  /// Calls `body(OpId)` for what `op` waits for, or for a few of many.
  template <class Body>
  void for_some_predecessors(OpId op, Body&& body) const;
  std::optional<OpId> latest_predecessor(OpId op) const;
  /// Marks the earlier ops [first, last) and what comes after them, up to the place `end`.
  void follow(const std::uint32_t* first, const std::uint32_t* last, std::uint32_t end);
  /// Calls `found` for what `active` nodes ask for, those of the next 64 `sources` that `sought`
  /// says, and what was followed did not lead to.
  void report_missing(const std::uint32_t* sources, const std::vector<std::uint32_t>& active,
                      const std::vector<std::size_t>& first_question,
                      const std::vector<std::uint64_t>& sought,
                      const std::function<void(OpId, OpId)>& found) const;

  const Program& program_;
  const LaneChains& lanes_;
  const std::vector<OpId>& order_;
  const AccessTracker& accesses_;
  std::vector<std::uint32_t> place_;  ///< in the run order, by op
  std::vector<Sync> syncs_;  ///< a few for each hash value: it grows, or newer ones push out others
  std::size_t kept_ = 0;     ///< pairs of chains, those pushed out among them
  std::map<std::pair<Readers, OpId>, bool> settled_;  ///< whether all come before the op for sure
  std::int64_t steps_left_;  ///< that looking for quick answers about readers may take
  std::vector<Node> nodes_;  ///< each after its `next`
  std::unordered_map<OpId, std::uint32_t> node_of_op_;
  std::map<Readers, std::uint32_t> node_of_readers_;
  std::vector<Question> open_;
  std::vector<std::uint64_t>
      reached_;  ///< by place in the order: which of the earlier ops lead here
};

}  // namespace espalier

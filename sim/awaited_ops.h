// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "ir/rounds.h"
#include "sim/op_shapes.h"

namespace espalier {

/// What an op waits for.
struct Awaited {
  enum class What : std::uint8_t {
    end,      ///< of another op at its place: before it is ready
    result,   ///< of one elsewhere, which has to be where it belongs: before it is ready
    landing,  ///< the same of one that has ended, once it has its turn
  };
  OpId op = 0;
  What what = What::end;
  bool operator==(const Awaited&) const = default;
};

/// Ops whose results may be under way to what an op touches when it has its turn.
struct LandingsOf {
  std::vector<std::uint32_t> first;  ///< of the following by op, and the end
  std::vector<OpId> ops;
  std::span<const OpId> of(OpId id) const {
    return {ops.data() + first[id], first[id + 1] - first[id]};
  }
};

/// Appends what one op waits for to that of others, each once: whose result an op waits for, it
/// need not wait for its landing. Sorts it.
void add_once(std::vector<Awaited>& of_op, std::vector<Awaited>& of_all);

/// What ops wait for beside the op before them on their lane: what the program says, and results
/// that are under way to what they touch. Programs leave out dependencies that others imply, but an
/// op whose end is implied may have a result that is not there yet.
class AwaitedOps {
 public:
  /// An op that begins when another one has ended, whose result is under way then, may last until
  /// that is there. `shapes`: theirs, of every such pair if all last so long; if not, of one pair
  /// that does not.
  struct Outlasting {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> shapes;
    bool do_outlast = true;

    /// Whether ops await the same if their shapes cost this. \pre results of the same shapes are
    /// under way
    bool is_so_for(const ShapeNumbers& numbers, OpFlows& flows) const;
  };

  /// `rounds`: of the program. `shapes`: of its ops. `notes_all`: for who asks which ones outlast
  /// which.
  AwaitedOps(const Program& program, const Rounds& rounds, OpShapes& shapes,
             bool notes_all = false);

  /// \pre notes_all
  const Outlasting& outlasting() const { return outlasting_; }

  /// Calls `visit(Awaited)` for each, once.
  template <class Visit>
  void for_each(OpId id, Visit&& visit) const {
    const auto [like, ops_on, unused] = rounds_.alike(id);
    for (std::size_t i = first_[like]; i < first_[like + 1]; ++i) {
      visit(Awaited{awaited_[i].op + ops_on, awaited_[i].what});
    }
  }

 private:
  class Durations;
  template <class OnEnd>
  void take_dependencies(const Program& program, const Op& op, OnEnd&& on_end);
  void look_at_neighbours(const Program& program, const Durations& durations);
  void look_at_all(const Program& program, const Durations& durations);

  const Rounds rounds_;
  const bool notes_all_;
  std::vector<std::uint32_t> first_;  ///< of the following by op, and the end; none of later rounds
  std::vector<Awaited> awaited_;
  Outlasting outlasting_;
  std::vector<Awaited> of_op_;  ///< the one that is looked at
};

}  // namespace espalier

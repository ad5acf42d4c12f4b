// SPDX-License-Identifier: Apache-2.0
#include "sim/critical_path.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/print.h"
#include "ir/rounds.h"
#include "ir/unfold.h"
#include "sim/op_graph.h"

namespace espalier {
namespace {

/// An op of the history: of the program, or what it is in a group.
struct Named {
  OpId op = 0;
  int group = 0;
};

/// Of dates, of which those of rounds that were counted in are sums.
constexpr double kRounding = 1e-12;

/// An op of a path: of the history, or of rounds that were counted in.
using PathOp = RepeatedRounds::Like;

PathOp path_op(const OpHistory& history, OpId number) {
  return history.repeated ? history.repeated->like(number) : PathOp{number};
}

/// How much later than the op of the history. What began after rounds that were counted in has its
/// dates already.
double later_s(const OpHistory& history, const PathOp& op) {
  if (op.again == 0 || op.simulated >= history.repeated->end) return 0;
  const RepeatedRounds& repeated = *history.repeated;
  return static_cast<double>(op.again) * repeated.period_s[op.simulated - repeated.begin];
}
double start_s(const OpHistory& history, const PathOp& op) {
  return history.ops[op.simulated].start_s + later_s(history, op);
}

/// What is told of the ops of a path.
class PathText {
 public:
  PathText(const Program& program, const OpNames& names, const OpHistory& history)
      : program_(program), names_(names), history_(history) {}

  /// `group`: where only the first group is simulated, whose op is meant.
  Named named(OpId id, int group) const {
    if (!names_.all_groups()) return {id, group};
    const OpNames::Alike alike = names_.alike(id);
    return {alike.op, alike.group};
  }

  std::string text_of(const PathOp& op, int group) const {
    if (!history_.repeated) return text_of(op.simulated, group);
    if (!program_.fold.is_folded()) return further_on(program_, op.simulated, op);
    return further_on(op_of_group(program_, op.simulated, group), 0, op);
  }

  std::string what_it_waited_for(const PathOp& waiting, int group) const {
    const OpId id = waiting.simulated;
    const OpId cause = history_.ops[id].cause;
    if (cause == OpGraph::kNone) return "start";
    const Named named = this->named(id, group);
    if (is_by_landing(waiting) || std::ranges::count(dependencies_of(named), cause) > 0) {
      return "data of op " + std::to_string(cause + waiting.ops_on);
    }
    const Op& op = program_.ops[named.op];
    const bool is_folded = program_.fold.is_folded();
    const PlaceId at = is_folded ? program_.fold.rank_moved(op.at, named.group) : op.at;
    const std::string place = place_name(program_, at);
    const Op& before = program_.ops[this->named(cause, 0).op];
    // What takes data out of a FIFO gives its steps back to who sent them.
    if (!is_folded && before.at != op.at) {
      return "steps that op " + std::to_string(cause + waiting.ops_on) + " gave back";
    }
    // Lanes may share blocks.
    if (before.lane != op.lane) return "a block of " + place;
    const int lane =
        names_.all_groups() ? program_.fold.lane_moved(op.at, op.lane, named.group) : op.lane;
    return "lane " + std::to_string(lane) + " of " + place;
  }

 private:
  std::string text_of(OpId id, int group) const {
    if (!program_.fold.is_folded()) return to_string(program_, id);
    const Named named = this->named(id, group);
    Program one = op_of_group(program_, named.op, named.group);
    if (names_.all_groups()) {
      one.dependencies = dependencies_of(named);
      one.ops.front().dep_count = static_cast<std::uint32_t>(one.dependencies.size());
    }
    return to_string(one, 0);
  }

  /// With the units and dependencies that it has among all rounds.
  std::string further_on(const Program& program, OpId id, const PathOp& op) const {
    return to_string(
        op_further_on(program, id, op.ops_on, op.units_on, history_.repeated->units_longer()), 0);
  }

  /// As the history numbers them.
  std::vector<OpId> dependencies_of(const Named& named) const {
    const Op& op = program_.ops[named.op];
    const auto known = program_.dependencies_of(op);
    std::vector<OpId> all(known.begin(), known.end());
    for (std::size_t i = 0; names_.all_groups() && i < all.size(); ++i) {
      const int further = program_.fold.dependency_groups[op.dep_begin + i];
      all[i] = names_.of_group(all[i], program_.fold.wrapped(named.group + further));
    }
    return all;
  }

  /// Of an op that it does not name, it waits for the result only while that is under way.
  bool is_by_landing(const PathOp& waiting) const {
    if (names_.all_groups()) return history_.by_landing[waiting.simulated];
    const PathOp before = path_op(history_, history_.ops[waiting.simulated].cause + waiting.ops_on);
    const OpEnd& end = history_.ends[before.simulated];
    const double seen_s = end.seen_s + later_s(history_, before);
    const double rounding_s = kRounding * history_.last_seen_s;
    return end.end_s < end.seen_s && seen_s <= start_s(history_, waiting) + rounding_s;
  }

  const Program& program_;
  const OpNames& names_;
  const OpHistory& history_;
};

}  // namespace

void report_critical_path(const Program& program, const OpNames& names, const OpHistory& history,
                          SimulatedPart& simulated) {
  std::vector<CriticalStep>& path = simulated.critical_path;
  const PathText told(program, names, history);
  OpId number = history.last;
  if (history.repeated && number != OpGraph::kNone) number = history.repeated->number(number);
  // When the next one could start: the lane was free, or the result there.
  double until_s = history.last_seen_s;
  int group = 0;  // of the first group alone: the path ends there
  while (number != OpGraph::kNone) {
    const PathOp op = path_op(history, number);
    ++simulated.critical_steps;
    const double start_s = espalier::start_s(history, op);
    const double end_s = std::exchange(until_s, start_s);
    if (path.size() < kMaxCriticalSteps) {
      path.push_back(
          {number, start_s, end_s, told.text_of(op, group), told.what_it_waited_for(op, group)});
    }
    if (!history.cause_group.empty()) {
      group = program.fold.wrapped(group + history.cause_group[op.simulated]);
    }
    const OpId cause = history.ops[op.simulated].cause;
    number = cause == OpGraph::kNone ? cause : cause + op.ops_on;
  }
  std::ranges::reverse(path);
}

}  // namespace espalier

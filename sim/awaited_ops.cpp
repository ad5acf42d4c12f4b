// SPDX-License-Identifier: Apache-2.0
#include "sim/awaited_ops.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/interruption.h"
#include "ir/lane_numbers.h"
#include "sim/last_writers.h"
#include "sim/op_graph.h"

namespace espalier {

/// How long ops last at least, and for how long their results are under way then.
class AwaitedOps::Durations {
 public:
  /// `flows`: of the examples.
  Durations(const ShapeNumbers& numbers, OpFlows& flows) : numbers_(numbers) {
    lasts_s_.reserve(numbers_.examples().size());
    landing_s_.reserve(numbers_.examples().size());
    for (const OpId id : numbers_.examples()) {
      const FlowList& begin = flows.begin(id);
      landing_s_.push_back(begin.landing_s);
      lasts_s_.push_back(least_s(flows, begin));
      if (!flows.reduces_separately(id)) continue;
      const FlowList& reduce = flows.reduce(id);
      landing_s_.back() = reduce.landing_s;
      lasts_s_.back() += least_s(flows, reduce);
    }
  }

  std::uint32_t shape(OpId id) const { return numbers_.of(id); }
  bool lands(OpId id) const { return landing_s_[shape(id)] > 0; }
  /// Whether an op of a shape that begins when one of the other has ended lasts until the result of
  /// that is there.
  bool outlasts(std::uint32_t shape, std::uint32_t before) const {
    return lasts_s_[shape] >= landing_s_[before] * kRounding;
  }

 private:
  static constexpr double kRounding = 1.000001;

  const ShapeNumbers& numbers_;
  std::vector<double> lasts_s_;    ///< by shape
  std::vector<double> landing_s_;  ///< likewise
};

namespace {

/// Whether an op reads or writes what another one wrote, which is of so many groups further on.
bool touches_result(const Program& program, const Op& op, const Op& other, int group) {
  bool touches = false;
  for_each_destination(program, other, [&](const Operand& result) {
    const Slice written =
        slice(group == 0 ? result : moved(program.fold, result, other.length, group), other.length);
    for (const Operand& source : program.sources_of(op)) {
      touches = touches || overlap(written, slice(source, op.length));
    }
    for_each_destination(program, op, [&](const Operand& dst) {
      touches = touches || overlap(written, slice(dst, op.length));
    });
  });
  return touches;
}

}  // namespace

void add_once(std::vector<Awaited>& of_op, std::vector<Awaited>& of_all) {
  const auto order = [](const Awaited& one) { return std::pair(one.op, one.what); };
  if (of_op.size() > 1) std::ranges::sort(of_op, {}, order);
  for (std::size_t i = 0; i < of_op.size(); ++i) {
    const bool is_known = i > 0 && of_op[i] == of_op[i - 1];
    const bool is_result =
        i > 0 && of_op[i].op == of_op[i - 1].op && of_op[i - 1].what == Awaited::What::result;
    if (!is_known && !is_result) of_all.push_back(of_op[i]);
    if (is_result) of_op[i].what = Awaited::What::result;
  }
}

AwaitedOps::AwaitedOps(const Program& program, const Rounds& rounds, OpShapes& shapes,
                       bool notes_all)
    : rounds_(rounds), notes_all_(notes_all) {
  const Durations durations(shapes.numbers(), shapes);
  look_at_neighbours(program, durations);
  if (!outlasting_.do_outlast) look_at_all(program, durations);
}

bool AwaitedOps::Outlasting::is_so_for(const ShapeNumbers& numbers, OpFlows& flows) const {
  const Durations durations(numbers, flows);
  const bool do_all = std::ranges::all_of(
      shapes, [&](const auto& pair) { return durations.outlasts(pair.first, pair.second); });
  return do_all == do_outlast;
}

/// What the program says an op waits for. Calls `on_end(OpId, group)` for each whose end it awaits.
template <class OnEnd>
void AwaitedOps::take_dependencies(const Program& program, const Op& op, OnEnd&& on_end) {
  for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
    const OpId other = program.dependencies[i];
    const int group = program.fold.is_folded() ? program.fold.dependency_groups[i] : 0;
    const bool is_result = awaits_result(program, op, program.ops[other], group);
    of_op_.push_back({other, is_result ? Awaited::What::result : Awaited::What::end});
    if (!is_result) on_end(other, group);
  }
}

/// Who waits for the result of an op finds it there, and so does whoever comes later. Who waits for
/// its end, as the next op of its lane does, may touch the result while that is under way. Where
/// all these last until it is there, nobody else need be looked at.
void AwaitedOps::look_at_neighbours(const Program& program, const Durations& durations) {
  LaneNumbers lanes;
  std::vector<OpId> last;  // by lane
  HashNumbers pairs;
  bool& do_outlast = outlasting_.do_outlast;
  const auto outlast = [&](std::uint32_t shape, std::uint32_t before) {
    const std::uint32_t known = pairs.size();
    if (notes_all_ && pairs.number(mix64(std::uint64_t{shape} << 32 | before)) < known) return;
    do_outlast = durations.outlasts(shape, before);
    if (!notes_all_) return;
    if (!do_outlast) outlasting_.shapes.clear();
    outlasting_.shapes.emplace_back(shape, before);
  };
  for (OpId id = 0; id < program.ops.size() && do_outlast; ++id) {
    check_interruption_at(id);
    first_.push_back(static_cast<std::uint32_t>(awaited_.size()));
    if (id >= rounds_.ops && id < rounds_.end()) continue;
    const Op& op = program.ops[id];
    of_op_.clear();
    const auto await_landing = [&](OpId other, int group) {
      if (!durations.lands(other)) return;
      if (do_outlast) outlast(durations.shape(id), durations.shape(other));
      if (touches_result(program, op, program.ops[other], group)) {
        of_op_.push_back({other, Awaited::What::landing});
      }
    };
    take_dependencies(program, op, await_landing);
    const std::uint32_t lane = lanes.number(op.at, op.lane);
    if (lane == last.size()) {
      last.push_back(id);
    } else {
      await_landing(std::exchange(last[lane], id), 0);
    }
    add_once(of_op_, awaited_);
  }
  first_.push_back(static_cast<std::uint32_t>(awaited_.size()));
}

/// By whoever wrote last what an op touches.
void AwaitedOps::look_at_all(const Program& program, const Durations& durations) {
  first_.clear();
  awaited_.clear();
  std::vector<std::pair<OpId, OpId>> landings;  // ops, and whose results they touch
  for_each_touched(program, rounds_, [&](const Touched& touched) {
    const std::pair one(touched.op, touched.writer);
    const bool is_known = !landings.empty() && landings.back() == one;
    if (touched.writer != touched.op && durations.lands(touched.writer) && !is_known) {
      landings.push_back(one);
    }
  });
  if (!std::ranges::is_sorted(landings)) std::ranges::sort(landings);
  auto next = landings.begin();
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    first_.push_back(static_cast<std::uint32_t>(awaited_.size()));
    if (id >= rounds_.ops && id < rounds_.end()) continue;
    of_op_.clear();
    take_dependencies(program, program.ops[id], [](OpId, int) {});
    for (; next != landings.end() && next->first == id; ++next) {
      of_op_.push_back({next->second, Awaited::What::landing});
    }
    add_once(of_op_, awaited_);
  }
  first_.push_back(static_cast<std::uint32_t>(awaited_.size()));
}

}  // namespace espalier

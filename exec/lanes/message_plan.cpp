// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/message_plan.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/check.h"
#include "core/error.h"
#include "exec/lanes/stuck_report.h"
#include "ir/access_tracker.h"

namespace espalier {
namespace {

// As long as messages are small, no more slots than can be in use within a window.
constexpr std::int64_t kMostSlots = kMessageWindow;
// Of an op: where it combines what a single other process has, the window takes in two of them.
constexpr std::int64_t kMostPieces = kMessageWindow / 4;

/// Where a step's operand lies: in units for what it depends on, in bytes for what it does.
struct Located {
  Operand units;
  std::uint32_t length = 0;
  BufferOffset bytes;
};

class Planner {
 public:
  Planner(const Program& program, const LanePrograms& lowered,
          const std::vector<int>& process_of_place, int process, std::size_t element_bytes,
          const Scratch& scratch)
      : program_(program),
        lowered_(lowered),
        process_of_place_(process_of_place),
        process_(process),
        scratch_(scratch),
        sent_(static_cast<std::size_t>(program.ranks()), 0),
        received_(static_cast<std::size_t>(program.ranks()), 0) {
    plan_.element_bytes = element_bytes;
  }

  MessagePlan run(const std::vector<OpId>& order) {
    divide_scratch();
    for (std::uint32_t position = 0; position < order.size(); ++position) {
      op_ = order[position];
      position_ = position;
      if (lowered_.ops[op_].elements > 0) add(program_.ops[op_]);
    }
    join_needs();
    return std::move(plan_);
  }

 private:
  int process_at(PlaceId place) const { return process_of_place_[static_cast<std::size_t>(place)]; }
  bool is_here(PlaceId place) const { return process_at(place) == process_; }

  /// Slots of one size, as many as fit, and enough for any op.
  void divide_scratch() {
    std::int64_t most = 0;  // slots of an op
    std::int64_t slot_bytes = 0;
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      const Op& op = program_.ops[id];
      if (op.kind != OpKind::combine || !is_here(op.at)) continue;
      const std::int64_t remote = std::ranges::count_if(
          program_.sources_of(op), [&](const Operand& source) { return !is_here(source.place); });
      // What is only passed on is in one slot, or in none where it belongs here.
      const bool is_copy = op.src_count == 1;
      const std::int64_t elsewhere = is_here(op.dst.place) ? 0 : 1;
      const std::int64_t slots = is_copy ? std::min(remote, elsewhere) : remote + elsewhere;
      if (slots == 0) continue;
      most = std::max(most, slots);
      slot_bytes =
          std::max(slot_bytes, most_at_once(id) * static_cast<std::int64_t>(plan_.element_bytes));
    }
    if (slot_bytes == 0) return;
    constexpr std::int64_t kAlignment = 64;
    slot_bytes_ = (slot_bytes + kAlignment - 1) / kAlignment * kAlignment;
    slots_ = std::max(most, std::min(scratch_.bytes / slot_bytes_, kMostSlots));
    plan_.scratch_bytes = slots_ * slot_bytes_;
  }

  Located next_slot() {
    const std::int64_t slot = next_slot_++ % slots_;
    // For the tracker, a place beyond those of the program, with a unit for each slot.
    return {{program_.places(), static_cast<std::uint32_t>(slot), Buffer::tmp},
            1,
            {kMessageScratch, Buffer::tmp, slot * slot_bytes_}};
  }

  /// Of the part at hand.
  Located source(const Op& op, std::uint32_t i) const {
    return {program_.sources[op.src_begin + i], op.length,
            at_part(lowered_.sources[op.src_begin + i])};
  }

  BufferOffset at_part(BufferOffset whole) const {
    whole.bytes += part_ * static_cast<std::int64_t>(plan_.element_bytes);
    return whole;
  }

  void add(const Op& op) {
    if (is_here(op.at)) {
      add_here(op);
    } else {
      add_elsewhere(op);
    }
  }

  /// So many elements of an op come and are combined before the next ones do: a part of it where it
  /// is long and combines what others have in the memory of the process that carries it out.
  std::int64_t most_at_once(OpId id) const {
    const Op& op = program_.ops[id];
    const auto element_bytes = static_cast<std::int64_t>(plan_.element_bytes);
    const std::int64_t elements = lowered_.ops[id].elements;
    const bool stays = process_at(op.dst.place) == process_at(op.at);
    if (scratch_.piece_bytes == 0 || op.src_count == 1 || !stays) return elements;
    const std::int64_t piece = std::max<std::int64_t>(1, scratch_.piece_bytes / element_bytes);
    return std::min(elements, std::max(piece, (elements + kMostPieces - 1) / kMostPieces));
  }

  /// Calls `visit` for each part of the op at hand, which `part_` and `elements_` are then; in the
  /// end they are all of it.
  template <class Visit>
  void for_each_part(Visit&& visit) {
    const std::int64_t whole = lowered_.ops[op_].elements;
    const std::int64_t most = most_at_once(op_);
    for (part_ = 0; part_ < whole; part_ += elements_) {
      elements_ = std::min(most, whole - part_);
      visit();
    }
    part_ = 0;
    elements_ = whole;
  }

  /// What another process carries out needs its sources from here, and its results may belong here.
  void add_elsewhere(const Op& op) {
    const int other = process_at(op.at);
    for_each_part([&] {
      for (std::uint32_t i = 0; i < op.src_count; ++i) {
        if (is_here(program_.sources[op.src_begin + i].place)) send(other, source(op, i));
      }
    });
    for_each_result(op, [&](const Located& result) {
      if (is_here(result.units.place)) receive(other, result);
    });
  }

  void add_here(const Op& op) {
    const Located dst{op.dst, op.length, lowered_.ops[op_].dst};
    const bool is_copy = op.src_count == 1;
    Located result = dst;
    if (!is_copy && !is_here(dst.units.place)) result = next_slot();
    for_each_part([&] {
      operands_.clear();
      for (std::uint32_t i = 0; i < op.src_count; ++i) {
        const Located from = source(op, i);
        if (is_here(from.units.place)) {
          operands_.push_back(from);
          continue;
        }
        // A copy needs no scratch memory where its result belongs here.
        const Located to = is_copy && is_here(dst.units.place) ? dst : next_slot();
        receive(process_at(from.units.place), to);
        operands_.push_back(to);
      }
      if (!is_copy) combine({result.units, result.length, at_part(result.bytes)});
    });
    if (is_copy) result = operands_.front();  // what is only passed on is sent from where it is
    for_each_result(op, [&](const Located& to) {
      if (to.bytes == result.bytes) return;
      if (is_here(to.units.place)) {
        operands_.assign(1, result);
        combine(to);
      } else {
        send(process_at(to.units.place), result);
      }
    });
  }

  template <class Visit>
  void for_each_result(const Op& op, Visit&& visit) {
    visit(Located{op.dst, op.length, lowered_.ops[op_].dst});
    const auto copies = program_.copies_of(op);
    const auto offsets = lowered_.copies_of(op);
    for (std::size_t i = 0; i < copies.size(); ++i) {
      visit(Located{copies[i], op.length, offsets[i]});
    }
  }

  void send(int to, const Located& what) {
    MessageStep& step = add_step(MessageStepKind::send, what);
    step.peer = to;
    step.tag = static_cast<int>(sent_[static_cast<std::size_t>(to)]++ % kMessageTags);
    note_read(what);
    finish_step();
  }

  void receive(int from, const Located& where) {
    MessageStep& step = add_step(MessageStepKind::receive, where);
    step.peer = from;
    step.tag = static_cast<int>(received_[static_cast<std::size_t>(from)]++ % kMessageTags);
    note_write(where);
    finish_step();
  }

  void combine(const Located& where) {
    MessageStep& step = add_step(MessageStepKind::combine, where);
    step.source_begin = static_cast<std::uint32_t>(plan_.sources.size());
    step.source_count = static_cast<std::uint32_t>(operands_.size());
    for (const Located& operand : operands_) {
      plan_.sources.push_back(operand.bytes);
      note_read(operand);
    }
    note_write(where);
    finish_step();
  }

  MessageStep& add_step(MessageStepKind kind, const Located& what) {
    if (plan_.steps.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
      throw Error(ErrorKind::unsupported, "the program has more than 2^32 steps in one process");
    }
    MessageStep& step = plan_.steps.emplace_back();
    step.kind = kind;
    step.op = op_;
    step.position = position_;
    step.memory = what.bytes;
    step.elements = elements_;
    return step;
  }

  std::uint32_t this_step() const { return static_cast<std::uint32_t>(plan_.steps.size() - 1); }

  void note_read(const Located& what) {
    tracker_.read(this_step(), what.units, what.length,
                  [&](std::uint32_t earlier) { needed_.push_back(earlier); });
  }

  void note_write(const Located& what) {
    tracker_.write(this_step(), what.units, what.length,
                   [&](std::uint32_t earlier) { needed_.push_back(earlier); });
  }

  void finish_step() {
    std::ranges::sort(needed_);
    needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
    plan_.steps.back().needs = static_cast<std::uint32_t>(needed_.size());
    for (const std::uint32_t earlier : needed_) {
      ++plan_.steps[earlier].next_count;
      pairs_.push_back({earlier, this_step()});
    }
    needed_.clear();
  }

  /// Pairs of steps as lists of the later ones: a counting sort.
  void join_needs() {
    std::uint32_t begin = 0;
    for (MessageStep& step : plan_.steps) {
      step.next_begin = begin;
      begin += step.next_count;
      step.next_count = 0;
    }
    plan_.next.resize(begin);
    for (const auto& [earlier, later] : pairs_) {
      MessageStep& step = plan_.steps[earlier];
      plan_.next[step.next_begin + step.next_count++] = later;
    }
  }

  struct Pair {
    std::uint32_t earlier = 0;
    std::uint32_t later = 0;
  };

  const Program& program_;
  const LanePrograms& lowered_;
  const std::vector<int>& process_of_place_;
  const int process_;
  const Scratch scratch_;
  MessagePlan plan_;
  AccessTracker tracker_;                ///< of steps, not of ops
  std::vector<std::uint64_t> sent_;      ///< messages by process
  std::vector<std::uint64_t> received_;  ///< same
  std::int64_t slot_bytes_ = 0;
  std::int64_t slots_ = 0;
  std::int64_t next_slot_ = 0;
  OpId op_ = 0;                ///< at hand
  std::int64_t part_ = 0;      ///< of it: the first element
  std::int64_t elements_ = 0;  ///< and how many
  std::uint32_t position_ = 0;
  std::vector<Located> operands_;      ///< of the op at hand, all in the memory of this process
  std::vector<std::uint32_t> needed_;  ///< by the step at hand
  std::vector<Pair> pairs_;
};

}  // namespace

std::vector<int> processes_of_places(const Program& program) {
  constexpr int kNobody = -1;
  std::vector<int> processes(static_cast<std::size_t>(program.places()), kNobody);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    processes[static_cast<std::size_t>(rank)] = rank;
  }
  const auto claim = [&](PlaceId place, PlaceId user) {
    int& process = processes[static_cast<std::size_t>(place)];
    if (process == kNobody) process = processes[static_cast<std::size_t>(user)];
  };
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    // A host memory that carries out ops itself is with whom it takes data from or gives it to.
    for (const Operand& source : program.sources_of(op)) claim(op.at, source.place);
    for_each_destination(program, op, [&](const Operand& to) { claim(op.at, to.place); });
    for (const Operand& source : program.sources_of(op)) claim(source.place, op.at);
    for_each_destination(program, op, [&](const Operand& to) { claim(to.place, op.at); });
  }
  std::ranges::replace(processes, kNobody, 0);  // that nobody uses
  return processes;
}

std::vector<OpId> common_order(const Program& program, const LanePrograms& lowered) {
  const std::size_t count = program.ops.size();
  std::vector<std::uint32_t> missing(count, 0);
  std::vector<std::uint32_t> next_begin(count + 1, 0);
  const auto for_each_pair = [&](auto&& visit) {
    for (const Lane& lane : lowered.lanes) {
      std::optional<OpId> before;
      for (const Command& command : lowered.commands_of(lane)) {
        if (command.kind == CommandKind::record) continue;
        if (command.kind == CommandKind::wait) continue;
        if (before) visit(*before, command.index);
        before = command.index;
      }
    }
    for (OpId op = 0; op < count; ++op) {
      for (const OpId needed : program.dependencies_of(program.ops[op])) visit(needed, op);
    }
  };
  for_each_pair([&](OpId earlier, OpId later) {
    ++next_begin[earlier + 1];
    ++missing[later];
  });
  for (std::size_t op = 0; op < count; ++op) next_begin[op + 1] += next_begin[op];
  std::vector<OpId> next(next_begin.back());
  std::vector<std::uint32_t> filled(next_begin.begin(), next_begin.end() - 1);
  for_each_pair([&](OpId earlier, OpId later) { next[filled[earlier]++] = later; });

  // Wave after wave, so that those of a wave have chains of the same length before them.
  std::vector<OpId> order;
  order.reserve(count);
  for (OpId op = 0; op < count; ++op) {
    if (missing[op] == 0) order.push_back(op);
  }
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t end = order.size();
    for (; begin < end; ++begin) {
      const OpId op = order[begin];
      for (std::uint32_t i = next_begin[op]; i < next_begin[op + 1]; ++i) {
        if (--missing[next[i]] == 0) order.push_back(next[i]);
      }
    }
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(end), order.end());
  }
  if (order.size() < count) {
    std::vector<bool> ended(count, false);
    for (const OpId op : order) ended[op] = true;
    throw stuck_error("the program cannot continue: every unfinished lane waits for another one",
                      program, lowered, unfinished_lanes(program, lowered, ended));
  }
  return order;
}

MessagePlan plan_messages(const Program& program, const LanePrograms& lowered,
                          const std::vector<OpId>& order, const std::vector<int>& process_of_place,
                          int process, std::size_t element_bytes, const Scratch& scratch) {
  CHECK(std::ranges::all_of(program.ops, [](const Op& op) { return op.kind == OpKind::combine; }));
  return Planner(program, lowered, process_of_place, process, element_bytes, scratch).run(order);
}

}  // namespace espalier

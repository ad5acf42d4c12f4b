// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_moves.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "formats/msccl_buffers.h"

namespace espalier {
namespace {

using Kind = MscclAlgo::Kind;

/// How many accesses are looked at before messages go by way of scratch unasked.
constexpr std::int64_t kMostLookedAt = 50'000'000;

std::uint64_t cell_of(const Operand& first, int i) {
  return (std::uint64_t{static_cast<std::uint32_t>(first.place)} << 40) |
         (std::uint64_t{static_cast<std::uint8_t>(first.buffer)} << 36) |
         (std::uint64_t{first.begin} + static_cast<std::uint64_t>(i));
}

/// Times at which steps touch chunks. A move that comes earlier or later than its step keeps the
/// chunks from then until the step, so that no two moves change places that touch the same chunk.
class Touches {
 public:
  void add(const Operand& first, int count, int owner, int time, bool writes) {
    for (int i = 0; i < count; ++i)
      cells_[cell_of(first, i)].push_back({owner, time, time, writes});
  }

  /// Whether nobody but the steps `from` to `to` of the file uses the chunks in between in a way
  /// that conflicts.
  bool is_free(const Operand& first, int count, int low, int high, bool writes, int from, int to) {
    for (int i = 0; i < count; ++i) {
      const auto found = cells_.find(cell_of(first, i));
      if (found == cells_.end()) continue;
      looked_at_ += static_cast<std::int64_t>(found->second.size());
      if (looked_at_ > kMostLookedAt) return false;
      for (const Touch& touch : found->second) {
        const bool is_own = touch.owner >= from && touch.owner <= to;
        if (!is_own && (writes || touch.writes) && touch.low <= high && touch.high >= low) {
          return false;
        }
      }
    }
    return true;
  }

  void extend(const Operand& first, int count, int owner, int time) {
    for (int i = 0; i < count; ++i) {
      for (Touch& touch : cells_[cell_of(first, i)]) {
        if (touch.owner != owner) continue;
        touch.low = std::min(touch.low, time);
        touch.high = std::max(touch.high, time);
      }
    }
  }

 private:
  struct Touch {
    int owner = 0;  ///< a step
    int low = 0;
    int high = 0;
    bool writes = false;
  };
  std::unordered_map<std::uint64_t, std::vector<Touch>> cells_;
  std::int64_t looked_at_ = 0;
};

/// A move reads or writes a chunk at a point of the order of steps.
struct Access {
  std::uint64_t cell = 0;
  std::int64_t point = 0;
  std::size_t move = 0;
  bool writes = false;
};

/// Makes the moves of all steps. `is_direct`: a message is one move in any case, whenever it can
/// happen; see `in_order`.
class Merger {
 public:
  Merger(const MscclSteps& steps, const Contract& contract, int fifo_slots, bool is_direct)
      : steps_(steps), buffers_(steps.algo, contract), is_direct_(is_direct) {
    order_ = run_steps(steps, fifo_slots, std::numeric_limits<int>::max() / 2).order;
    const auto count = static_cast<std::size_t>(steps.count());
    time_.assign(count, 0);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      time_[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    }
    for (int gpu = 0; gpu < steps.algo.ranks(); ++gpu) next_.push_back(buffers_.scratch(gpu));
    sent_from_.resize(count);
    move_of_.assign(count, -1);
    first_of_.assign(count, -1);
  }

  /// With what they touch, by chunk and point; not in order.
  std::vector<Move> moves() {
    note_touches();
    for (const int id : order_) add_step(id);
    return std::move(moves_);
  }
  std::vector<Access>& accesses() { return accesses_; }

 private:
  int time(int id) const { return time_[static_cast<std::size_t>(id)]; }
  /// Every step has two points: that at which it stores, and that at which it sends.
  std::int64_t storing(int id) const { return std::int64_t{2} * time(id); }
  std::int64_t sending(int id) const { return std::int64_t{2} * time(id) + 1; }

  const MscclSteps::Id& at(int id) const { return steps_.ids[static_cast<std::size_t>(id)]; }
  int gpu_of(int id) const { return at(id).gpu; }
  Operand src(int id) const { return buffers_.operand(gpu_of(id), steps_.step(id).src); }
  Operand dst(int id) const { return buffers_.operand(gpu_of(id), steps_.step(id).dst); }

  Operand fresh(int gpu, int count) {
    std::int64_t& next = next_[static_cast<std::size_t>(gpu)];
    const Operand made{gpu, static_cast<std::uint32_t>(next), Buffer::tmp};
    next += count;
    return made;
  }

  void note_touches() {
    for (const int id : order_) {
      const MscclAlgo::Step& step = steps_.step(id);
      if (is_nothing(id)) continue;
      if (reads_source(step.kind)) touches_.add(src(id), step.count, id, time(id), false);
      if (stores(step.kind)) touches_.add(dst(id), step.count, id, time(id), true);
      if (!sends(step.kind)) continue;
      sent_from_[static_cast<std::size_t>(id)] = step.kind == Kind::s ? src(id)
                                                 : step.kind == Kind::rrs
                                                     ? fresh(gpu_of(id), step.count)
                                                     : dst(id);
    }
  }

  /// Carried out by the thread block of step `by`.
  void add(std::int64_t point, const Operand& to, std::vector<Operand> from, int id, int sender,
           int by) {
    move_of_[static_cast<std::size_t>(id)] = static_cast<int>(moves_.size());
    for (const Operand& one : from) {
      const bool is_sent = sender >= 0 && &one == &from.back();
      note_access(one, is_sent ? sending(sender) : storing(id), id, false);
    }
    note_access(to, storing(id), id, true);
    moves_.push_back({point, to, std::move(from), steps_.step(id).count, gpu_of(by), at(by).block,
                      id, sender, by});
  }

  /// In place, the copy of an input to where it lies already.
  bool is_nothing(int id) const { return steps_.step(id).kind == Kind::cpy && src(id) == dst(id); }

  void note_access(const Operand& first, std::int64_t point, int id, bool writes) {
    const auto move = static_cast<std::size_t>(move_of_[static_cast<std::size_t>(id)]);
    for (int i = 0; i < steps_.step(id).count; ++i) {
      accesses_.push_back({cell_of(first, i), point, move, writes});
    }
  }

  void add_step(int id) {
    const Kind kind = steps_.step(id).kind;
    if (is_nothing(id)) return;
    if (kind == Kind::cpy) add(storing(id), dst(id), {src(id)}, id, -1, id);
    if (kind == Kind::re) add_reduction(id);
    if (receives(kind)) add_message(id);
  }

  /// Whether a step adds to the chunks that the step before it wrote: the runtime does both at
  /// once.
  bool follows(int id) const {
    if (at(id).step == 0) return false;
    const MscclAlgo::Step& step = steps_.step(id);
    const MscclAlgo::Step& before = steps_.step(id - 1);
    return step.block < 0 && (before.kind == Kind::re || before.kind == Kind::cpy) &&
           step.count == before.count && dst(id) == dst(id - 1) && src(id) != dst(id);
  }

  void add_reduction(int id) {
    if (follows(id) && move_of_[static_cast<std::size_t>(id) - 1] >= 0) {
      Move& move = moves_[static_cast<std::size_t>(move_of_[static_cast<std::size_t>(id) - 1])];
      if (can_wait(move, id)) {
        move.sources.push_back(src(id));
        move.point = storing(id);
        move.step = move.by = id;
        move_of_[static_cast<std::size_t>(id)] = move_of_[static_cast<std::size_t>(id) - 1];
        note_access(src(id), storing(id), id, false);
        note_access(dst(id), storing(id), id, true);
        first_of_[static_cast<std::size_t>(id)] = first_of(id - 1);
        return;
      }
    }
    add(storing(id), dst(id), {dst(id), src(id)}, id, -1, id);
  }

  /// The first of the steps that became one move with this one.
  int first_of(int id) const {
    const int first = first_of_[static_cast<std::size_t>(id)];
    return first < 0 ? id : first;
  }

  /// Whether the move of steps before `until` can happen as late as this step.
  bool can_wait(const Move& move, int until) {
    const int first = first_of(move.step);
    const auto is_free = [&](const Operand& one, bool writes) {
      return touches_.is_free(one, move.count, time(first), time(until), writes, first, until);
    };
    bool waits = is_free(move.dst, true);
    for (const Operand& source : move.sources) {
      waits = waits && (source == move.dst || is_free(source, false));
    }
    if (!waits) return false;
    for (int step = first; step < until; ++step) {
      touches_.extend(move.dst, move.count, step, time(until));
      for (const Operand& source : move.sources) {
        touches_.extend(source, move.count, step, time(until));
      }
    }
    return true;
  }

  /// A step that receives.
  void add_message(int id) {
    const Kind kind = steps_.step(id).kind;
    const int sender = steps_.sender[static_cast<std::size_t>(id)];
    const Operand from = sent_from_[static_cast<std::size_t>(sender)];
    const Operand to = kind == Kind::rrs ? sent_from_[static_cast<std::size_t>(id)] : dst(id);
    std::vector<Operand> sources{from};
    if (reduces(kind)) sources.insert(sources.begin(), src(id));
    // Sums are fetched, copies pushed.
    const int by = reduces(kind) ? id : sender;
    if (is_direct_) {
      add(reduces(kind) ? storing(id) : sending(sender), to, sources, id, sender, by);
    } else if (!reduces(kind) && can_store_early(id, sender, to)) {
      add(sending(sender), to, sources, id, sender, by);
    } else if (can_read_late(id, sender, from)) {
      add(storing(id), to, sources, id, sender, by);
    } else {
      const Operand between = fresh(gpu_of(id), steps_.step(id).count);
      add(sending(sender), between, {from}, id, sender, sender);
      sources.back() = between;
      add(storing(id), to, sources, id, -1, id);
    }
  }

  bool can_store_early(int id, int sender, const Operand& to) {
    const int count = steps_.step(id).count;
    if (!touches_.is_free(to, count, time(sender), time(id), true, id, id)) return false;
    touches_.extend(to, count, id, time(sender));
    return true;
  }

  bool can_read_late(int id, int sender, const Operand& from) {
    const int count = steps_.step(id).count;
    if (!touches_.is_free(from, count, time(sender), time(id), false, sender, sender)) return false;
    touches_.extend(from, count, sender, time(id));
    return true;
  }

  const MscclSteps& steps_;
  MscclBuffers buffers_;
  bool is_direct_;
  std::vector<int> order_;
  std::vector<int> time_;           ///< by step
  std::vector<std::int64_t> next_;  ///< scratch that is not used yet, by GPU
  std::vector<Operand> sent_from_;  ///< by step that sends: where what it sends lies
  std::vector<int> move_of_;        ///< by step that stores: its last move, or -1
  std::vector<int> first_of_;       ///< by step: see `first_of`
  Touches touches_;
  std::vector<Move> moves_;
  std::vector<Access> accesses_;
};

/// The moves in an order that keeps that of the thread blocks they are carried out by and that of
/// conflicting accesses; nothing where there is none.
std::vector<Move> in_order(std::vector<Move> moves, std::vector<Access> accesses) {
  std::vector<std::vector<std::size_t>> next(moves.size());
  std::vector<int> missing(moves.size(), 0);
  const auto order = [&](std::size_t earlier, std::size_t later) {
    if (earlier == later) return;
    next[earlier].push_back(later);
    ++missing[later];
  };
  // Steps are numbered block by block, so those of one block follow each other.
  std::vector<std::size_t> by_step(moves.size());
  for (std::size_t i = 0; i < moves.size(); ++i) by_step[i] = i;
  std::ranges::sort(by_step, {}, [&](std::size_t i) {
    return std::tuple(moves[i].at, moves[i].lane, moves[i].by, moves[i].point);
  });
  for (std::size_t i = 1; i < by_step.size(); ++i) {
    const Move &a = moves[by_step[i - 1]], &b = moves[by_step[i]];
    if (a.at == b.at && a.lane == b.lane) order(by_step[i - 1], by_step[i]);
  }
  std::ranges::stable_sort(accesses, {},
                           [](const Access& one) { return std::pair(one.cell, one.point); });
  std::vector<std::size_t> readers;
  for (std::size_t i = 0, writer = moves.size(); i < accesses.size(); ++i) {
    const Access& one = accesses[i];
    if (i == 0 || accesses[i - 1].cell != one.cell) {
      writer = moves.size();
      readers.clear();
    }
    if (writer != moves.size()) order(writer, one.move);
    if (!one.writes) {
      readers.push_back(one.move);
      continue;
    }
    for (const std::size_t reader : readers) order(reader, one.move);
    readers.clear();
    writer = one.move;
  }

  using Ready = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (missing[i] == 0) ready.emplace(moves[i].point, i);
  }
  std::vector<Move> ordered;
  while (!ready.empty()) {
    const std::size_t at = ready.top().second;
    ready.pop();
    for (const std::size_t later : next[at]) {
      if (--missing[later] == 0) ready.emplace(moves[later].point, later);
    }
    ordered.push_back(std::move(moves[at]));
  }
  if (ordered.size() < moves.size()) ordered.clear();
  return ordered;
}

}  // namespace

std::vector<Move> msccl_moves(const MscclSteps& steps, const Contract& contract, int fifo_slots) {
  Merger direct(steps, contract, fifo_slots, true);
  std::vector<Move> all = direct.moves();
  std::vector<Move> ordered = in_order(std::move(all), std::move(direct.accesses()));
  if (!ordered.empty()) return ordered;
  ordered = Merger(steps, contract, fifo_slots, false).moves();
  std::ranges::stable_sort(ordered, {}, &Move::point);
  return ordered;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Carries a plan out symbolically. Every thread block has the set of data movements that happened
// before its next op. A signal takes a snapshot of it along, the wait that it ends adds the
// snapshot. Where several thread blocks signal or wait at one place, it is not known whose signal
// ended a wait; then only what is certain is added.
#include "formats/mscclpp_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "formats/mscclpp_sync.h"
#include "ir/program.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;
using Kind = Plan::Kind;
using Access = Plan::Ref::Access;
using Knowledge = MscclppKnowledge;
using Counter = MscclppCounter;

constexpr std::uint32_t kNoMove = ~std::uint32_t{0};
constexpr std::size_t kMaxExplained = 16;

/// Calls `visit(op, place)` for the ops of a thread block in order, a pipeline's body once.
template <class Visit>
void for_each_op(const Plan::ThreadBlock& block, int gpu, int number, Visit&& visit) {
  for (std::size_t k = 0; k < block.ops.size(); ++k) {
    MscclppOpPlace place{gpu, number, static_cast<int>(k), -1};
    visit(block.ops[k], place);
    for (std::size_t i = 0; i < block.ops[k].body.size(); ++i) {
      place.inner = static_cast<int>(i);
      visit(block.ops[k].body[i], place);
    }
  }
}

class Runner {
 public:
  Runner(const Plan& plan, RelaxedSignals relaxed)
      : plan_(plan), relaxed_orders_(relaxed == RelaxedSignals::order_data) {
    for (const auto type : {Plan::Channel::memory, Plan::Channel::port}) {
      ends_[static_cast<std::size_t>(type)] = other_ends(plan, type);
    }
    packets_.resize(plan.gpus.size());
    packet_readers_.resize(plan.gpus.size());
    find_split();
    collect();
  }

  MscclppRun run() {
    std::size_t stuck = 0;
    std::deque<int> ready(blocks_.size());
    std::iota(ready.begin(), ready.end(), 0);
    while (!ready.empty()) {
      const int block = ready.front();
      ready.pop_front();
      advance(block);
      for (const int woken : woken_) ready.push_back(woken);
      woken_.clear();
    }
    for (const Block& block : blocks_) {
      if (block.next == block.ops.size()) continue;
      if (result_.stuck.size() < kMaxExplained) explain(block);
      ++stuck;
    }
    if (stuck > kMaxExplained) {
      result_.stuck.push_back(
          {"deadlock",
           fmt::format("{} more thread blocks wait for ever", stuck - kMaxExplained),
           "",
           {}});
    }
    for (const auto& [key, counter] : counters_) {
      if (std::get<1>(key) != kSemaphore) result_.lost_signals += counter.free;
    }
    if (stuck == 0) find_early_ends();
    return std::move(result_);
  }

 private:
  /// Results that nobody on their GPU waits for: the GPU may end, and its user read them, before
  /// they have come.
  void find_early_ends() {
    const std::vector<MscclppMove>& moves = result_.moves;
    std::map<std::pair<int, int>, std::uint32_t> last;
    std::vector<std::uint32_t> before(moves.size(), kNoMove);  ///< of the same thread block
    for (std::uint32_t id = 0; id < moves.size(); ++id) {
      const auto [entry, is_new] =
          last.try_emplace({moves[id].place.gpu, moves[id].place.block}, id);
      if (!is_new) before[id] = std::exchange(entry->second, id);
    }
    for (std::size_t gpu = 0; gpu < plan_.gpus.size(); ++gpu) {
      std::vector<std::uint32_t> open;
      for (std::size_t number = 0; number < blocks_.size(); ++number) {
        const Block& block = blocks_[number];
        if (block.ops.empty() || block.ops[0].place.gpu != static_cast<int>(gpu)) continue;
        for (const auto& [other, move] : snapshot(static_cast<int>(number)).moves) {
          open.push_back(move);
        }
      }
      Knowledge together;
      for (const auto& [key, counter] : counters_) {
        if (std::get<0>(key) == static_cast<int>(gpu)) counter.learn_together(together);
      }
      for (const auto& [other, move] : together.moves) open.push_back(move);
      std::vector<bool> is_known(moves.size(), false);
      while (!open.empty()) {
        const std::uint32_t id = open.back();
        open.pop_back();
        if (id == kNoMove || is_known[id]) continue;
        is_known[id] = true;
        open.push_back(before[id]);
        open.insert(open.end(), moves[id].after.begin(), moves[id].after.end());
      }
      for (std::uint32_t id = 0; id < moves.size(); ++id) {
        if (!is_known[id]) note_early_end(static_cast<int>(gpu), moves[id]);
      }
    }
  }

  void note_early_end(int gpu, const MscclppMove& move) {
    const bool writes_here = std::ranges::any_of(move.targets, [&](const MscclppOperand& target) {
      return target.rank == gpu && target.buffer != Plan::Buffer::scratch;
    });
    if (!writes_here || result_.early_ends.size() >= kMaxExplained) return;
    result_.early_ends.push_back(
        {"R7",
         fmt::format("gpu {} may end before {} has written its result: none of its thread blocks "
                     "waits for that",
                     gpu, describe(move.place)),
         fmt::format("a signal behind it, and a wait on gpu {}", gpu),
         {{}, move.line, 0}});
  }

  struct Step {
    const Plan::Op* op = nullptr;
    MscclppOpPlace place;
  };
  struct Block {
    std::vector<Step> ops;
    std::size_t next = 0;
    std::size_t part = 0;  ///< channels or semaphores of the next op that it has got
    std::uint32_t last = kNoMove;
    Knowledge known;  ///< of other thread blocks, since `last`; GPUs that have begun, ever
    bool arrived = false;
  };
  /// GPU, type of channel (or kSemaphore) and number.
  using Key = std::tuple<int, int, int>;
  static constexpr int kSemaphore = 4;
  struct Barrier {
    std::vector<int> here;
    Knowledge known;
  };

  /// Units of a chunk: as many as make every slice a whole number of units.
  void find_split() {
    std::int64_t split = 1;
    std::int64_t chunks = 1;
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      for (const std::int64_t count : plan_.gpus[g].chunks) chunks = std::max(chunks, count);
      for (std::size_t b = 0; b < plan_.gpus[g].blocks.size(); ++b) {
        for_each_op(plan_.gpus[g].blocks[b], static_cast<int>(g), static_cast<int>(b),
                    [&](const Plan::Op& op, const MscclppOpPlace& place) {
                      if (op.slices == 1 || op.sources.empty()) return;
                      const std::int64_t needed =
                          op.slices / std::gcd<std::int64_t>(op.slices, op.sources[0].size);
                      split = std::lcm(split, needed);
                      if (split * chunks <= kMaxUnits) return;
                      throw Error(
                          ErrorKind::input,
                          describe(place) + ": its slice of a chunk (tbg_info) is too fine");
                    });
      }
    }
    result_.split = split;
  }

  /// Numbers the thread blocks, and counts how often each signals where.
  void collect() {
    for (std::size_t g = 0; g < plan_.gpus.size(); ++g) {
      const Plan::Gpu& gpu = plan_.gpus[g];
      for (std::size_t s = 0; s < gpu.semaphores.size(); ++s) {
        Counter& counter = counters_[{static_cast<int>(g), kSemaphore, static_cast<int>(s)}];
        counter.initial = counter.free = gpu.semaphores[s];
      }
      for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
        const int number = static_cast<int>(blocks_.size());
        Block block;
        block.known.begun.resize(plan_.gpus.size(), false);
        block.known.begun[g] = true;
        for_each_op(gpu.blocks[b], static_cast<int>(g), static_cast<int>(b),
                    [&](const Plan::Op& op, const MscclppOpPlace& place) {
                      if (op.type->kind != Kind::pipeline) block.ops.push_back({&op, place});
                      for (const Key& key : released_by(op, place.gpu)) {
                        Counter& counter = counters_[key];
                        ++counter.releasers[number].total;
                        ++counter.total;
                      }
                    });
        blocks_.push_back(std::move(block));
      }
    }
  }

  /// The counters that an op counts up.
  std::vector<Key> released_by(const Plan::Op& op, int gpu) const {
    std::vector<Key> keys;
    if (op.type->kind == Kind::sem_release) {
      for (const int id : op.semaphores) keys.push_back({gpu, kSemaphore, id});
    }
    if (op.type->kind == Kind::signal || op.type->signals) {
      const int type = static_cast<int>(op.channel_type);
      for (const int id : op.channels) {
        const MscclppEnd end = end_of(gpu, op.channel_type, id);
        if (end.channel >= 0) keys.push_back({end.gpu, type, end.channel});
      }
    }
    return keys;
  }

  MscclppEnd end_of(int gpu, Plan::Channel type, int channel) const {
    return ends_[static_cast<std::size_t>(type)][static_cast<std::size_t>(gpu)]
                [static_cast<std::size_t>(channel)];
  }

  /// The counters that an op counts down.
  std::vector<Key> acquired_by(const Plan::Op& op, int gpu) const {
    std::vector<Key> keys;
    if (op.type->kind == Kind::sem_acquire) {
      for (const int id : op.semaphores) keys.push_back({gpu, kSemaphore, id});
    } else if (op.type->kind == Kind::wait) {
      for (const int id : op.channels) {
        keys.push_back({gpu, static_cast<int>(op.channel_type), id});
      }
    }
    return keys;
  }

  Knowledge snapshot(int number) const {
    const Block& block = blocks_[static_cast<std::size_t>(number)];
    Knowledge known = block.known;
    if (block.last != kNoMove) known.moves[number] = block.last;
    return known;
  }

  void advance(int number) {
    Block& block = blocks_[static_cast<std::size_t>(number)];
    while (block.next < block.ops.size()) {
      const Step& step = block.ops[block.next];
      if (!acquire(number, block, step) || !pass_barrier(number, block, step)) return;
      if (step.op->type->has_data && !move(number, block, step)) return;
      const Knowledge known = snapshot(number);
      for (const Key& key : released_by(*step.op, step.place.gpu)) {
        Counter& counter = counters_[key];
        counter.release(number, orders(*step.op) ? known : counter.released_last(number));
        wake(counter.waiting);
      }
      ++block.next;
      block.part = 0;
    }
  }

  void wake(std::vector<int>& waiting) {
    woken_.insert(woken_.end(), waiting.begin(), waiting.end());
    waiting.clear();
  }

  bool orders(const Plan::Op& op) const { return relaxed_orders_ || !op.type->relaxed; }

  bool acquire(int number, Block& block, const Step& step) {
    const std::vector<Key> keys = acquired_by(*step.op, step.place.gpu);
    for (; block.part < keys.size(); ++block.part) {
      Counter& counter = counters_[keys[block.part]];
      if (counter.free == 0) {
        counter.waiting.push_back(number);
        return false;
      }
      Knowledge none;
      counter.acquire(number, orders(*step.op) ? block.known : none);
      block.known.moves.erase(number);
      if (step.op->type->kind != Kind::wait) continue;
      // Whichever signal it was, only the GPU at the other end sends any on this channel.
      const int channel = std::get<2>(keys[block.part]);
      block.known.begun[static_cast<std::size_t>(
          end_of(step.place.gpu, step.op->channel_type, channel).gpu)] = true;
    }
    return true;
  }

  bool pass_barrier(int number, Block& block, const Step& step) {
    if (step.op->type->kind != Kind::barrier) return true;
    if (block.arrived) {
      block.arrived = false;
      return true;
    }
    Barrier& barrier = barriers_[{step.place.gpu, step.op->barrier}];
    add(barrier.known, snapshot(number));
    barrier.here.push_back(number);
    if (static_cast<int>(barrier.here.size()) < step.op->barrier_blocks) return false;
    for (const int other : barrier.here) {
      Block& there = blocks_[static_cast<std::size_t>(other)];
      add(there.known, barrier.known);
      there.known.moves.erase(other);
      there.arrived = other != number;
      if (other != number) woken_.push_back(other);
    }
    barrier = {};
    return true;
  }

  MscclppOperand operand(const Plan::Op& op, const Plan::Ref& ref, int rank) const {
    const std::int64_t begin = ref.index * result_.split;
    return {rank, ref.buffer, begin + ref.size * result_.split * op.slice / op.slices};
  }
  MscclppOperand operand(const Plan::Op& op, const Plan::Ref& ref) const {
    return operand(op, ref, ref.rank);
  }
  std::vector<MscclppOperand> group(const Plan::Op& op, const Plan::Ref& ref, int gpu) const {
    std::vector<MscclppOperand> operands;
    for (const int rank : plan_.gpus[static_cast<std::size_t>(gpu)]
                              .groups[static_cast<std::size_t>(ref.group)]
                              .ranks) {
      operands.push_back(operand(op, ref, rank));
    }
    return operands;
  }

  /// Makes the moves of an op, or returns false where it still waits for packets.
  bool move(int number, Block& block, const Step& step) {
    const Plan::Op& op = *step.op;
    const std::int64_t length = op.sources[0].size * result_.split / op.slices;
    if (op.type->source_packets && !take_packets(number, block, step, length)) return false;
    MscclppMove made;
    made.place = step.place;
    made.line = op.line;
    made.length = length;
    const auto emit = [&](std::vector<MscclppOperand> sources, std::vector<MscclppOperand> targets,
                          bool in_switch) {
      made.sources = std::move(sources);
      made.targets = std::move(targets);
      made.in_switch = in_switch;
      add_move(block, made);
      return static_cast<std::uint32_t>(result_.moves.size() - 1);
    };
    const int gpu = step.place.gpu;
    if (op.type->kind == Kind::switch_reduce) {
      emit(group(op, op.sources[0], gpu), group(op, op.targets[0], gpu), true);
      return true;
    }
    for (std::size_t k = 0; k < op.targets.size(); ++k) {
      const Plan::Ref& target = op.targets[k];
      if (target.access == Access::group) {
        emit({operand(op, op.sources[0])}, group(op, target, gpu), true);
        continue;
      }
      std::vector<MscclppOperand> sources;
      if (op.type->kind != Kind::reduce) {
        sources = {operand(op, op.sources[op.type->kind == Kind::spread ? 0 : k])};
      } else if (k > 0) {
        sources = {operand(op, op.targets[0])};
      } else {
        for (const Plan::Ref& source : op.sources) sources.push_back(operand(op, source));
      }
      const std::uint32_t id = emit(std::move(sources), {operand(op, target)}, false);
      const bool packets = op.type->target_packets && (op.type->kind != Kind::reduce || k > 0);
      if (packets) put_packets(operand(op, target), length, id);
    }
    return true;
  }

  void add_move(Block& block, MscclppMove& made) {
    made.after.clear();
    for (const auto& [other, move] : block.known.moves) made.after.push_back(move);
    block.known.moves.clear();
    block.last = static_cast<std::uint32_t>(result_.moves.size());
    note_early_access(block, made);
    result_.moves.push_back(made);
  }

  /// Scratch belongs to the plan. Inputs and outputs are their GPU's until it begins.
  void note_early_access(const Block& block, const MscclppMove& move) {
    for (const auto* operands : {&move.targets, &move.sources}) {
      for (const MscclppOperand& operand : *operands) {
        if (operand.buffer == Plan::Buffer::scratch) continue;
        if (block.known.begun[static_cast<std::size_t>(operand.rank)]) continue;
        result_.early_accesses.push_back(
            {move.place, operand.rank, operand.buffer, operands == &move.targets});
      }
    }
  }

  void put_packets(const MscclppOperand& where, std::int64_t length, std::uint32_t move) {
    const auto gpu = static_cast<std::size_t>(where.rank);
    if (where.buffer != Plan::Buffer::scratch) return;
    packets_[gpu].write(where.begin, where.begin + length, move);
    const MscclppOpPlace& place = result_.moves[move].place;
    begun_before_[move] = blocks_[static_cast<std::size_t>(number_of(place))].known.begun;
    wake(packet_readers_[gpu]);
  }

  /// A reader spins until the flag of every packet has come, so it runs after their writers.
  bool take_packets(int number, Block& block, const Step& step, std::int64_t length) {
    const auto gpu = static_cast<std::size_t>(step.place.gpu);
    std::vector<std::uint32_t> writers;
    for (std::size_t k = step.op->type->reads ? 1 : 0; k < step.op->sources.size(); ++k) {
      const MscclppOperand from = operand(*step.op, step.op->sources[k]);
      if (!packets_[gpu].writers(from.begin, from.begin + length, writers)) {
        packet_readers_[gpu].push_back(number);
        return false;
      }
    }
    for (const std::uint32_t move : writers) {
      const MscclppOpPlace& place = result_.moves[move].place;
      const int writer = number_of(place);
      if (writer != number) add(block.known, {{{writer, move}}, begun_before_.at(move)});
    }
    return true;
  }

  int number_of(const MscclppOpPlace& place) {
    if (first_block_.empty()) {
      int next = 0;
      for (const Plan::Gpu& gpu : plan_.gpus) {
        first_block_.push_back(next);
        next += static_cast<int>(gpu.blocks.size());
      }
    }
    return first_block_[static_cast<std::size_t>(place.gpu)] + place.block;
  }

  void explain(const Block& block) {
    const Step& step = block.ops[block.next];
    const Plan::Op& op = *step.op;
    Diagnostic found{"deadlock",
                     fmt::format("{} ({}): ", describe(step.place), op.type->name),
                     "",
                     {{}, op.line, 0}};
    if (op.type->kind == Kind::wait) {
      explain_wait(step, op.channels[block.part], found);
    } else if (op.type->kind == Kind::sem_acquire) {
      found.message +=
          fmt::format("waits for ever for semaphore {}, which nobody releases any more",
                      op.semaphores[block.part]);
    } else if (op.type->kind == Kind::barrier) {
      found.message +=
          fmt::format("waits for ever at barrier {}: {} of {} threadblocks come", op.barrier,
                      barriers_[{step.place.gpu, op.barrier}].here.size(), op.barrier_blocks);
    } else {
      found.message += "waits for ever for packets that no op writes";
    }
    result_.stuck.push_back(std::move(found));
  }

  void explain_wait(const Step& step, int channel, Diagnostic& found) {
    const std::string_view type = name_of(step.op->channel_type);
    const MscclppEnd end = end_of(step.place.gpu, step.op->channel_type, channel);
    found.message += fmt::format("waits for ever on {} channel {} for a signal from gpu {}", type,
                                 channel, end.gpu);
    if (end.channel < 0) {
      found.message += ", which has no channel that pairs with it";
      found.suggestion = fmt::format("give gpu {} another {} channel connected to gpu {}", end.gpu,
                                     type, step.place.gpu);
      return;
    }
    const Counter& counter =
        counters_[{step.place.gpu, static_cast<int>(step.op->channel_type), channel}];
    std::int64_t sent = 0;
    for (const auto& [block, releaser] : counter.releasers) {
      sent += static_cast<std::int64_t>(releaser.done.size());
    }
    if (sent < counter.total) {
      found.message += fmt::format(
          ": {} of {} were sent, and the thread block that sends the next "
          "one is stuck, too",
          sent, counter.total);
      return;
    }
    found.message +=
        sent == 0 ? ", which sends none" : fmt::format(", which sends {} in all", sent);
    found.suggestion = fmt::format("signal on {} channel {} of gpu {} once more, or wait once less",
                                   type, end.channel, end.gpu);
  }

  const Plan& plan_;
  const bool relaxed_orders_;
  std::array<std::vector<std::vector<MscclppEnd>>, 4> ends_;
  std::vector<Block> blocks_;
  std::vector<int> first_block_;  ///< of each GPU
  std::map<Key, Counter> counters_;
  std::map<std::pair<int, int>, Barrier> barriers_;
  std::vector<MscclppPackets> packets_;
  std::vector<std::vector<int>> packet_readers_;
  std::map<std::uint32_t, std::vector<bool>> begun_before_;  ///< moves that write packets
  std::vector<int> woken_;
  MscclppRun result_;
};

}  // namespace

MscclppRun run_mscclpp_plan(const MscclppPlan& plan, RelaxedSignals relaxed) {
  return Runner(plan, relaxed).run();
}

}  // namespace espalier

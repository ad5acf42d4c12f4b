// SPDX-License-Identifier: Apache-2.0
#include "formats/mscclpp_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "core/check.h"
#include "core/words.h"
#include "formats/mscclpp_limits.h"
#include "formats/mscclpp_ops.h"

namespace espalier {
namespace {

using Plan = MscclppPlan;
using Kind = Plan::Kind;
using Access = Plan::Ref::Access;

constexpr std::size_t kMaxReported = 16;

/// A thread block while the plan is made; numbered over all GPUs.
struct Block {
  int gpu = 0;
  int number = 0;              ///< of the GPU
  std::vector<OpId> ops;       ///< of the program
  std::vector<Plan::Op> said;  ///< the same as ops of the plan
  /// By op: thread blocks that it waits for, and that it tells when it is done.
  std::vector<std::vector<int>> waits;
  std::vector<std::vector<int>> signals;
  std::vector<int> greets;      ///< thread blocks told at the start that this GPU has begun
  std::vector<int> greeted_by;  ///< thread blocks waited for at the start
  std::vector<int> ends_for;    ///< thread blocks told at the end
  std::vector<int> ended_by;    ///< thread blocks waited for at the end
  std::deque<Plan::Op> made;
};

/// One end of a channel, or a semaphore.
struct Line {
  Plan::Channel type = Plan::Channel::none;  ///< none: a semaphore
  int id = 0;
};

void add_once(std::vector<int>& list, int value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

Plan::Op control(std::string_view name, Plan::Channel type) {
  Plan::Op op;
  op.type = find_mscclpp_op(name);
  op.channel_type = type;
  return op;
}

class Scheduler {
 public:
  Scheduler(const Program& program, const WritingOptions& options)
      : program_(program), options_(options), ops_(program, options, plan_) {
    plan_.gpus.resize(static_cast<std::size_t>(program.ranks()));
  }

  Plan schedule(std::vector<std::string>& notes) {
    write_header();
    find_blocks();
    refuse_if_any(ops_.problems());
    find_order();
    greet();
    part();
    for (std::size_t b = 0; b < blocks_.size(); ++b) write_block(static_cast<int>(b));
    count_tables();
    check_limits();
    note(notes);
    return std::move(plan_);
  }

 private:
  Block& block(int number) { return blocks_[static_cast<std::size_t>(number)]; }

  static void refuse_if_any(std::vector<Diagnostic> problems) {
    if (problems.empty()) return;
    if (problems.size() > kMaxReported) {
      const std::size_t more = problems.size() - kMaxReported;
      problems.resize(kMaxReported);
      problems.push_back({"", fmt::format("there are {} more of these", more), "", {}});
    }
    throw Error(ErrorKind::unsupported, std::move(problems));
  }

  void write_header() {
    const Contract& contract = program_.contract;
    // The executor tells plans of one size apart by their names.
    const std::string what =
        fmt::format("_{}_{}_{}ranks_{}chunks", to_string(program_.contract.collective),
                    program_.contract.in_place ? "inplace" : "outofplace", program_.ranks(),
                    program_.contract.units);
    plan_.name = program_.name + (program_.name.ends_with(what) ? "" : what);
    plan_.collective = to_string(contract.collective);
    plan_.protocol = "Simple";
    plan_.in_place = contract.in_place;
    plan_.min_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(options_.min_bytes, 0));
    if (options_.max_bytes >= 0) plan_.max_bytes = static_cast<std::uint64_t>(options_.max_bytes);
    const std::vector<std::int64_t> scratch = tmp_units(program_);
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      const std::int64_t in = input_region(contract, rank).units;
      const std::int64_t out = output_region(contract, rank).units;
      // The executor divides by both, so a rank without an input or result names the other's.
      plan_.gpus[static_cast<std::size_t>(rank)].chunks = {
          in > 0 ? in : std::max<std::int64_t>(out, 1),
          out > 0 ? out : std::max<std::int64_t>(in, 1), scratch[static_cast<std::size_t>(rank)]};
    }
  }

  void find_blocks() {
    std::map<std::pair<int, int>, std::vector<OpId>> lanes;
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      lanes[{program_.ops[id].at, program_.ops[id].lane}].push_back(id);
    }
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      if (lanes.lower_bound({rank, 0}) == lanes.lower_bound({rank + 1, 0})) lanes[{rank, 0}] = {};
    }
    block_of_.resize(program_.ops.size());
    position_.resize(program_.ops.size());
    first_.assign(plan_.gpus.size(), 0);
    for (auto& [lane, ops] : lanes) {
      const int number = static_cast<int>(blocks_.size());
      Block made;
      made.gpu = lane.first;
      int& first = first_[static_cast<std::size_t>(made.gpu)];
      if (blocks_.empty() || blocks_.back().gpu != made.gpu) first = number;
      made.number = number - first;
      for (std::size_t k = 0; k < ops.size(); ++k) {
        block_of_[ops[k]] = number;
        position_[ops[k]] = k;
        made.said.push_back(ops_.say(ops[k]));
      }
      made.waits.resize(ops.size());
      made.signals.resize(ops.size());
      made.ops = std::move(ops);
      blocks_.push_back(std::move(made));
    }
  }

  /// What an op waits for in other thread blocks. An op of one that was waited for before, or one
  /// before it, needs no other wait, so signals and waits of a channel come in one order.
  void find_order() {
    std::map<std::pair<int, int>, std::size_t> heard;  // ops of a block that a block knows are done
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const int number = static_cast<int>(b);
      for (std::size_t k = 0; k < blocks_[b].ops.size(); ++k) {
        std::map<int, std::size_t> needed;
        for (const OpId earlier : program_.dependencies_of(program_.ops[blocks_[b].ops[k]])) {
          const int from = block_of_[earlier];
          if (from == number) continue;
          std::size_t& most = needed[from];
          most = std::max(most, position_[earlier] + 1);
        }
        for (const auto& [from, done] : needed) {
          std::size_t& known = heard[{from, number}];
          if (done <= known) continue;
          known = done;
          blocks_[b].waits[k].push_back(from);
          block(from).signals[done - 1].push_back(number);
        }
      }
    }
  }

  /// The other GPUs whose memory an op reads or writes.
  std::set<int> touched(const Block& at, std::size_t k) const {
    std::set<int> gpus;
    for_each_transfer(program_, program_.ops[at.ops[k]], [&](PlaceId from, PlaceId to) {
      if (from != at.gpu) gpus.insert(from);
      if (to != at.gpu) gpus.insert(to);
    });
    return gpus;
  }

  /// A thread block of another GPU: one that this one speaks with anyhow, or any.
  int partner(const Block& of, int gpu) {
    const auto look = [&](const std::vector<int>& list) {
      const auto found = std::ranges::find_if(list, [&](int b) { return block(b).gpu == gpu; });
      return found == list.end() ? -1 : *found;
    };
    int found = std::max(look(of.greeted_by), look(of.greets));
    for (std::size_t k = 0; k < of.ops.size() && found < 0; ++k) {
      found = std::max(look(of.waits[k]), look(of.signals[k]));
    }
    if (found >= 0) return found;
    const int first = first_[static_cast<std::size_t>(gpu)];
    int end = first;
    while (end < static_cast<int>(blocks_.size()) && block(end).gpu == gpu) ++end;
    return first + of.number % (end - first);
  }

  /// Before the first op that touches a GPU, a thread block must have heard from it.
  void greet() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      std::set<int> heard;
      for (std::size_t k = 0; k < blocks_[b].ops.size(); ++k) {
        for (const int from : blocks_[b].waits[k]) heard.insert(block(from).gpu);
        for (const int gpu : touched(blocks_[b], k)) {
          if (!heard.insert(gpu).second) continue;
          const int from = partner(blocks_[b], gpu);
          blocks_[b].greeted_by.push_back(from);
          block(from).greets.push_back(static_cast<int>(b));
        }
      }
    }
  }

  /// After the last op that touches a GPU, that GPU must hear of it before it ends.
  void part() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      std::set<int> told;
      for (std::size_t k = blocks_[b].ops.size(); k-- > 0;) {
        for (const int to : blocks_[b].signals[k]) told.insert(block(to).gpu);
        for (const int gpu : touched(blocks_[b], k)) {
          if (!told.insert(gpu).second) continue;
          const int to = partner(blocks_[b], gpu);
          blocks_[b].ends_for.push_back(to);
          block(to).ended_by.push_back(static_cast<int>(b));
        }
      }
    }
  }

  /// The way from a thread block to another: a semaphore, or this end of the channel of the two.
  Line line(int from, int to, bool receives) {
    const int gpu = block(from).gpu;
    const int peer = block(to).gpu;
    if (gpu == peer) {
      const std::pair<int, int> direction = receives ? std::pair{to, from} : std::pair{from, to};
      auto& semaphores = plan_.gpus[static_cast<std::size_t>(gpu)].semaphores;
      const auto [entry, is_new] =
          semaphores_.try_emplace(direction, static_cast<int>(semaphores.size()));
      if (is_new) semaphores.push_back(0);
      return {Plan::Channel::none, entry->second};
    }
    const Plan::Channel type = ops_.channel_between(gpu, peer);
    const auto [entry, is_new] = channels_.try_emplace({std::min(from, to), std::max(from, to)});
    if (is_new) {
      // Both ends at once: the k-th channels of two GPUs to each other are one.
      const auto open = [&](int of, int other) {
        auto& peers = plan_.gpus[static_cast<std::size_t>(block(of).gpu)]
                          .peers[static_cast<std::size_t>(type)];
        peers.push_back(block(other).gpu);
        return static_cast<int>(peers.size()) - 1;
      };
      entry->second.first = open(std::min(from, to), std::max(from, to));
      entry->second.second = open(std::max(from, to), std::min(from, to));
    }
    return {type, from < to ? entry->second.first : entry->second.second};
  }

  void append(int number, Plan::Op op) {
    Block& at = block(number);
    const auto add = [&](Plan::Op added) {
      at.made.push_back(std::move(added));
      nops_->take(at.made.back(), at.gpu);
    };
    const MscclppNops::Missing missing = nops_->before(op, at.gpu);
    CHECK(!missing.is_flush);
    if (missing.earlier != nullptr) add(control("nop", Plan::Channel::none));
    add(std::move(op));
  }

  /// Signals to, or waits for, other thread blocks: as few ops as their channels allow.
  void speak(int number, const std::vector<int>& others, bool receives, bool relaxed) {
    std::map<Plan::Channel, std::vector<int>> ids;
    for (const int other : others) {
      const Line way = line(number, other, receives);
      ids[way.type].push_back(way.id);
    }
    for (const auto& [type, numbers] : ids) {
      const bool local = type == Plan::Channel::none;
      const bool relaxes = relaxed && type == Plan::Channel::memory;
      const auto most = static_cast<std::size_t>(local ? kMscclppOpSemaphores : kMscclppOpChannels);
      for (std::size_t k = 0; k < numbers.size(); k += most) {
        Plan::Op op = control(local     ? (receives ? "sem_acquire" : "sem_release")
                              : relaxes ? (receives ? "rlxwait" : "rlxsignal")
                                        : (receives ? "wait" : "signal"),
                              type);
        (local ? op.semaphores : op.channels)
            .assign(
                numbers.begin() + static_cast<std::ptrdiff_t>(k),
                numbers.begin() + static_cast<std::ptrdiff_t>(std::min(k + most, numbers.size())));
        append(number, std::move(op));
      }
    }
  }

  /// Puts through port channels go on after their op. Only the channel itself orders what follows;
  /// for everything else it is flushed.
  void flush_all_but(int number, int spared) {
    std::vector<int> flushed;
    for (const auto& [channel, source] : unflushed_) {
      if (channel != spared) add_once(flushed, channel);
    }
    std::erase_if(unflushed_, [&](const auto& put) { return put.first != spared; });
    for (const int channel : flushed) {
      Plan::Op op = control("flush", Plan::Channel::port);
      op.channels = {channel};
      append(number, std::move(op));
    }
  }

  /// Tells others that everything so far is done.
  void announce(int number, const std::vector<int>& others) {
    for (const int other : others) {
      const Line way = line(number, other, false);
      flush_all_but(number, way.type == Plan::Channel::port && others.size() == 1 ? way.id : -1);
    }
    speak(number, others, false, false);
  }

  void flush_before_overwriting(int number, const Plan::Op& op) {
    for (const Plan::Ref& target : op.targets) {
      const int gpu = block(number).gpu;
      const bool hits = std::ranges::any_of(unflushed_, [&](const auto& put) {
        const Plan::Ref& source = put.second;
        const bool here = target.access == Access::group || target.rank == gpu;
        return here && target.buffer == source.buffer &&
               target.index < source.index + source.size &&
               source.index < target.index + target.size;
      });
      if (hits) flush_all_but(number, -1);
    }
  }

  /// The thread block whose channel a put to another host takes: one that it tells, if it can.
  int put_partner(const Block& from, std::size_t k, int gpu) {
    for (const int to : from.signals[k]) {
      if (block(to).gpu == gpu) return to;
    }
    return partner(from, gpu);
  }

  void write_op(int number, std::size_t k) {
    const Block& at = block(number);
    Plan::Op op = at.said[k];
    std::vector<int> told = at.signals[k];
    flush_before_overwriting(number, op);
    if (op.channel_type == Plan::Channel::port) {
      const int to = put_partner(at, k, op.targets[0].rank);
      op.channels = {line(number, to, false).id};
      if (told.size() == 1 && told[0] == to) {
        flush_all_but(number, op.channels[0]);
        op.type = find_mscclpp_op("pws");
        told.clear();
      }
      unflushed_.emplace_back(op.channels[0], op.sources[0]);
    }
    append(number, std::move(op));
    announce(number, told);
  }

  void write_block(int number) {
    MscclppNops nops(plan_);
    nops_ = &nops;
    unflushed_.clear();
    speak(number, block(number).greets, false, true);
    speak(number, block(number).greeted_by, true, true);
    for (std::size_t k = 0; k < block(number).ops.size(); ++k) {
      speak(number, block(number).waits[k], true, false);
      write_op(number, k);
    }
    announce(number, block(number).ends_for);
    flush_all_but(number, -1);
    speak(number, block(number).ended_by, true, false);
    Plan::ThreadBlock made;
    made.ops.assign(std::make_move_iterator(block(number).made.begin()),
                    std::make_move_iterator(block(number).made.end()));
    plan_.gpus[static_cast<std::size_t>(block(number).gpu)].blocks.push_back(std::move(made));
  }

  void count_tables() {
    for (Plan::Gpu& gpu : plan_.gpus) {
      for (Plan::ThreadBlock& block : gpu.blocks) {
        const MscclppTables tables = tables_of(block);
        for (std::size_t type = 0; type < 4; ++type) {
          block.channels[type] = static_cast<int>(tables.channels[type].size());
          block.remote_buffers[type] = static_cast<int>(tables.buffers[type].size());
        }
      }
    }
  }

  void check_limits() {
    std::vector<Diagnostic> problems = check_mscclpp_limits(plan_);
    for (Diagnostic& problem : problems) {
      problem.suggestion =
          "a program with fewer units, trees, channels or peers per lane needs fewer; more lanes "
          "divide the ops among more thread blocks";
    }
    refuse_if_any(std::move(problems));
    check_blocks();
  }

  /// Thread blocks wait for each other, so that all have to run, and each has as many threads as a
  /// multiprocessor's registers are enough for.
  void check_blocks() const {
    std::size_t most = 0;
    for (const Plan::Gpu& gpu : plan_.gpus) most = std::max(most, gpu.blocks.size());
    const int at_once = options_.multiprocessors;
    if (at_once == 0 || most <= static_cast<std::size_t>(at_once)) return;
    throw Error(ErrorKind::unsupported,
                fmt::format("{} of a GPU wait for each other, and it runs {} at once",
                            counted(most, "thread block"), at_once),
                "an algorithm with fewer lanes, or with fewer peers of a lane");
  }

  void note(std::vector<std::string>& notes) const {
    std::size_t most = 0;
    std::size_t ops = 0;
    std::int64_t swapped = 0;
    std::size_t flushes = 0;
    std::int64_t scratch = 0;
    for (const Plan::Gpu& gpu : plan_.gpus) {
      scratch = std::max(scratch, gpu.chunks[2]);
      most = std::max(most, gpu.blocks.size());
      for (const Plan::ThreadBlock& block : gpu.blocks) {
        ops = std::max(ops, block.ops.size());
        for (const Plan::Op& op : block.ops) {
          flushes += op.type->flushes ? 1 : 0;
          swapped += op.type->kind == Kind::get && op.sources[0].index != op.targets[0].index;
        }
      }
    }
    notes.push_back(fmt::format("up to {} of a GPU, up to {} of a thread block",
                                counted(most, "thread block"), counted(ops, "op")));
    std::int64_t chunks = 1;
    for (const Plan::Gpu& gpu : plan_.gpus)
      chunks = std::max({chunks, gpu.chunks[0], gpu.chunks[1]});
    notes.push_back(
        fmt::format("the size of the larger buffer must be a multiple of {} bytes: {} of "
                    "{} each",
                    chunks * plan_.alignment, counted(static_cast<std::size_t>(chunks), "chunk"),
                    plan_.alignment));
    if (scratch > chunks) {
      notes.push_back(fmt::format("scratch of a GPU is {:.1f} times the message",
                                  static_cast<double>(scratch) / static_cast<double>(chunks)));
    }
    if (flushes > 0) {
      notes.push_back(
          fmt::format("{} through port channels, which MSCCL++ 0.9 takes for nothing: with it, "
                      "what was put may be overwritten before it has gone",
                      counted(flushes, "flush", "flushes")));
    }
    if (ops_.reordered() > 0) {
      notes.push_back(
          fmt::format("{} their local slice first, in another order than the program: "
                      "the last bit may differ between ranks",
                      ops_.reordered() == 1 ? "1 combine adds"
                                            : fmt::format("{} combines add", ops_.reordered())));
    }
    if (swapped > 0) {
      notes.push_back(fmt::format(
          "{} between different indices by get, which MSCCL++ 0.9 does "
          "wrongly: it takes one offset for the other",
          swapped == 1 ? "1 slice is copied" : fmt::format("{} slices are copied", swapped)));
    }
  }

  const Program& program_;
  const WritingOptions& options_;
  Plan plan_;
  MscclppOps ops_;
  std::vector<Block> blocks_;
  std::vector<int> block_of_;
  std::vector<std::size_t> position_;  ///< of an op in its block
  std::vector<int> first_;             ///< block of each GPU
  std::map<std::pair<int, int>, int> semaphores_;
  std::map<std::pair<int, int>, std::pair<int, int>> channels_;  ///< ends of lower and upper block
  MscclppNops* nops_ = nullptr;                                  ///< of the block at hand
  /// Channel and source of every put that may still read its source.
  std::vector<std::pair<int, Plan::Ref>> unflushed_;
};

}  // namespace

MscclppPlan mscclpp_plan_of(const Program& program, const WritingOptions& options,
                            std::vector<std::string>& notes) {
  return Scheduler(program, options).schedule(notes);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "exec/free_memory.h"
#include "exec/host/host_data.h"
#include "exec/host/host_memory.h"
#include "exec/host/host_run.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/message_runner.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/processes.h"
#include "exec/room.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

HostData data_of(const Program& program, const RunOptions& options, int rank) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(options.type));
  return {program,
          ElementLayout(program.contract, options.size_bytes / element_bytes),
          options.type,
          options.op,
          1,
          rank};
}

/// What the processes of this computer allocate, were all like this one.
MemoryNeed need_of(const HostData& data, const RunOptions& options, const Processes& processes) {
  const int mine = processes.transport.process();
  MemoryNeed need{.owner = "this computer", .available = free_memory_bytes() * kFreeMemoryShare};
  const auto sizes = buffer_sizes(data.program, data.layout, size_of(data.type));
  const std::vector<int> homes = processes_of_places(data.program);
  for (int i = 0; i < processes.sharing; ++i) {
    for (std::size_t place = 0; place < sizes.size(); ++place) {
      if (homes[place] == mine) need.add_buffers(sizes[place], allocated_bytes);
    }
    need.add("commands", 3 * lowered_bytes(data.program), false);
    need.add("messages under way", static_cast<double>(kMessageScratchBytes), false);
    if (options.check) need.add("checking", check_scratch_bytes(data), true);
  }
  return need;
}

/// All that a process has of a program: made before anybody runs it.
struct Prepared {
  Prepared(const LanePrograms& lowered, MessagePlan steps, const HostData& data,
           Transport& transport)
      : plan(std::move(steps)),
        memory(lowered),
        runner(plan, memory, data.type, data.op, transport) {}

  const MessagePlan plan;
  HostMemory memory;
  MessageRunner runner;
};

std::unique_ptr<Prepared> prepare(const HostData& data, const RunOptions& options,
                                  const Processes& processes) {
  const std::vector<MemoryNeed> needs{need_of(data, options, processes)};
  if (const auto shortage = find_shortage(needs, options.size_bytes)) throw *shortage;
  const Program& program = data.program;
  const std::size_t element_bytes = size_of(options.type);
  const int mine = processes.transport.process();
  LanePrograms lowered =
      lower(program, options.size_bytes / static_cast<std::int64_t>(element_bytes), element_bytes);
  const std::vector<int> homes = processes_of_places(program);
  MessagePlan plan =
      plan_messages(program, lowered, common_order(program, lowered), homes, mine, element_bytes);
  for (std::size_t place = 0; place < homes.size(); ++place) {
    if (homes[place] != mine) lowered.buffer_bytes[place] = {};
  }
  return std::make_unique<Prepared>(lowered, std::move(plan), data, processes.transport);
}

/// Tells the watchdog what it watches, as long as it lives.
class Watched {
 public:
  Watched(Watchdog* watchdog, const Program& program, double timeout_s)
      : watchdog_(watchdog), timeout_s_(timeout_s) {
    if (watchdog_ != nullptr) watchdog_->expect(&program, timeout_s_);
  }
  ~Watched() {
    if (watchdog_ != nullptr) watchdog_->expect(nullptr, timeout_s_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Watchdog* const watchdog_;
  const double timeout_s_;
};

/// Waits for all others, as the board shows.
class Meeting {
 public:
  explicit Meeting(const Board& board) : state_(board.mine()) {
    state_.phase.store(Phase::meeting);
    state_.progress.fetch_add(1);
  }
  ~Meeting() {
    state_.progress.fetch_add(1);
    state_.phase.store(Phase::working);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

 private:
  RankState& state_;
};

/// Why a process can't take part in a run.
struct Refusal {
  bool is_refused = false;
  ErrorKind kind = ErrorKind::runtime;
  std::string message;
  std::string help;
};

Refusal refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    return {true, error.kind(), first.message, first.suggestion};
  } catch (const std::bad_alloc&) {
    return {true, ErrorKind::unsupported, "there is not enough memory to prepare the run", ""};
  }
  return {};
}

/// Throws the error of all, where there is one; rank 0 tells it.
[[noreturn]] void throw_together(const Processes& processes, const Refusal& refusal) {
  if (processes.transport.process() > 0) throw ToldElsewhere(refusal.kind, refusal.message);
  if (refusal.kind == ErrorKind::unsupported) throw OutOfMemory(refusal.message, refusal.help);
  throw Error(refusal.kind, refusal.message, refusal.help);
}

/// Returns when all processes have agreed; throws in all of them when they can't.
void agree(const Processes& processes, const Refusal& mine, const Fingerprint& print) {
  Packed packed;
  packed.put(mine.is_refused);
  packed.put(mine.kind);
  packed.put(mine.message);
  packed.put(mine.help);
  packed.put(print);
  const Meeting meeting(processes.board);
  const auto all = gather_from_all(processes.transport, packed.bytes());
  std::vector<Fingerprint> prints(all.size());
  Refusal first;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Unpacking unpacking(all[rank]);
    Refusal refusal;
    unpacking.get(refusal.is_refused);
    unpacking.get(refusal.kind);
    unpacking.get(refusal.message);
    unpacking.get(refusal.help);
    unpacking.get(prints[rank]);
    if (!refusal.is_refused || first.is_refused) continue;
    first = refusal;
    first.message = fmt::format("rank {}: {}", rank, refusal.message);
  }
  const std::vector<std::string> different = disagreements(prints);
  if (!different.empty()) {
    std::string message = "the processes were not asked the same: ";
    for (const std::string& sentence : different) {
      message += (&sentence == &different.front() ? "" : "; ") + sentence;
    }
    throw_together(processes, {true, ErrorKind::usage, message,
                               "start the same espalier with the same arguments everywhere"});
  }
  if (first.is_refused) throw_together(processes, first);
}

/// Tells the others what this process is at: the op that its oldest step belongs to.
void show(const MessageRunner& runner, RankState& state) {
  state.progress.fetch_add(1, std::memory_order_relaxed);
  if (runner.is_over()) {
    state.op.store(RankState::kNothing, std::memory_order_relaxed);
    return;
  }
  const MessageStep& step = runner.oldest();
  state.position.store(step.position, std::memory_order_relaxed);
  state.awaited.store(step.peer, std::memory_order_relaxed);
  state.op.store(step.op, std::memory_order_relaxed);
}

/// Runs the program's part of this process once; all processes begin at about the same time.
double run_once(const Processes& processes, const Program& program, MessageRunner& runner,
                std::vector<OpTiming>* timeline) {
  RankState& state = processes.board.mine();
  const int patience = processes.is_crowded ? kCrowdedPatience : kAlonePatience;
  {
    const Meeting meeting(processes.board);
    meet(processes.transport, patience);
  }
  if (timeline != nullptr) timeline->assign(program.ops.size(), {.op = 0, .start_s = -1});
  const Clock::time_point start = Clock::now();
  runner.start(timeline);
  state.runs.fetch_add(1);
  show(runner, state);
  state.phase.store(Phase::running);
  drive(
      [&] {
        const bool moved = runner.advance();
        if (moved) show(runner, state);
        return moved;
      },
      [&] { return runner.is_over(); }, patience);
  const double time_s = std::chrono::duration<double>(Clock::now() - start).count();
  state.phase.store(Phase::working);
  return time_s;
}

/// Of each op from when its first step began until its last one was over, in whichever processes.
void merge(std::vector<OpTiming>& timeline, const std::vector<OpTiming>& other) {
  for (OpId op = 0; op < timeline.size(); ++op) {
    OpTiming& timing = timeline[op];
    timing.op = op;
    if (other[op].start_s < 0) continue;
    timing.start_s =
        timing.start_s < 0 ? other[op].start_s : std::min(timing.start_s, other[op].start_s);
    timing.end_s = std::max(timing.end_s, other[op].end_s);
  }
}

/// One report of what all processes found.
RunReport gather(const Processes& processes, const RunOptions& options, const CheckedRuns& mine) {
  Packed packed;
  packed.put(mine.times_s);
  packed.put(mine.damage.wrong);
  packed.put(mine.damage.notes);
  packed.put(mine.timeline);
  const Meeting meeting(processes.board);
  RunReport report;
  ExecutedPart& executed = report.executed.emplace();
  std::vector<double> slowest_s;
  std::int64_t wrong = 0;
  for (const auto& bytes : gather_from_all(processes.transport, packed.bytes())) {
    CheckedRuns runs;
    Unpacking unpacking(bytes);
    unpacking.get(runs.times_s);
    unpacking.get(runs.damage.wrong);
    unpacking.get(runs.damage.notes);
    unpacking.get(runs.timeline);
    slowest_s.resize(runs.times_s.size(), 0);
    double mean_s = 0;
    for (std::size_t i = 0; i < runs.times_s.size(); ++i) {
      slowest_s[i] = std::max(slowest_s[i], runs.times_s[i]);
      mean_s += runs.times_s[i] / static_cast<double>(runs.times_s.size());
    }
    executed.rank_times_s.push_back(mean_s);
    wrong += runs.damage.wrong;
    executed.damage.insert(executed.damage.end(), runs.damage.notes.begin(),
                           runs.damage.notes.end());
    if (report.timeline.empty()) report.timeline.assign(runs.timeline.size(), {0, -1});
    merge(report.timeline, runs.timeline);
  }
  // Ops that move nothing, as the message is too short for them, are in no process.
  for (OpTiming& timing : report.timeline) timing.start_s = std::max(timing.start_s, 0.0);
  if (options.check) executed.wrong = wrong;
  note_times(report, slowest_s);
  return report;
}

/// "rank 0: node7, socket 1"; "ranks 0-3: node7" where several in a row are at the same place.
std::vector<std::string> describe_places(const std::vector<std::string>& places) {
  std::vector<std::string> lines;
  for (std::size_t rank = 0; rank < places.size();) {
    std::size_t end = rank;
    while (end < places.size() && places[end] == places[rank]) ++end;
    lines.push_back(end - rank == 1 ? fmt::format("rank {}: {}", rank, places[rank])
                                    : fmt::format("ranks {}-{}: {}", rank, end - 1, places[rank]));
    rank = end;
  }
  return lines;
}

}  // namespace

MpiBackend::MpiBackend(const Processes& processes) : processes_(processes) {}

std::optional<std::string> MpiBackend::unsupported(const Program& program, const Target&) const {
  const int processes = processes_.transport.processes();
  if (program.ranks() != processes) {
    return fmt::format("the program has {} ranks, but there are {} processes", program.ranks(),
                       processes);
  }
  if (std::ranges::any_of(program.ops, [](const Op& op) { return op.kind != OpKind::combine; })) {
    return "the program computes or waits, and processes only exchange data";
  }
  return std::nullopt;
}

void MpiBackend::require_room(const Program& program, const Target& target,
                              const RunOptions& options) {
  if (unsupported(program, target)) return;
  const Watched watched(processes_.watchdog, program, options.timeout_s);
  const HostData data = data_of(program, options, processes_.transport.process());
  const Refusal refusal = refusal_of([&] {
    require_sane(options);
    const std::vector<MemoryNeed> needs{need_of(data, options, processes_)};
    if (const auto shortage = find_shortage(needs, options.size_bytes)) throw *shortage;
  });
  agree(processes_, refusal, fingerprint(program, target, options, processes_.build));
}

RunReport MpiBackend::run(const Program& program, const Target& target, const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  const Watched watched(processes_.watchdog, program, options.timeout_s);
  const HostData data = data_of(program, options, processes_.transport.process());
  std::unique_ptr<Prepared> prepared;
  const Refusal refusal = refusal_of([&] {
    require_sane(options);
    prepared = prepare(data, options, processes_);
  });
  agree(processes_, refusal, fingerprint(program, target, options, processes_.build));
  const CheckedRuns runs =
      run_checked(data, prepared->memory, options, [&](std::vector<OpTiming>* timeline) {
        return run_once(processes_, program, prepared->runner, timeline);
      });
  RunReport report = gather(processes_, options, runs);
  report.executed->notes = describe_places(processes_.places);
  report.message_bytes =
      data.layout.message_elements() * static_cast<std::int64_t>(size_of(options.type));
  report.transfers = count_transfers(program);
  report.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace espalier

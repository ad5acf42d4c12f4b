// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/mpi_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "exec/checked_runs.h"
#include "exec/free_memory.h"
#include "exec/host/host_data.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/agreement.h"
#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/message_runner.h"
#include "exec/mpi/packed.h"
#include "exec/mpi/process_memory.h"
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

/// Throws OutOfMemory where what the processes of this computer allocate does not fit.
void require_room_for(const HostData& data, const Target& target, const RunOptions& options,
                      const Processes& processes, ProcessMemory& memory) {
  MemoryNeed here{.owner = "this computer", .available = free_memory_bytes() * kFreeMemoryShare};
  // All of them, were all like this one.
  for (int i = 0; i < processes.sharing; ++i) {
    here.add("commands", 3 * lowered_bytes(data.program), false);
  }
  std::vector<MemoryNeed> needs{std::move(here)};
  memory.add_needs(data, target, options, needs);
  if (const auto shortage = find_shortage(needs, options.size_bytes)) throw *shortage;
}

/// All that a process has of a program: made before anybody runs it.
struct Prepared {
  Prepared(MessagePlan steps) : plan(std::move(steps)) {}

  const MessagePlan plan;
  std::unique_ptr<ProcessPart> part;
  std::optional<MessageRunner> runner;
};

std::unique_ptr<Prepared> prepare(const HostData& data, const Target& target,
                                  const RunOptions& options, const Processes& processes,
                                  ProcessMemory& memory) {
  require_room_for(data, target, options, processes, memory);
  const Program& program = data.program;
  const std::size_t element_bytes = size_of(options.type);
  const int mine = processes.transport.process();
  LanePrograms lowered =
      lower(program, options.size_bytes / static_cast<std::int64_t>(element_bytes), element_bytes);
  const std::vector<int> homes = processes_of_places(program);
  auto prepared =
      std::make_unique<Prepared>(plan_messages(program, lowered, common_order(program, lowered),
                                               homes, mine, element_bytes, memory.scratch()));
  for (std::size_t place = 0; place < homes.size(); ++place) {
    if (homes[place] != mine) lowered.buffer_bytes[place] = {};
  }
  prepared->part = memory.prepare(data, target, lowered, prepared->plan);
  prepared->runner.emplace(prepared->plan, prepared->part->steps());
  return prepared;
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

/// Runs the program's part of this process once; all processes begin at about the same time. It
/// takes as long as since the first one here has begun.
double run_once(const Processes& processes, const Program& program, MessageRunner& runner,
                std::vector<OpTiming>* timeline) {
  RankState& state = processes.board.mine();
  const Patience patience = processes.is_crowded ? kCrowdedPatience : kAlonePatience;
  {
    const Meeting meeting(processes.board);
    meet(processes.transport, patience);
  }
  if (timeline != nullptr) timeline->assign(program.ops.size(), {.op = 0, .start_s = -1});
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  const std::int64_t start_ns = begin_of_run(processes.board, state.runs.fetch_add(1), now.count());
  runner.start(timeline);
  show(runner, state);
  state.phase.store(Phase::running);
  drive(
      [&] {
        const bool moved = runner.advance();
        if (moved) show(runner, state);
        return moved;
      },
      [&] { return runner.is_over(); }, [&] { runner.give_way(); }, patience);
  const std::chrono::nanoseconds end = Clock::now().time_since_epoch();
  const double time_s = 1e-9 * static_cast<double>(end.count() - start_ns);
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
  packed.put(mine.interval_s);
  packed.put(mine.damage.wrong);
  packed.put(mine.damage.notes);
  packed.put(mine.timeline);
  const Meeting meeting(processes.board);
  RunReport report;
  ExecutedPart& executed = report.executed.emplace();
  std::vector<double> slowest_s;
  for (const auto& bytes : gather_from_all(processes.transport, packed.bytes())) {
    CheckedRuns runs;
    Unpacking unpacking(bytes);
    unpacking.get(runs.times_s);
    unpacking.get(runs.interval_s);
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
    executed.interval_s = std::max(executed.interval_s, runs.interval_s);
    add_damage(executed, runs.damage);
    if (report.timeline.empty()) report.timeline.assign(runs.timeline.size(), {0, -1});
    merge(report.timeline, runs.timeline);
  }
  // Ops that move nothing, as the message is too short for them, are in no process.
  for (OpTiming& timing : report.timeline) timing.start_s = std::max(timing.start_s, 0.0);
  if (!options.check) executed.wrong.reset();
  note_times(report, slowest_s);
  return report;
}

}  // namespace

MpiBackend::MpiBackend(const Processes& processes, std::unique_ptr<ProcessMemory> memory)
    : processes_(processes), memory_(std::move(memory)) {}
MpiBackend::MpiBackend(const Processes& processes)
    : MpiBackend(processes, make_host_memory(processes)) {}
MpiBackend::~MpiBackend() = default;

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
    require_room_for(data, target, options, processes_, *memory_);
  });
  agree(processes_, refusal,
        fingerprint(program, target, options, processes_.build, memory_->name()));
}

RunReport MpiBackend::run(const Program& program, const Target& target, const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  const Watched watched(processes_.watchdog, program, options.timeout_s);
  const HostData data = data_of(program, options, processes_.transport.process());
  std::unique_ptr<Prepared> prepared;
  const Refusal refusal = refusal_of([&] {
    require_sane(options);
    prepared = prepare(data, target, options, processes_, *memory_);
  });
  agree(processes_, refusal,
        fingerprint(program, target, options, processes_.build, memory_->name()));
  const std::vector<std::string> notes = prepared->part->connect();
  const CheckedRuns runs = run_checked(
      program.contract.in_place, *prepared->part, options, [&](std::vector<OpTiming>* timeline) {
        return run_once(processes_, program, *prepared->runner, timeline);
      });
  RunReport report = gather(processes_, options, runs);
  prepared->part->disconnect();
  report.executed->notes = notes;
  report.message_bytes =
      data.layout.message_elements() * static_cast<std::int64_t>(size_of(options.type));
  report.transfers = count_transfers(program);
  report.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace espalier

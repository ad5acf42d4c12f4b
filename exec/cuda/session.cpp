// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

#include "core/error.h"
#include "exec/cuda/graph.h"
#include "exec/cuda/nccl_run.h"
#include "exec/cuda/repeat.h"
#include "exec/cuda/watch.h"
#include "exec/free_memory.h"
#include "exec/run_options.h"
#include "ir/print.h"

namespace espalier::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// A graph shows no progress but its end, which is waited for this many times longer than the same
// program took op by op.
constexpr double kGraphPatience = 10;

// Launches that are under way at a time: enough for a GPU never to wait for this computer, but of
// large graphs, which take longer, not so many ops that CUDA keeps whoever launches more waiting.
constexpr int kMaxLaunchesInFlight = 16;
constexpr std::size_t kOpsInFlight = 2048;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Gpus open(const SessionKey& key) {
  Gpus gpus = open_gpus(key.gpus);
  gpus.set.copy_engines = key.copy_engines;
  return gpus;
}

std::int64_t elements_of(const SessionKey& key) {
  return key.size_bytes / static_cast<std::int64_t>(size_of(key.type));
}

/// Of a GPU, or of this computer, whose memory is pinned.
MemoryNeed empty_need(int gpu) {
  if (gpu == DeviceSet::kHost) {
    return {.owner = "this computer", .available = free_memory_bytes() * kFreeMemoryShare};
  }
  return {.owner = fmt::format("GPU {}", gpu), .available = usable_bytes(gpu)};
}

double longest_compute_s(const Program& program) {
  return program.durations_s.empty() ? 0 : std::ranges::max(program.durations_s);
}

}  // namespace

Prepared::Prepared(const Program& a_program, const SessionKey& a_key)
    : key(a_key),
      program(a_program),
      gpus(open(key)),
      kind{program, ElementLayout(program.contract, elements_of(key)), key.type, key.op},
      lowered(lower(program, elements_of(key), size_of(key.type))),
      plan(plan_streams(program, lowered, gpus.set, size_of(key.type))) {}

std::vector<MemoryNeed> memory_needs(const Program& program, const SessionKey& key,
                                     const Prepared* prepared) {
  std::map<int, MemoryNeed> needs;  // by GPU, or DeviceSet::kHost
  for (const int gpu : key.gpus) {
    if (!needs.contains(gpu)) needs.emplace(gpu, empty_need(gpu));
  }
  const ElementLayout layout(program.contract, elements_of(key));
  const auto sizes = buffer_sizes(program, layout, size_of(key.type));
  for (std::size_t place = 0; place < sizes.size(); ++place) {
    needs.at(key.gpus[place]).add_buffers(sizes[place], PlaceMemory::allocated_bytes);
  }
  if (prepared != nullptr) {
    const auto need_of = [&](std::size_t device) -> MemoryNeed& {
      return needs.at(prepared->gpus.all[device].number);
    };
    const std::vector<double> tables = PlaceMemory::table_bytes(prepared->kind, prepared->gpus);
    for (std::size_t i = 0; i < tables.size(); ++i) need_of(i).add("tables", tables[i], false);
    const std::vector<Streams::Need> streams = Streams::needs(prepared->plan);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      MemoryNeed& need = need_of(static_cast<std::size_t>(prepared->plan.streams[i].device));
      need.add("copies of operands", static_cast<double>(streams[i].scratch), true);
      need.add("tables", static_cast<double>(streams[i].addresses), false);
    }
  }
  std::vector<MemoryNeed> all;
  for (auto& [gpu, need] : needs) all.push_back(std::move(need));
  return all;
}

Session::Session(std::shared_ptr<const Prepared> prepared)
    : prepared_(std::move(prepared)),
      program_(prepared_->program),
      memory_(prepared_->kind, prepared_->lowered, prepared_->gpus, prepared_->key.host_nodes),
      streams_(prepared_->kind, prepared_->plan, prepared_->gpus, memory_) {}

void Session::give_op_by_op(double timeout_s) {
  WatchedRun(program_, prepared_->lowered, plan(), streams_,
             timeout_s + longest_compute_s(program_))
      .run();
}

void Session::run_op_by_op(double timeout_s) {
  const Clock::time_point begin = Clock::now();
  give_op_by_op(timeout_s);
  // The last op has ended; what follows it in the streams are only events.
  require(cudaStreamSynchronize(streams_.origin()), "cudaStreamSynchronize",
          streams_.origin_gpu().number, "after the last op");
  op_by_op_s_ = seconds_since(begin);
}

/// Nothing where CUDA refuses; `refusal_` then says why.
GraphExec Session::capture(Trace how) {
  try {
    return make_graph(streams_.origin(), streams_.origin_gpu().number, [&] {
      streams_.trace(how);
      issue(plan(), streams_);
      streams_.trace(Trace::off);
    });
  } catch (const CallFailed& failed) {
    if (!refuses_graph(failed.status())) throw;
    streams_.trace(Trace::off);
    refusal_ = failed.diagnostics().front().message;
    return nullptr;
  }
}

/// Runs that are launched while earlier ones are under way. Inputs that a run in place overwrites
/// stay so: a GPU takes the same time for any values.
std::vector<double> Session::run_graph(const GraphExec& graph, int runs, double timeout_s) {
  const int gpu = streams_.origin_gpu().number;
  const std::size_t ops = std::max<std::size_t>(1, program_.ops.size());
  Repetition repetition{.stream = streams_.origin(), .gpu = gpu};
  repetition.give = [&] {
    require(cudaGraphLaunch(graph.get(), streams_.origin()), "cudaGraphLaunch", gpu);
  };
  repetition.in_flight = std::clamp(static_cast<int>(kOpsInFlight / ops), 2, kMaxLaunchesInFlight);
  repetition.patience_s = timeout_s + kGraphPatience * op_by_op_s_;
  repetition.stuck = [&] {
    return fmt::format(
        "the program, captured as a graph, has not finished within {:.3g} s, although it took "
        "{:.3g} s op by op",
        repetition.patience_s, op_by_op_s_);
  };
  return repeat(repetition, runs);
}

/// One run after the other, each watched op by op.
std::vector<double> Session::run_streams(int runs, double timeout_s) {
  Repetition repetition{.stream = streams_.origin(), .gpu = streams_.origin_gpu().number};
  repetition.give = [&] { give_op_by_op(timeout_s); };
  repetition.patience_s = timeout_s;
  repetition.stuck = [&] {
    return fmt::format("the streams have not come together within {:.3g} s after the last op",
                       timeout_s);
  };
  return repeat(repetition, runs);
}

std::vector<double> Session::run_timed(int runs, double timeout_s) {
  return graph_ ? run_graph(graph_, runs, timeout_s) : run_streams(runs, timeout_s);
}

void Session::note_damage(RunReport& report, Checked what) {
  add_damage(*report.executed, memory_.check(what));
}

std::vector<std::string> Session::notes() const {
  std::vector<std::string> all;
  for (PlaceId place = 0; place < program_.places(); ++place) {
    const int device = gpus().set.device_of_place[static_cast<std::size_t>(place)];
    if (device == DeviceSet::kHost) continue;
    const Gpu& gpu = gpus().all[static_cast<std::size_t>(device)];
    all.push_back(
        fmt::format("{:>4} on GPU {} ({})", place_name(program_, place), gpu.number, gpu.name));
  }
  for (const auto& [device, other] : plan().unmapped) {
    const auto mine = static_cast<std::size_t>(device);
    const auto its = static_cast<std::size_t>(other);
    all.push_back(fmt::format(
        "GPU {} copies what it needs from GPU {}, because it {}", gpus().all[mine].number,
        gpus().all[its].number,
        gpus().set.can_access[mine][its]
            ? fmt::format("can map the memory of at most {} others", gpus().set.max_peers)
            : "cannot map its memory"));
  }
  for (std::string& line : memory_.misplaced_hosts()) all.push_back(std::move(line));
  return all;
}

/// Out of place, looks at what the timed runs left. In place each worked on what the one before had
/// left, whose values nobody knows, so there are only guards to look at; but one launch more of the
/// same graph, from fresh inputs, tells whether it still does what it did at first.
void Session::check_timed_runs(RunReport& report, double timeout_s) {
  const bool in_place = program_.contract.in_place;
  note_damage(report, in_place ? Checked::guards : Checked::everything);
  if (!in_place) return;
  memory_.fill();
  run_timed(1, timeout_s);
  note_damage(report, Checked::everything);
}

/// The graph is another way of saying the same, so it has to prove itself, too. One launch alone:
/// should it not end, nothing else is stuck behind it.
void Session::prove_graph(RunReport& report, const RunOptions& options) {
  if (options.check) memory_.fill();
  run_graph(graph_, 1, options.timeout_s);
  if (options.check) note_damage(report, Checked::everything);
}

/// Of one more run.
std::vector<OpTiming> Session::timeline(double timeout_s) {
  const GraphExec traced = graph_ ? capture(Trace::graph) : nullptr;
  if (traced) {
    run_graph(traced, 1, timeout_s);
  } else {
    run_streams(1, timeout_s);
  }
  return streams_.timeline();
}

RunReport Session::run(const RunOptions& options) {
  RunReport report;
  report.executed.emplace().notes = notes();
  memory_.fill();
  run_op_by_op(options.timeout_s);
  if (options.check) note_damage(report, Checked::everything);
  if (!graph_ && refusal_.empty()) graph_ = capture(Trace::off);
  if (graph_) prove_graph(report, options);
  std::vector<double> times_s = run_timed(options.warmup + options.iterations, options.timeout_s);
  note_times(report, std::span(times_s).subspan(static_cast<std::size_t>(options.warmup)));
  if (options.check) check_timed_runs(report, options.timeout_s);
  if (options.timeline) report.timeline = timeline(options.timeout_s);
  if (!graph_) {
    report.executed->notes.push_back(fmt::format(
        "CUDA refuses to make a graph of the program ({}): it ran in streams, and the times "
        "contain what it takes to give each op to them",
        refusal_));
  }
  return report;
}

RunReport Session::run_nccl(NcclRanks& nccl, const RunOptions& options) {
  return NcclRun(prepared_->kind, prepared_->gpus, memory_, nccl).run(options);
}

}  // namespace espalier::cuda

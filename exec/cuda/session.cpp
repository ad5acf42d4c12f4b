// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.h"
#include "exec/run_options.h"
#include "exec/stuck_report.h"

namespace espalier::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at whether a GPU has finished. Times are taken by the GPU, not by these looks.
constexpr std::chrono::microseconds kPollInterval{20};

// A graph shows no progress but its end, which is waited for this many times longer than the same
// program took op by op.
constexpr double kGraphPatience = 10;

// Launches that are under way at a time: enough for a GPU never to wait for this computer.
constexpr int kLaunchesInFlight = 16;

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

double longest_compute_s(const Program& program) {
  return program.durations_s.empty() ? 0 : std::ranges::max(program.durations_s);
}

}  // namespace

Session::Session(const Program& program, const SessionKey& key)
    : key_(key),
      program_(program),
      gpus_(open(key)),
      kind_{program_, ElementLayout(program_.contract, elements_of(key)), key.type, key.op},
      lowered_(lower(program_, elements_of(key), size_of(key.type))),
      plan_(plan_streams(program_, lowered_, gpus_.set, size_of(key.type))),
      memory_(kind_, lowered_, gpus_),
      streams_(kind_, plan_, gpus_, memory_) {}

/// Gives the streams every op, and looks on.
void Session::run_op_by_op(double timeout_s) {
  const double patience_s = timeout_s + longest_compute_s(program_);
  const Clock::time_point begin = Clock::now();
  streams_.trace(true);
  issue(plan_, streams_);
  streams_.trace(false);
  std::vector<std::vector<OpId>> queues(plan_.streams.size());  // ops that have not ended
  for (auto command = plan_.commands.rbegin(); command != plan_.commands.rend(); ++command) {
    if (command->ends_op) queues[command->stream].push_back(command->index);
  }
  std::vector<bool> done(program_.ops.size(), false);
  Clock::time_point latest = Clock::now();
  for (std::size_t left = program_.ops.size(); left > 0;) {
    const std::size_t before = left;
    for (std::vector<OpId>& queue : queues) {
      for (; !queue.empty() && streams_.has_ended(queue.back()); queue.pop_back(), --left) {
        done[queue.back()] = true;
      }
    }
    if (left < before) {
      latest = Clock::now();
    } else if (seconds_since(latest) > patience_s) {
      abandon_devices();
      throw stuck_error(fmt::format("no op has ended on the GPUs for {:g} s", patience_s),
                        program_, lowered_, unfinished_lanes(program_, lowered_, done));
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
  // The last op has ended; what follows it in the streams are only events.
  require(cudaStreamSynchronize(streams_.origin()), "cudaStreamSynchronize",
          streams_.origin_gpu().number);
  op_by_op_s_ = seconds_since(begin);
}

void Session::capture() {
  if (graph_) return;
  const int gpu = streams_.origin_gpu().number;
  use_gpu(gpu);
  require(cudaStreamBeginCapture(streams_.origin(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture", gpu);
  cudaGraph_t captured = nullptr;
  try {
    issue(plan_, streams_);
  } catch (...) {
    // The capture has failed, and the first failure is the one to report.
    if (cudaStreamEndCapture(streams_.origin(), &captured) == cudaSuccess) Graph{captured};
    cudaGetLastError();
    throw;
  }
  require(cudaStreamEndCapture(streams_.origin(), &captured), "cudaStreamEndCapture", gpu);
  const Graph graph(captured);
  use_gpu(gpu);
  cudaGraphExec_t made = nullptr;
  require(cudaGraphInstantiateWithFlags(&made, captured, 0), "cudaGraphInstantiate", gpu);
  graph_.reset(made);
  require(cudaGraphUpload(made, streams_.origin()), "cudaGraphUpload", gpu);
  require(cudaStreamSynchronize(streams_.origin()), "cudaStreamSynchronize", gpu);
}

void Session::launch(cudaEvent_t begin, cudaEvent_t end) {
  const int gpu = streams_.origin_gpu().number;
  use_gpu(gpu);
  require(cudaEventRecord(begin, streams_.origin()), "cudaEventRecord", gpu);
  require(cudaGraphLaunch(graph_.get(), streams_.origin()), "cudaGraphLaunch", gpu);
  require(cudaEventRecord(end, streams_.origin()), "cudaEventRecord", gpu);
}

/// Returns the seconds the launch took on the GPU.
double Session::wait_for_launch(cudaEvent_t begin, cudaEvent_t end, double timeout_s) {
  const int gpu = streams_.origin_gpu().number;
  const double patience_s = timeout_s + kGraphPatience * op_by_op_s_;
  const Clock::time_point start = Clock::now();
  for (cudaError_t status; (status = query(end)) != cudaSuccess;) {
    if (status != cudaErrorNotReady) {
      require(status, "cudaEventQuery", gpu, "while the program ran as a graph");
    }
    if (seconds_since(start) > patience_s) {
      abandon_devices();
      throw Error(ErrorKind::runtime,
                  fmt::format("the program, captured as a graph, has not finished within {:.3g} s, "
                              "though op by op it took {:.3g} s",
                              patience_s, op_by_op_s_));
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  float elapsed_ms = 0;
  require(cudaEventElapsedTime(&elapsed_ms, begin, end), "cudaEventElapsedTime", gpu);
  return elapsed_ms * 1e-3;
}

/// The warm-up runs and the timed ones; the seconds of the latter.
std::vector<double> Session::run_graph(const RunOptions& options) {
  const int gpu = streams_.origin_gpu().number;
  // Inputs that a run overwrites are made anew before the next one, outside of the time.
  const int in_flight = program_.contract.in_place ? 1 : kLaunchesInFlight;
  struct Launch {
    Event begin;
    Event end;
  };
  std::vector<Launch> launches;
  use_gpu(gpu);
  for (int i = 0; i < in_flight; ++i) {
    launches.push_back({make_event(gpu, true), make_event(gpu, true)});
  }
  const auto slot = [&](int run) -> const Launch& {
    return launches[static_cast<std::size_t>(run % in_flight)];
  };
  std::vector<double> times_s;
  const int runs = options.warmup + options.iterations;
  for (int run = 0; run < runs + in_flight; ++run) {
    if (run >= in_flight) {  // its slot is needed again, or nothing is left to be launched
      const int ended = run - in_flight;
      const double time_s =
          wait_for_launch(slot(ended).begin.get(), slot(ended).end.get(), options.timeout_s);
      if (ended >= options.warmup) times_s.push_back(time_s);
    }
    if (run >= runs) continue;
    if (program_.contract.in_place) memory_.fill_inputs();
    launch(slot(run).begin.get(), slot(run).end.get());
  }
  return times_s;
}

void Session::note_damage(RunReport& report) {
  Damage damage = memory_.check();
  report.wrong = report.wrong.value_or(0) + damage.wrong;
  report.damage.insert(report.damage.end(), damage.notes.begin(), damage.notes.end());
}

std::vector<std::string> Session::notes() const {
  std::vector<std::string> all;
  for (PlaceId place = 0; place < program_.places(); ++place) {
    const int device = gpus_.set.device_of_place[static_cast<std::size_t>(place)];
    if (device == DeviceSet::kHost) continue;
    const Gpu& gpu = gpus_.all[static_cast<std::size_t>(device)];
    all.push_back(
        fmt::format("{:>4} on GPU {} ({})", place_name(program_, place), gpu.number, gpu.name));
  }
  for (const auto& [device, other] : plan_.unmapped) {
    all.push_back(fmt::format(
        "GPU {} copies what it needs of GPU {}: it may map the memory of {} others at most",
        gpus_.all[static_cast<std::size_t>(device)].number,
        gpus_.all[static_cast<std::size_t>(other)].number, gpus_.set.most_peers));
  }
  return all;
}

RunReport Session::run(const RunOptions& options) {
  RunReport report;
  report.notes = notes();
  memory_.fill();
  run_op_by_op(options.timeout_s);
  if (options.check) note_damage(report);
  capture();
  if (options.check) {
    // The graph is another way of saying the same, so it has to prove itself too.
    memory_.fill();
    RunOptions once = options;
    once.warmup = 0;
    once.iterations = 1;
    run_graph(once);
    note_damage(report);
  }
  note_times(report, run_graph(options));
  if (options.timeline) {
    if (program_.contract.in_place) memory_.fill_inputs();
    run_op_by_op(options.timeout_s);
    report.timeline = streams_.timeline();
  }
  return report;
}

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/watch.h"

#include <fmt/format.h>

#include <thread>

#include "exec/lanes/stuck_report.h"

namespace espalier::cuda {
namespace {

// Between two looks at whether a GPU has finished.
constexpr std::chrono::microseconds kPollInterval{20};

// Commands of a stream that are under way at a time. Each op of a watched run comes with two events
// more, so this is a third or less of what CUDA queues; and enough for the stream never to run dry.
constexpr std::size_t kWindow = 128;

}  // namespace

WatchedRun::WatchedRun(const Program& program, const LanePrograms& lowered, const StreamPlan& plan,
                       Streams& streams, double patience_s)
    : program_(program),
      lowered_(lowered),
      plan_(plan),
      streams_(streams),
      patience_s_(patience_s),
      queues_(plan.streams.size()),
      done_(program.ops.size(), false) {}

bool WatchedRun::Queue::is_full() const { return !ops.empty() && given - ended >= kWindow; }

void WatchedRun::run() {
  streams_.trace(Trace::streams);
  std::size_t next = 0;
  for (std::size_t left = program_.ops.size(); left > 0; ++next) {
    const StreamCommand& command = plan_.commands[next];
    give_next(command);
    if (command.ends_op) --left;
  }
  while (!all_ended()) look();
  for (; next < plan_.commands.size(); ++next) give(plan_.commands[next], streams_);
  streams_.trace(Trace::off);
}

void WatchedRun::give_next(const StreamCommand& command) {
  Queue& queue = queues_[command.stream];
  while (queue.is_full()) look();
  give(command, streams_);
  ++queue.given;
  if (!command.ends_op) return;
  if (all_ended()) latest_ = Clock::now();
  queue.ops.push_back({command.op, queue.given});
  ++under_way_;
}

void WatchedRun::look() {
  const std::size_t before = under_way_;
  for (Queue& queue : queues_) {
    while (!queue.ops.empty() && streams_.has_ended(queue.ops.front().op)) {
      done_[queue.ops.front().op] = true;
      queue.ended = queue.ops.front().given;
      queue.ops.pop_front();
      --under_way_;
    }
  }
  if (under_way_ < before) {
    latest_ = Clock::now();
  } else if (std::chrono::duration<double>(Clock::now() - latest_).count() > patience_s_) {
    abandon_devices();
    throw stuck_error(fmt::format("no op has finished on the GPUs for {:g} s", patience_s_),
                      program_, lowered_, unfinished_lanes(program_, lowered_, done_));
  } else {
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#include "exec/host/lane_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/units.h"

namespace espalier {
namespace {

// Values of an event; any other is the lane that was parked there last.
constexpr std::uint32_t kNobody = ~std::uint32_t{0};
constexpr std::uint32_t kRecorded = kNobody - 1;

// Keeps a timeout within what a clock's duration holds.
constexpr double kLongestTimeout_s = 1e8;

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::chrono::steady_clock::duration clock_duration(double duration_s) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::min(duration_s, kLongestTimeout_s)));
}

}  // namespace

LaneRunner::LaneRunner(const Program& program, const LanePrograms& lowered, Combine combine,
                       int threads)
    : program_(program),
      lowered_(lowered),
      combine_(std::move(combine)),
      lanes_(lowered.lanes.size()),
      events_(lowered.event_ops.size()) {
  const std::size_t wanted =
      std::clamp<std::size_t>(lanes_.size(), 1, static_cast<std::size_t>(std::max(threads, 1)));
  ready_.reserve(lanes_.size());  // so that threads never allocate
  threads_.reserve(wanted);
  try {
    while (threads_.size() < wanted) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& refused) {
    if (threads_.empty()) {
      throw Error(ErrorKind::unsupported, fmt::format("can't start a thread: {}", refused.what()));
    }
  }
  thread_count_ = static_cast<int>(threads_.size());
}

LaneRunner::~LaneRunner() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

double LaneRunner::run(double timeout_s, std::vector<OpTiming>* timeline) {
  std::unique_lock lock(mutex_);
  reset();
  timeline_ = timeline;
  if (timeline != nullptr) timeline->assign(program_.ops.size(), {});
  ++runs_;
  start_.notify_all();
  wait_for_end(lock, timeout_s);
  if (outcome_ == Outcome::stuck) {
    throw stuck_error("the program can't go on: every lane that is left waits for another",
                      program_, lowered_, blocked_lanes());
  }
  return seconds(end_time_ - begin_time_);
}

// Everything as before the first command. Called while no thread is inside a run.
void LaneRunner::reset() {
  for (auto& event : events_) event.store(kNobody, std::memory_order_relaxed);
  ready_.clear();
  for (std::size_t lane = lanes_.size(); lane-- > 0;) {
    lanes_[lane].next_command.store(lowered_.lanes[lane].begin, std::memory_order_relaxed);
    lanes_[lane].wake_at.reset();
    make_ready_or_park(static_cast<std::uint32_t>(lane));
  }
  computing_ = {};
  cancelled_.store(false, std::memory_order_relaxed);
  finished_ = 0;
  running_ = 0;
  arrived_ = 0;
  inside_ = thread_count_;
  outcome_ = Outcome::none;
}

// A lane that begins with a wait is parked from the start, so that it goes on as soon as it can.
void LaneRunner::make_ready_or_park(std::uint32_t lane) {
  const Command first = lowered_.commands[lowered_.lanes[lane].begin];
  if (first.kind != CommandKind::wait || !park(lane, first.index)) ready_.push_back(lane);
}

// Sleeps until all threads have left the run; cancels it when no op has ended for too long.
void LaneRunner::wait_for_end(std::unique_lock<std::mutex>& lock, double timeout_s) {
  const auto all_left = [&] { return inside_ == 0; };
  const Clock::duration timeout = clock_duration(timeout_s);
  std::uint64_t seen = progress();
  while (!end_.wait_for(lock, timeout, all_left)) {
    const std::uint64_t now = progress();
    if (now != seen || !computing_.empty() || arrived_ < thread_count_) {
      seen = now;
      continue;
    }
    const Error error = stuck_error("no op has ended for " + format_seconds(timeout_s), program_,
                                    lowered_, blocked_lanes());
    cancelled_.store(true, std::memory_order_relaxed);
    work_.notify_all();
    end_.wait(lock, all_left);
    throw error;
  }
}

// Commands done so far, in all lanes.
std::uint64_t LaneRunner::progress() const {
  std::uint64_t done = 0;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    done += lanes_[lane].next_command.load(std::memory_order_relaxed) - lowered_.lanes[lane].begin;
  }
  return done;
}

std::vector<BlockedLane> LaneRunner::blocked_lanes() const {
  std::vector<BlockedLane> blocked;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const std::uint32_t next = lanes_[lane].next_command.load(std::memory_order_relaxed);
    if (next == lowered_.lanes[lane].end) continue;
    const Command& command = lowered_.commands[next];
    BlockedLane& entry = blocked.emplace_back();
    entry.lane = lane;
    if (command.kind == CommandKind::wait &&
        events_[command.index].load(std::memory_order_relaxed) != kRecorded) {
      entry.waits_for = lowered_.event_ops[command.index];
    }
    entry.op = lowered_.op_at(next);
  }
  return blocked;
}

void LaneRunner::work() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0;;) {
    start_.wait(lock, [&] { return leaving_ || runs_ != seen; });
    if (leaving_) return;
    seen = runs_;
    if (++arrived_ == thread_count_) {
      begin_time_ = Clock::now();
      work_.notify_all();
    } else {
      work_.wait(lock, [&] { return arrived_ == thread_count_; });
    }
    for (std::uint32_t lane; (lane = next_lane(lock)) != kNobody;) {
      lock.unlock();
      const Pause pause = advance(lane);
      lock.lock();
      put_back(lane, pause);
    }
    if (--inside_ == 0) end_.notify_one();
  }
}

// A lane that can go on, taken; nobody when the run is over. Sleeps while other threads may yet
// make a lane ready.
std::uint32_t LaneRunner::next_lane(std::unique_lock<std::mutex>& lock) {
  while (outcome_ == Outcome::none && !cancelled_.load(std::memory_order_relaxed)) {
    if (finished_ == lanes_.size()) {
      end_run(Outcome::finished);
    } else if (!computing_.empty() && computing_.top().first <= Clock::now()) {
      ready_.push_back(computing_.top().second);
      computing_.pop();
    } else if (!ready_.empty()) {
      const std::uint32_t lane = ready_.back();
      ready_.pop_back();
      ++running_;
      return lane;
    } else if (!computing_.empty()) {
      work_.wait_until(lock, Clock::time_point(computing_.top().first));
    } else if (running_ > 0) {
      work_.wait(lock);
    } else {
      end_run(Outcome::stuck);
    }
  }
  return kNobody;
}

void LaneRunner::end_run(Outcome outcome) {
  outcome_ = outcome;
  end_time_ = Clock::now();
  work_.notify_all();
}

// What becomes of a lane that a thread has let go. A parked or ready one may run elsewhere by now.
void LaneRunner::put_back(std::uint32_t lane, Pause pause) {
  --running_;
  if (pause == Pause::finished) ++finished_;
  if (pause == Pause::computing) {
    computing_.emplace(*lanes_[lane].wake_at, lane);
    work_.notify_all();  // idle threads must not sleep past this lane's time
  }
}

LaneRunner::Pause LaneRunner::advance(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  const std::uint32_t end = lowered_.lanes[lane].end;
  std::uint32_t next = state.next_command.load(std::memory_order_relaxed);
  for (; next != end; state.next_command.store(++next, std::memory_order_relaxed)) {
    if (cancelled_.load(std::memory_order_relaxed)) return Pause::cancelled;
    const Command command = lowered_.commands[next];
    switch (command.kind) {
      case CommandKind::wait:
        if (park(lane, command.index)) return Pause::parked;
        break;
      case CommandKind::record:
        state.next_command.store(next + 1, std::memory_order_relaxed);
        if (record(lane, command.index)) return Pause::ready;
        break;
      case CommandKind::combine: {
        const Clock::time_point start = timeline_ != nullptr ? Clock::now() : Clock::time_point{};
        combine_(command.index);
        note_timing(command.index, start);
        break;
      }
      case CommandKind::compute:
        if (!compute(state, command.index)) return Pause::computing;
        break;
    }
  }
  return Pause::finished;
}

// Parks the lane at the event unless that is recorded already. From a successful exchange on the
// lane belongs to whoever records the event.
bool LaneRunner::park(std::uint32_t lane, EventId event) {
  std::atomic<std::uint32_t>& state = events_[event];
  std::uint32_t seen = state.load(std::memory_order_acquire);
  do {
    if (seen == kRecorded) return false;
    lanes_[lane].next_parked = seen;
  } while (!state.compare_exchange_weak(seen, lane, std::memory_order_release,
                                        std::memory_order_acquire));
  return true;
}

// Whether the event made parked lanes ready. They go first then, on this thread unless others are
// free, since they need what has just been written and is still in the cache; the lane that
// recorded the event is ready after them.
bool LaneRunner::record(std::uint32_t lane, EventId event) {
  std::uint32_t parked = events_[event].exchange(kRecorded, std::memory_order_acq_rel);
  if (parked == kNobody) return false;
  int others = 0;
  {
    const std::lock_guard lock(mutex_);
    ready_.push_back(lane);
    for (; parked != kNobody; parked = lanes_[parked].next_parked, ++others) {
      ready_.push_back(parked);
    }
  }
  for (; others > 0; --others) work_.notify_one();
  return true;
}

// Whether the op's time is over; otherwise the lane's `wake_at` says when it will be.
bool LaneRunner::compute(LaneState& lane, OpId op) {
  const Clock::duration duration = clock_duration(program_.duration_s(program_.ops[op]));
  if (!lane.wake_at) {
    lane.wake_at = Clock::now() + duration;
    return false;
  }
  note_timing(op, *lane.wake_at - duration);
  lane.wake_at.reset();
  return true;
}

void LaneRunner::note_timing(OpId op, Clock::time_point start) {
  if (timeline_ == nullptr) return;
  (*timeline_)[op] = {op, seconds(start - begin_time_), seconds(Clock::now() - begin_time_)};
}

}  // namespace espalier

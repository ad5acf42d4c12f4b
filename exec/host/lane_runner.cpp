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
                       int threads, const NumaPlan& numa)
    : program_(program),
      lowered_(lowered),
      combine_(std::move(combine)),
      lanes_(lowered.lanes.size()),
      events_(lowered.event_ops.size()),
      groups_(std::max<std::size_t>(1, numa.nodes.size())) {
  form_groups(numa, threads);
  start_threads();
}

void LaneRunner::form_groups(const NumaPlan& numa, int threads) {
  std::vector<std::size_t> lanes(groups_.size(), 0);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    const auto place = static_cast<std::size_t>(lowered_.lanes[lane].place);
    if (!numa.nodes.empty()) {
      lanes_[lane].group = static_cast<std::uint32_t>(numa.node_of_place[place]);
    }
    ++lanes[lanes_[lane].group];
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    int most = threads;
    if (!numa.nodes.empty()) {
      most = numa.threads[i];
      groups_[i].processors = numa.nodes[i].processors;
    }
    groups_[i].wanted = std::min(lanes[i], static_cast<std::size_t>(std::max(most, 1)));
    groups_[i].ready.reserve(lanes_.size());  // so that threads never allocate
  }
  // A program without lanes is run, too.
  if (lanes_.empty()) groups_.front().wanted = 1;
}

/// One for each group first.
void LaneRunner::start_threads() {
  std::size_t wanted = 0;
  for (const Group& group : groups_) wanted += group.wanted;
  threads_.reserve(wanted);
  // Nobody looks at the groups before they are complete.
  const std::lock_guard lock(mutex_);
  try {
    for (std::size_t round = 0; threads_.size() < wanted; ++round) {
      for (Group& group : groups_) {
        if (round >= group.wanted) continue;
        threads_.emplace_back([this, &group] { work(group); });
        ++group.threads;
      }
    }
  } catch (const std::system_error& refused) {
    if (threads_.empty()) {
      throw Error(ErrorKind::unsupported, fmt::format("cannot start a thread: {}", refused.what()));
    }
    take_lanes_from_empty_groups();
  }
  thread_count_ = static_cast<int>(threads_.size());
}

/// Groups that got no thread leave their lanes to the first, which is started first.
void LaneRunner::take_lanes_from_empty_groups() {
  const auto first = std::ranges::find_if(groups_, [](const Group& g) { return g.threads > 0; });
  for (LaneState& lane : lanes_) {
    if (groups_[lane.group].threads > 0) continue;
    lane.group = static_cast<std::uint32_t>(first - groups_.begin());
  }
}

std::vector<int> LaneRunner::threads_by_node() const {
  std::vector<int> threads;
  for (const Group& group : groups_) threads.push_back(group.threads);
  return threads;
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
    throw stuck_error("the program cannot continue: every unfinished lane waits for another one",
                      program_, lowered_, blocked_lanes());
  }
  return seconds(end_time_ - begin_time_);
}

// Everything as before the first command. Called while no thread is inside a run.
void LaneRunner::reset() {
  for (auto& event : events_) event.store(kNobody, std::memory_order_relaxed);
  for (Group& group : groups_) group.ready.clear();
  ready_ = 0;
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
  if (first.kind != CommandKind::wait || !park(lane, first.index)) make_ready(lane);
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
    wake_all();
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

void LaneRunner::make_ready(std::uint32_t lane) {
  group_of(lane).ready.push_back(lane);
  ++ready_;
}

void LaneRunner::wake_all() {
  for (Group& group : groups_) group.work.notify_all();
}

void LaneRunner::work(Group& group) {
  const PinnedThread pinned(group.processors);
  if (!pinned.is_as_wanted()) is_unpinned_.store(true, std::memory_order_relaxed);
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0;;) {
    start_.wait(lock, [&] { return leaving_ || runs_ != seen; });
    if (leaving_) return;
    seen = runs_;
    if (++arrived_ == thread_count_) {
      begin_time_ = Clock::now();
      wake_all();
    } else {
      group.work.wait(lock, [&] { return arrived_ == thread_count_; });
    }
    for (std::uint32_t lane; (lane = next_lane(group, lock)) != kNobody;) {
      lock.unlock();
      const Pause pause = advance(lane);
      lock.lock();
      put_back(lane, pause);
    }
    if (--inside_ == 0) end_.notify_one();
  }
}

// A lane of the group that can go on, taken; nobody when the run is over. Sleeps while other
// threads may yet make a lane ready.
std::uint32_t LaneRunner::next_lane(Group& group, std::unique_lock<std::mutex>& lock) {
  while (outcome_ == Outcome::none && !cancelled_.load(std::memory_order_relaxed)) {
    if (finished_ == lanes_.size()) {
      end_run(Outcome::finished);
    } else if (!computing_.empty() && computing_.top().first <= Clock::now()) {
      const std::uint32_t lane = computing_.top().second;
      computing_.pop();
      make_ready(lane);
      if (&group_of(lane) != &group) group_of(lane).work.notify_one();
    } else if (!group.ready.empty()) {
      const std::uint32_t lane = group.ready.back();
      group.ready.pop_back();
      --ready_;
      ++running_;
      return lane;
    } else if (!computing_.empty()) {
      group.work.wait_until(lock, Clock::time_point(computing_.top().first));
    } else if (running_ > 0 || ready_ > 0) {
      group.work.wait(lock);
    } else {
      end_run(Outcome::stuck);
    }
  }
  return kNobody;
}

void LaneRunner::end_run(Outcome outcome) {
  outcome_ = outcome;
  end_time_ = Clock::now();
  wake_all();
}

// What becomes of a lane that a thread has let go. A parked or ready one may run elsewhere by now.
void LaneRunner::put_back(std::uint32_t lane, Pause pause) {
  --running_;
  if (pause == Pause::finished) ++finished_;
  if (pause == Pause::computing) {
    computing_.emplace(*lanes_[lane].wake_at, lane);
    wake_all();  // idle threads must not sleep past this lane's time
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

// Whether the event made parked lanes ready. Those of this thread's group go first then, on this
// thread unless others are free, since they need what has just been written and is still in the
// cache; the lane that recorded the event is ready after them.
bool LaneRunner::record(std::uint32_t lane, EventId event) {
  std::uint32_t parked = events_[event].exchange(kRecorded, std::memory_order_acq_rel);
  if (parked == kNobody) return false;
  Group& here = group_of(lane);
  int ready_here = 0;
  {
    const std::lock_guard lock(mutex_);
    make_ready(lane);
    for (; parked != kNobody; parked = lanes_[parked].next_parked) {
      make_ready(parked);
      if (&group_of(parked) == &here) {
        ++ready_here;
      } else {
        group_of(parked).work.notify_one();
      }
    }
  }
  for (; ready_here > 0; --ready_here) here.work.notify_one();
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

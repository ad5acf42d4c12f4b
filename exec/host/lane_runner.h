// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "exec/host/numa.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/stuck_report.h"
#include "run/backend.h"

namespace espalier {

/// Runs lane programs on a fixed set of threads, any number of lanes on any number of threads. A
/// thread carries a lane on until the lane needs an event that is not there yet; the lane is then
/// parked at the event, and the thread takes another one. So a thread only sleeps when no lane can
/// go on, and a program that can't finish is noticed at once: all threads are out of lanes.
///
/// Where there are several NUMA nodes, each has threads of its own, and a lane is run by those of
/// the node of its place only.
///
/// The threads live as long as the runner, so that repeated runs cost no thread starts. `program`
/// and `lowered` must outlive it.
class LaneRunner {
 public:
  /// Carries out a combine op. Called from several threads at once; must not throw.
  using Combine = std::function<void(OpId)>;

  /// At most `threads` threads, or those of `numa` where that has nodes; no more than lanes, and
  /// fewer when the system refuses to start more.
  LaneRunner(const Program& program, const LanePrograms& lowered, Combine combine, int threads,
             const NumaPlan& numa = {});
  ~LaneRunner();
  LaneRunner(const LaneRunner&) = delete;
  LaneRunner& operator=(const LaneRunner&) = delete;

  /// Runs the program once and returns the seconds from when every thread stood ready until the
  /// last lane was done. Throws Error{runtime} that names the blocked ops when no lane can go on,
  /// or no op has ended for `timeout_s` (an op that computes or waits counts as moving); by then no
  /// thread works on the program any more, and `run` may be called again. With `timeline`, sets
  /// start and end of every op, index op.
  double run(double timeout_s, std::vector<OpTiming>* timeline = nullptr);

  /// Threads by NUMA node, in the order of the plan; one number without nodes.
  std::vector<int> threads_by_node() const;
  /// Whether every thread stays on its node. \pre `run` has returned
  bool is_pinned() const { return !is_unpinned_.load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;

  /// Its own cache line: each is written by the thread that runs the lane.
  struct alignas(64) LaneState {
    std::atomic<std::uint32_t> next_command{
        0};                                    ///< of LanePrograms::commands; read by the watchdog
    std::uint32_t next_parked = 0;             ///< the lane parked at the same event before it
    std::optional<Clock::time_point> wake_at;  ///< while it computes
    std::uint32_t group = 0;                   ///< of threads that run it
  };
  /// Threads that run the same lanes: those of a NUMA node, or all.
  struct Group {
    std::vector<int> processors;       ///< that its threads stay on; empty: anywhere
    std::size_t wanted = 0;            ///< threads
    int threads = 0;                   ///< that there are
    std::condition_variable work;      ///< one of its lanes became ready, or the run is over
    std::vector<std::uint32_t> ready;  ///< its lanes that can go on, the next one last
  };
  using Alarm = std::pair<Clock::time_point, std::uint32_t>;  // when which lane has computed
  enum class Pause { finished, parked, ready, computing, cancelled };
  enum class Outcome { none, finished, stuck };

  void form_groups(const NumaPlan& numa, int threads);
  void start_threads();
  void take_lanes_from_empty_groups();
  Group& group_of(std::uint32_t lane) { return groups_[lanes_[lane].group]; }
  void work(Group& group);
  std::uint32_t next_lane(Group& group, std::unique_lock<std::mutex>& lock);
  void make_ready(std::uint32_t lane);
  void wake_all();
  void put_back(std::uint32_t lane, Pause pause);
  void end_run(Outcome outcome);
  Pause advance(std::uint32_t lane);
  bool park(std::uint32_t lane, EventId event);
  bool record(std::uint32_t lane, EventId event);
  bool compute(LaneState& lane, OpId op);
  void note_timing(OpId op, Clock::time_point start);
  void reset();
  void make_ready_or_park(std::uint32_t lane);
  std::uint64_t progress() const;
  std::vector<BlockedLane> blocked_lanes() const;
  void wait_for_end(std::unique_lock<std::mutex>& lock, double timeout_s);

  const Program& program_;
  const LanePrograms& lowered_;
  const Combine combine_;
  std::vector<LaneState> lanes_;
  /// By event: recorded, or the lane parked there last, or nobody. Lanes parked at one event are
  /// linked by next_parked.
  std::vector<std::atomic<std::uint32_t>> events_;
  std::vector<OpTiming>* timeline_ = nullptr;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> is_unpinned_{false};  ///< a thread could not be kept on its node

  std::mutex mutex_;               // guards everything below
  std::condition_variable start_;  // a run begins, or the threads shall leave
  std::condition_variable end_;    // the last thread left the run
  std::vector<Group> groups_;      // their members, but for what is set once
  std::size_t ready_ = 0;          // lanes that can go on, in all groups
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> computing_;
  std::size_t finished_ = 0;  // lanes
  int running_ = 0;           // lanes that a thread works on
  int arrived_ = 0;           // threads that stand ready for this run
  int inside_ = 0;            // threads that have not left this run
  std::uint64_t runs_ = 0;
  bool leaving_ = false;
  Outcome outcome_ = Outcome::none;
  Clock::time_point begin_time_;
  Clock::time_point end_time_;

  int thread_count_ = 0;  // of `threads_`
  std::vector<std::thread> threads_;
};

}  // namespace espalier

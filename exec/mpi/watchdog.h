// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "exec/mpi/board.h"
#include "exec/mpi/lookout.h"

namespace espalier {

/// Ends this process when the processes can't go on, on a thread of its own: the main thread may be
/// held up in a call of MPI. While the main thread works on its own, the watchdog tells the others
/// so; a process that is stopped can't. Of a main thread that gives no sign within a run for ten
/// timeouts, it does not: it may hang.
class Watchdog {
 public:
  /// What is done about it. Both are called from the watchdog's thread.
  struct Actions {
    /// Prints what went wrong; called in one process.
    std::function<void(const std::string& text)> tell;
    /// Ends the process with this exit code, at once. Where it returns, nothing is watched any
    /// more.
    std::function<void(int exit_code)> end;
  };
  struct Settings {
    /// Until `expect` says another one.
    double timeout_s = 60;
    /// What the process has been asked to end with, 0 as long as it has not; may be null.
    const std::atomic<int>* signal = nullptr;
    /// The parent, whose end is an error: it is what collects and ends processes. Nothing where
    /// nobody does.
    std::optional<pid_t> launcher = {};
  };

  Watchdog(const Board& board, Actions actions, const Settings& settings);

  /// From now on, nobody getting further for so long is an error. `program` names ops
  /// in it, null outside of runs; it must live until the next call.
  void expect(const Program* program, double timeout_s);

 private:
  using Clock = std::chrono::steady_clock;

  void end(int exit_code);
  std::optional<int> look();
  std::optional<int> heed_signal();
  void vouch(Clock::time_point now);
  bool has_moved();
  void tell_stuck(const std::string& what);
  void tell(const std::string& text, int first);
  bool others_left(Clock::time_point now);
  int teller() const;

  const Board board_;
  const Actions actions_;
  const std::atomic<int>* const signal_;
  const std::optional<pid_t> launcher_;
  std::uint64_t progress_ = 0;                    ///< of all, when last looked at
  Clock::time_point latest_;                      ///< when it last changed
  Clock::time_point looked_;                      ///< when others were last seen to live
  std::uint64_t vouched_ = 0;                     ///< of this process's progress: by the watchdog
  std::uint64_t signs_ = 0;                       ///< and by the main thread
  Clock::time_point latest_sign_;                 ///< of the main thread, or that none is wanted
  std::optional<Clock::time_point> alone_since_;  ///< others have left, whom this process waits for

  const Program* program_ = nullptr;  // this and the next are guarded by the lookout's mutex
  double timeout_s_;
  Lookout lookout_;
};

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

}  // namespace espalier

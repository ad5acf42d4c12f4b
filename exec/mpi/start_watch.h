// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/mpi/lookout.h"
#include "exec/mpi/siblings.h"
#include "exec/mpi/watchdog.h"

namespace espalier {

/// Ends this process when one that was started with it is missing, on a thread of its own, until
/// the processes have met and Watchdog takes over. It knows the others of its host only: those that
/// have ended, at once, and those that are stopped or have not come, after the timeout.
class StartWatch {
 public:
  /// How long processes wait for each other at least, where none is known to be missing: launchers
  /// and libraries of MPI take their time.
  static constexpr double kStartTime_s = 60;

  /// `rank`: of this process; `siblings`: of its run.
  StartWatch(int rank, Siblings siblings, double timeout_s, Watchdog::Actions actions,
             const std::atomic<int>& signal);

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<int> look();
  int heed_signal();
  std::vector<RankView> look_at_others();
  void tell(const std::string& text, const std::vector<RankView>& ranks) const;

  const int rank_;
  Siblings siblings_;
  const double timeout_s_;
  const Watchdog::Actions actions_;
  const std::atomic<int>& signal_;
  const Clock::time_point begin_;
  std::map<int, Clock::time_point> lost_since_;  ///< by rank
  bool others_told_ = false;                     ///< why all end
  Clock::time_point looked_;                     ///< last
  std::optional<Clock::time_point> back_since_;  ///< this process itself, from having been stopped
  Lookout lookout_;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "exec/cuda/streams.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/stream_plan.h"

namespace espalier::cuda {

/// Issues a program to the streams op by op, and watches it. CUDA queues only
/// about a thousand commands per stream and then blocks the caller, forever if a
/// kernel hangs; so a stream never gets many more commands than it has finished.
class WatchedRun {
 public:
  /// All arguments must outlive it. \p patience_s: without any op ending, after which the run is
  /// stuck.
  WatchedRun(const Program& program, const LanePrograms& lowered, const StreamPlan& plan,
             Streams& streams, double patience_s);

  /// Returns when every op has ended, and the last commands, which are only events, are given.
  /// Throws Error{runtime} that names the lanes' ops when none ends any more, after which the
  /// devices are abandoned, and what the streams throw.
  void run();

 private:
  using Clock = std::chrono::steady_clock;
  /// Ops of a stream that have been given and not been seen to end.
  struct Queue {
    struct Entry {
      OpId op = 0;
      std::size_t given = 0;  ///< commands of the stream up to the op's last one
    };
    std::deque<Entry> ops;
    std::size_t given = 0;  ///< commands
    std::size_t ended = 0;  ///< of these, up to the latest op that was seen to end

    bool is_full() const;
  };

  void give_next(const StreamCommand& command);
  void look();
  bool all_ended() const { return under_way_ == 0; }

  const Program& program_;
  const LanePrograms& lowered_;
  const StreamPlan& plan_;
  Streams& streams_;
  const double patience_s_;
  std::vector<Queue> queues_;  ///< by stream
  std::vector<bool> done_;     ///< by op
  std::size_t under_way_ = 0;  ///< ops in the queues
  Clock::time_point latest_;   ///< when an op was last seen to end, or given when there was none
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "exec/lanes/message_plan.h"
#include "exec/mpi/step_carrier.h"
#include "run/report.h"

namespace espalier {

/// Has the steps of a process carried out in their order, on this thread and without waiting: who
/// uses it calls `advance` until all is over. The arguments must outlive it.
class MessageRunner {
 public:
  MessageRunner(const MessagePlan& plan, StepCarrier& carrier);

  /// Begins a run. \pre the one before is over, in all processes. With `timeline`, notes by
  /// op when this process began and ended its part of it, counted from now; entries of ops in which
  /// it has none are left alone. \pre their times are negative
  void start(std::vector<OpTiming>* timeline = nullptr);
  /// Begins what can begin, and looks which steps are over.
  /// Returns whether there was any of it. Throws what the carrier throws.
  bool advance();
  /// Lets others have the processor for a moment. \pre `advance` has found nothing
  void give_way() { carrier_.give_way(); }
  bool is_over() const { return oldest_ == plan_.steps.size(); }
  /// The first step that is not over. \pre there is one
  const MessageStep& oldest() const { return plan_.steps[oldest_]; }

 private:
  using Clock = std::chrono::steady_clock;

  void make_ready(std::uint32_t step);
  void begin_sends();
  void begin(std::uint32_t step);
  void finish(std::uint32_t step);
  void move_window();

  const MessagePlan& plan_;
  StepCarrier& carrier_;
  std::vector<std::uint32_t> missing_;  ///< by step: how many it needs that are not over
  std::vector<bool> over_;              ///< by step
  std::deque<std::uint32_t> ready_sends_;
  std::deque<std::uint32_t> ready_;  ///< other steps that can begin
  std::vector<std::uint32_t> finished_;
  std::uint32_t oldest_ = 0;      ///< the first step that is not over
  std::uint32_t window_end_ = 0;  ///< of the steps that may begin
  std::vector<OpTiming>* timeline_ = nullptr;
  Clock::time_point start_;
};

}  // namespace espalier

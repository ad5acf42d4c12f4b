// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/message_runner.h"

#include <algorithm>

namespace espalier {

MessageRunner::MessageRunner(const MessagePlan& plan, StepCarrier& carrier)
    : plan_(plan), carrier_(carrier), missing_(plan.steps.size()), over_(plan.steps.size(), true) {
  oldest_ = window_end_ = static_cast<std::uint32_t>(plan_.steps.size());
}

void MessageRunner::start(std::vector<OpTiming>* timeline) {
  timeline_ = timeline;
  std::ranges::transform(plan_.steps, missing_.begin(), &MessageStep::needs);
  std::fill(over_.begin(), over_.end(), false);
  oldest_ = window_end_ = 0;
  start_ = Clock::now();
  move_window();
}

/// Steps that come into the window may have been ready for long.
void MessageRunner::move_window() {
  const auto end = static_cast<std::uint32_t>(plan_.steps.size());
  while (oldest_ < end && over_[oldest_]) ++oldest_;
  for (; window_end_ < std::min(end, oldest_ + kMessageWindow); ++window_end_) {
    if (missing_[window_end_] == 0) make_ready(window_end_);
  }
}

/// Sends go first. A library may copy all of a message that it has been told of while it begins to
/// receive it or tests for completion; a peer that has not yet been told of a send waits meanwhile.
void MessageRunner::make_ready(std::uint32_t step) {
  const bool is_send = plan_.steps[step].kind == MessageStepKind::send;
  (is_send ? ready_sends_ : ready_).push_back(step);
}

void MessageRunner::begin_sends() {
  for (; !ready_sends_.empty(); ready_sends_.pop_front()) begin(ready_sends_.front());
}

bool MessageRunner::advance() {
  bool moved = !ready_.empty() || !ready_sends_.empty();
  begin_sends();
  // One pass over what is ready now: between combines, messages have to go on.
  for (std::size_t left = ready_.size(); left > 0; --left) {
    const std::uint32_t step = ready_.front();
    ready_.pop_front();
    begin(step);
    if (plan_.steps[step].kind == MessageStepKind::combine) break;
  }
  move_window();
  begin_sends();  // of what has just been combined
  finished_.clear();
  carrier_.advance(oldest_, finished_);
  for (const std::uint32_t step : finished_) finish(step);
  moved = moved || !finished_.empty();
  move_window();
  return moved;
}

void MessageRunner::begin(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  if (timeline_ != nullptr && (*timeline_)[step.op].start_s < 0) {
    (*timeline_)[step.op].start_s = std::chrono::duration<double>(Clock::now() - start_).count();
  }
  if (carrier_.begin(number)) finish(number);
}

void MessageRunner::finish(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  over_[number] = true;
  if (timeline_ != nullptr) {
    (*timeline_)[step.op].end_s = std::chrono::duration<double>(Clock::now() - start_).count();
  }
  for (const std::uint32_t later : plan_.next_of(step)) {
    if (--missing_[later] == 0 && later < window_end_) make_ready(later);
  }
}

}  // namespace espalier

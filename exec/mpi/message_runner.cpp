// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/message_runner.h"

#include <algorithm>

#include "exec/host/combine_kernels.h"

namespace espalier {

MessageRunner::MessageRunner(const MessagePlan& plan, const HostMemory& memory, DataType type,
                             ReduceOp op, Transport& transport)
    : plan_(plan),
      type_(type),
      op_(op),
      transport_(transport),
      scratch_(static_cast<std::size_t>(plan.scratch_bytes)),
      missing_(plan.steps.size()),
      over_(plan.steps.size(), true) {
  memory_.reserve(plan.steps.size());
  for (const MessageStep& step : plan.steps) memory_.push_back(at(step.memory, memory));
  sources_.reserve(plan.sources.size());
  for (const BufferOffset& source : plan.sources) sources_.push_back(at(source, memory));
  oldest_ = window_end_ = static_cast<std::uint32_t>(plan.steps.size());
}

std::byte* MessageRunner::at(const BufferOffset& position, const HostMemory& memory) {
  return position.place == kMessageScratch ? scratch_.data() + position.bytes : memory.at(position);
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
    if (missing_[window_end_] == 0) ready_.push_back(window_end_);
  }
}

bool MessageRunner::advance() {
  bool moved = !ready_.empty();
  // One pass over what is ready now: between combines, messages have to go on.
  for (std::size_t left = ready_.size(); left > 0; --left) {
    const std::uint32_t step = ready_.front();
    ready_.pop_front();
    begin(step);
    if (plan_.steps[step].kind == MessageStepKind::combine) break;
  }
  arrived_.clear();
  transport_.test(arrived_);
  for (const MessageId message : arrived_) finish(steps_[message]);
  moved = moved || !arrived_.empty();
  move_window();
  return moved;
}

void MessageRunner::begin(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  const std::size_t bytes = static_cast<std::size_t>(step.elements) * plan_.element_bytes;
  std::byte* const memory = memory_[number];
  if (timeline_ != nullptr && (*timeline_)[step.op].start_s < 0) {
    (*timeline_)[step.op].start_s = std::chrono::duration<double>(Clock::now() - start_).count();
  }
  if (step.kind == MessageStepKind::combine) {
    combine(type_, op_, memory, std::span(sources_).subspan(step.source_begin, step.source_count),
            step.elements);
    finish(number);
    return;
  }
  const MessageId message = step.kind == MessageStepKind::send
                                ? transport_.send(step.peer, step.tag, {memory, bytes})
                                : transport_.receive(step.peer, step.tag, {memory, bytes});
  if (message >= steps_.size()) steps_.resize(message + 1);
  steps_[message] = number;
}

void MessageRunner::finish(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  over_[number] = true;
  if (timeline_ != nullptr) {
    (*timeline_)[step.op].end_s = std::chrono::duration<double>(Clock::now() - start_).count();
  }
  for (const std::uint32_t later : plan_.next_of(step)) {
    if (--missing_[later] == 0 && later < window_end_) ready_.push_back(later);
  }
}

}  // namespace espalier

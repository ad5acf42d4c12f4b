// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/host_steps.h"

#include <span>

#include "exec/host/combine_kernels.h"

namespace espalier {

HostSteps::HostSteps(const MessagePlan& plan, const HostMemory& memory, DataType type, ReduceOp op,
                     Transport& transport)
    : plan_(plan),
      type_(type),
      op_(op),
      transport_(transport),
      scratch_(HostMemory::scratch(static_cast<std::size_t>(plan.scratch_bytes))) {
  memory_.reserve(plan.steps.size());
  for (const MessageStep& step : plan.steps) memory_.push_back(at(step.memory, memory));
  sources_.reserve(plan.sources.size());
  for (const BufferOffset& source : plan.sources) sources_.push_back(at(source, memory));
}

std::byte* HostSteps::at(const BufferOffset& position, const HostMemory& memory) {
  return position.place == kMessageScratch ? scratch_.get() + position.bytes : memory.at(position);
}

bool HostSteps::begin(std::uint32_t number) {
  const MessageStep& step = plan_.steps[number];
  std::byte* const memory = memory_[number];
  if (step.kind == MessageStepKind::combine) {
    combine(type_, op_, memory, std::span(sources_).subspan(step.source_begin, step.source_count),
            step.elements);
    return true;
  }
  const std::size_t bytes = plan_.bytes_of(step);
  const MessageId message = step.kind == MessageStepKind::send
                                ? transport_.send(step.peer, step.tag, {memory, bytes})
                                : transport_.receive(step.peer, step.tag, {memory, bytes});
  if (message >= steps_.size()) steps_.resize(message + 1);
  steps_[message] = number;
  return false;
}

void HostSteps::advance(std::uint32_t, std::vector<std::uint32_t>& over) {
  arrived_.clear();
  transport_.test(arrived_);
  for (const MessageId message : arrived_) over.push_back(steps_[message]);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/nccl_path.h"

#include <set>
#include <utility>

#include "exec/cuda/calls.h"

namespace espalier::cuda {

NcclPath::NcclPath(int gpu, std::shared_ptr<NcclLink> link, std::vector<std::uint32_t> order,
                   StepOver over)
    : queue_(gpu), link_(std::move(link)), order_(std::move(order)), over_(std::move(over)) {}

NcclPath::~NcclPath() {
  if (!queue_.is_idle()) abandon_devices();
}

void NcclPath::begin(const GpuMessage& message) { waiting_.emplace(message.step, message); }

std::vector<GpuMessage> NcclPath::take_group() {
  std::vector<GpuMessage> group;
  std::set<std::pair<int, bool>> taken;
  while (!waiting_.empty()) {
    const auto found = waiting_.find(order_[next_]);
    if (found == waiting_.end()) break;
    if (!taken.emplace(found->second.peer, found->second.is_send).second) break;
    group.push_back(found->second);
    waiting_.erase(found);
    next_ = (next_ + 1) % order_.size();  // the next run begins where this one did
    if (next_ == 0) break;
  }
  return group;
}

void NcclPath::give(const std::vector<GpuMessage>& group) {
  use_gpu(queue_.gpu());
  link_->begin_group();
  for (const GpuMessage& message : group) {
    if (message.is_send) {
      link_->send(message.peer, message.memory, message.bytes, queue_.stream());
    } else {
      link_->receive(message.peer, message.memory, message.bytes, queue_.stream());
    }
  }
  link_->end_group();
  queue_.call([this, group] {
    for (const GpuMessage& message : group) over_(message.step);
  });
}

void NcclPath::advance(std::uint32_t) {
  if (!queue_.is_idle()) link_->look();
  queue_.advance();
  for (auto group = take_group(); !group.empty(); group = take_group()) give(group);
}

}  // namespace espalier::cuda

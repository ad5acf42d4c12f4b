// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "exec/mpi_cuda/gpu_queue.h"
#include "exec/mpi_cuda/message_path.h"
#include "exec/mpi_cuda/nccl_link.h"

namespace espalier::cuda {

/// Messages that NCCL sends and receives, on one stream of each GPU. NCCL has no tags: what it was
/// given first it does first, and both ends wait for each other.
///
/// So messages are given to it in the order of the plan, each as soon as its step begins; what is
/// there together, and next in that order, goes as one group, whose parts go on side by side. This
/// never blocks: take the first message of the order that all processes share which is not over.
/// At both of its ends, all before it are over, its step begins, and it is the next to be given;
/// the groups before its own have only messages before it, and are over. A group has one message at
/// most to and from each process, as those of a pair are done one after the other. Giving a group
/// waits for nobody, as the link has connected all pairs.
class NcclPath : public MessagePath {
 public:
  /// `order`: the steps of all messages of this process, in the order of the plan.
  NcclPath(int gpu, std::shared_ptr<NcclLink> link, std::vector<std::uint32_t> order,
           StepOver over);
  /// What is left of a run that has failed may wait for other processes, and freeing for it.
  ~NcclPath() override;

  void begin(const GpuMessage& message) override;
  void advance(std::uint32_t oldest) override;

 private:
  std::vector<GpuMessage> take_group();
  void give(const std::vector<GpuMessage>& group);

  GpuQueue queue_;
  const std::shared_ptr<NcclLink> link_;
  const std::vector<std::uint32_t> order_;
  const StepOver over_;
  std::size_t next_ = 0;                         ///< in `order_`
  std::map<std::uint32_t, GpuMessage> waiting_;  ///< by step: begun, not given
};

}  // namespace espalier::cuda

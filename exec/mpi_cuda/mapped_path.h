// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "exec/mpi_cuda/gpu_queue.h"
#include "exec/mpi_cuda/mailbox.h"
#include "exec/mpi_cuda/message_path.h"
#include "exec/mpi_cuda/shared_memory.h"

namespace espalier::cuda {

/// Messages between processes of one computer, which the sender's GPU writes into the receiver's
/// memory. The receiver tells where; the sender copies when it knows, and tells when the copy is
/// over. Both wait for what their GPUs do before they tell each other, so that no GPU has to wait
/// for another process's. The arguments must outlive it.
class MappedPath : public MessagePath {
 public:
  MappedPath(int gpu, Mailbox& mailbox, const SharedMemory& memory, StepOver over);

  void begin(const GpuMessage& message) override;
  void advance(std::uint32_t oldest) override;

 private:
  struct Moving {
    GpuMessage message;
    SharedPlace place;  ///< in the receiver's memory
    std::byte written{};
    int left = 0;  ///< messages of a receiver that are not over
  };

  void begin_send(Moving& moving);
  void begin_receive(Moving& moving);
  void copy(Moving& moving);
  void finish(const Moving& moving);

  const int gpu_;
  Mailbox& mailbox_;
  const SharedMemory& memory_;
  const StepOver over_;
  std::map<int, GpuQueue> queues_;          ///< by receiver, as each may be behind links of its own
  std::map<std::uint32_t, Moving> moving_;  ///< by step
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "exec/mpi_cuda/mailbox.h"
#include "exec/mpi_cuda/message_path.h"

namespace espalier::cuda {

/// Messages of a transport that reads and writes GPU memory itself (Transport::takes_gpu_memory).
class DirectPath : public MessagePath {
 public:
  DirectPath(Mailbox& mailbox, StepOver over) : mailbox_(mailbox), over_(std::move(over)) {}

  void begin(const GpuMessage& message) override {
    const auto then = [this, step = message.step] { over_(step); };
    if (message.is_send) {
      mailbox_.send(message.peer, message.tag, {message.memory, message.bytes}, then);
    } else {
      mailbox_.receive(message.peer, message.tag, {message.memory, message.bytes}, then);
    }
  }
  void advance(std::uint32_t) override {}

 private:
  Mailbox& mailbox_;
  const StepOver over_;
};

}  // namespace espalier::cuda

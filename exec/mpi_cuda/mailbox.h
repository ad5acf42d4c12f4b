// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/mpi/transport.h"
#include "exec/mpi_cuda/gpu_queue.h"

namespace espalier::cuda {

/// The messages of a transport that several send and receive, each told of its own.
class Mailbox {
 public:
  /// It must outlive this.
  explicit Mailbox(Transport& transport) : transport_(transport) {}

  /// As Transport::send and Transport::receive; `advance` calls `then` when it is over.
  void send(int to, int tag, std::span<const std::byte> bytes, Then then);
  void receive(int from, int tag, std::span<std::byte> bytes, Then then);
  /// Throws what the transport throws.
  void advance();

 private:
  void expect(MessageId message, Then then);

  Transport& transport_;
  std::vector<Then> then_;  ///< by message
  std::vector<MessageId> over_;
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <vector>

#include "exec/mpi/transport.h"

namespace espalier {

/// Nonblocking messages of MPI.
class MpiTransport : public Transport {
 public:
  /// The communicator must outlive it, and carry nothing else.
  explicit MpiTransport(MPI_Comm communicator);

  int process() const override { return process_; }
  int processes() const override { return processes_; }
  bool takes_gpu_memory() const override;
  MessageId send(int to, int tag, std::span<const std::byte> bytes) override;
  MessageId receive(int from, int tag, std::span<std::byte> bytes) override;
  void test(std::vector<MessageId>& over) override;
  [[noreturn]] void abort(int exit_code) override;

 private:
  MessageId new_message(std::size_t bytes);
  MPI_Request& new_request(MessageId message);

  const MPI_Comm communicator_;
  int process_ = 0;
  int processes_ = 1;
  std::vector<MPI_Request> requests_;  ///< under way
  std::vector<MessageId> messages_;    ///< by request: what it is a part of
  std::vector<int> parts_;             ///< by message: requests that are not over
  std::vector<MessageId> free_;        ///< numbers that are not in use
  std::vector<int> completed_;
};

}  // namespace espalier

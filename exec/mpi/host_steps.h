// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "exec/host/host_memory.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/step_carrier.h"
#include "exec/mpi/transport.h"
#include "ir/data.h"

namespace espalier {

/// Steps in memory of this computer: messages over a transport, combines at once by this thread.
/// The arguments must outlive it.
class HostSteps : public StepCarrier {
 public:
  /// `memory` has the buffers of this process's places.
  HostSteps(const MessagePlan& plan, const HostMemory& memory, DataType type, ReduceOp op,
            Transport& transport);

  bool begin(std::uint32_t step) override;
  void advance(std::uint32_t oldest, std::vector<std::uint32_t>& over) override;
  void give_way() override { transport_.give_way(); }

 private:
  std::byte* at(const BufferOffset& position, const HostMemory& memory);

  const MessagePlan& plan_;
  const DataType type_;
  const ReduceOp op_;
  Transport& transport_;
  const HostMemory::Bytes scratch_;
  std::vector<std::byte*> memory_;         ///< by step
  std::vector<const std::byte*> sources_;  ///< as MessagePlan::sources
  std::vector<std::uint32_t> steps_;       ///< by message of the transport
  std::vector<MessageId> arrived_;
};

}  // namespace espalier

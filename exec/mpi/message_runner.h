// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "exec/host/host_memory.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/transport.h"
#include "ir/data.h"
#include "run/report.h"

namespace espalier {

/// Carries out the steps of a process over a transport, on this thread and without waiting: who
/// uses it calls `advance` until all is over. The arguments must outlive it.
class MessageRunner {
 public:
  /// `memory` has the buffers of this process's places.
  MessageRunner(const MessagePlan& plan, const HostMemory& memory, DataType type, ReduceOp op,
                Transport& transport);

  /// Begins a run. \pre the one before is over, in all processes. With `timeline`, notes by
  /// op when this process began and ended its part of it, counted from now; entries of ops in which
  /// it has none are left alone. \pre their times are negative
  void start(std::vector<OpTiming>* timeline = nullptr);
  /// Begins what can begin, combines what can be combined, and looks which messages are over.
  /// Returns whether there was any of it. Throws what the transport throws.
  bool advance();
  bool is_over() const { return oldest_ == plan_.steps.size(); }
  /// The first step that is not over. \pre there is one
  const MessageStep& oldest() const { return plan_.steps[oldest_]; }

 private:
  using Clock = std::chrono::steady_clock;

  std::byte* at(const BufferOffset& position, const HostMemory& memory);
  void begin(std::uint32_t step);
  void finish(std::uint32_t step);
  void move_window();

  const MessagePlan& plan_;
  const DataType type_;
  const ReduceOp op_;
  Transport& transport_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte*> memory_;         ///< by step
  std::vector<const std::byte*> sources_;  ///< as MessagePlan::sources
  std::vector<std::uint32_t> missing_;     ///< by step: how many it needs that are not over
  std::vector<bool> over_;                 ///< by step
  std::vector<std::uint32_t> steps_;       ///< by message of the transport
  std::deque<std::uint32_t> ready_;        ///< steps that can begin
  std::vector<MessageId> arrived_;
  std::uint32_t oldest_ = 0;      ///< the first step that is not over
  std::uint32_t window_end_ = 0;  ///< of the steps that may begin
  std::vector<OpTiming>* timeline_ = nullptr;
  Clock::time_point start_;
};

}  // namespace espalier

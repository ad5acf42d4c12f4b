// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "exec/lanes/message_plan.h"

namespace espalier::cuda {

/// Takes the number of a step that is over.
using StepOver = std::function<void(std::uint32_t step)>;

/// A message between the memories of two processes' GPUs, as one of them sees it. Both cut and
/// number it alike.
struct GpuMessage {
  std::uint32_t step = 0;
  bool is_send = false;
  int peer = 0;
  int tag = 0;
  BufferOffset place;  ///< where its bytes are in this process
  std::byte* memory = nullptr;
  std::size_t bytes = 0;  ///< at least one
};

/// A way that messages go. Tells of each when it is over. What it waits for, messages and queues,
/// its owner looks after.
class MessagePath {
 public:
  virtual ~MessagePath() = default;
  virtual void begin(const GpuMessage& message) = 0;
  /// Goes on with what lacked room. `oldest`: as StepCarrier::advance.
  virtual void advance(std::uint32_t oldest) { static_cast<void>(oldest); }
};

}  // namespace espalier::cuda

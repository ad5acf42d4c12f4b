// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

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
  std::byte* memory = nullptr;
  std::size_t bytes = 0;  ///< at least one
};

/// A way that messages go. Tells of each when it is over. The mailbox that it uses is its owner's
/// to advance.
class MessagePath {
 public:
  virtual ~MessagePath() = default;
  virtual void begin(const GpuMessage& message) = 0;
  /// Goes on with what is under way. `oldest`: as StepCarrier::advance.
  virtual void advance(std::uint32_t oldest) = 0;
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

namespace espalier {

/// Carries out the steps of a process (MessagePlan) on the kind of memory that they are about.
/// Nothing waits: what has begun goes on whenever `advance` is called. Used by one thread.
class StepCarrier {
 public:
  virtual ~StepCarrier() = default;
  /// Begins the step of that number. Returns whether it is over already, which `advance` does not
  /// report again. \pre the steps that it needs are over
  virtual bool begin(std::uint32_t step) = 0;
  /// Goes on with the steps that have begun, and appends those that are over now. `oldest`: the
  /// first step of all that is not over; whatever steps share, that one must not wait for others.
  /// Throws what carries them out throws.
  virtual void advance(std::uint32_t oldest, std::vector<std::uint32_t>& over) = 0;
  /// Lets others have the processor for a moment, at most until a step may be over.
  virtual void give_way() { std::this_thread::yield(); }
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace espalier {

/// A message under way, as its transport numbers it. Numbers are used again.
using MessageId = std::uint32_t;

/// Carries messages between processes that run a program together, numbered from 0. Nothing waits:
/// what has begun goes on whenever `test` is called. Used by one thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int process() const = 0;    ///< the number of this one
  virtual int processes() const = 0;  ///< how many there are
  /// Whether bytes may be in the memory of a GPU.
  virtual bool takes_gpu_memory() const { return false; }
  /// Begins to send. The bytes must stay as they are until `test` says that it is over, which it
  /// may be before they are received, or only then. Messages of one pair, direction and tag arrive
  /// in the order in which they were sent. Tags are those of MessagePlan and of exchange.h.
  virtual MessageId send(int to, int tag, std::span<const std::byte> bytes) = 0;
  /// Begins to receive a message of exactly so many bytes.
  virtual MessageId receive(int from, int tag, std::span<std::byte> bytes) = 0;
  /// Appends the messages that are over and have not been reported before.
  /// Throws Error{runtime} where the transport has failed.
  virtual void test(std::vector<MessageId>& over) = 0;
  /// Lets others have the processor for a moment, at most until a message may be over.
  virtual void give_way() { std::this_thread::yield(); }
  /// Ends all processes, this one first, without any clean-up.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

}  // namespace espalier

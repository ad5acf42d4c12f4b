// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "exec/lanes/message_plan.h"
#include "exec/mpi/step_carrier.h"
#include "exec/mpi/transport.h"
#include "ir/data.h"
#include "ir/program.h"

namespace espalier {

/// What a network does with a message that nobody receives yet.
enum class Buffering {
  none,  ///< the send is not over before the message is received
  all    ///< it is over at once
};

/// Messages between threads or parts of one thread. What is over is told late and in an order drawn
/// by chance.
class LocalNetwork {
 public:
  LocalNetwork(int processes, Buffering buffering, std::uint64_t seed);
  ~LocalNetwork();

  bool takes_gpu_memory = false;  ///< what its transports say; all of them do

  Transport& transport(int process);
  /// Messages that have been sent or are expected, and have not met.
  std::size_t unmatched();

 private:
  class Endpoint;
  struct Sent {
    std::span<const std::byte> bytes;
    std::vector<std::byte> copy;  ///< where it is buffered
    MessageId id = 0;
  };
  struct Expected {
    std::span<std::byte> bytes;
    MessageId id = 0;
  };
  using Key = std::tuple<int, int, int>;  ///< from, to, tag

  MessageId send(int from, int to, int tag, std::span<const std::byte> bytes);
  MessageId receive(int from, int to, int tag, std::span<std::byte> bytes);
  void test(int process, std::vector<MessageId>& over);
  void match(const Key& key);
  void end(int process, MessageId id);

  const Buffering buffering_;
  std::mutex mutex_;  // guards everything below
  std::mt19937_64 random_;
  std::map<Key, std::deque<Sent>> sent_;
  std::map<Key, std::deque<Expected>> expected_;
  std::vector<MessageId> next_id_;            ///< by process
  std::vector<std::vector<MessageId>> over_;  ///< by process
  std::vector<std::unique_ptr<Endpoint>> transports_;
};

/// The buffers of a process, in any memory, and who carries out its steps on them.
class TestPart {
 public:
  virtual ~TestPart() = default;
  virtual StepCarrier& steps() = 0;
  virtual void write(PlaceId place, Buffer buffer, std::span<const std::byte> bytes) = 0;
  virtual std::vector<std::byte> read(PlaceId place, Buffer buffer) const = 0;
};

/// What a process has to do; `lowered` has its own buffers only.
struct PartRequest {
  const Program& program;
  LanePrograms lowered;
  MessagePlan plan;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Transport& transport;
};

/// Those of all processes, by process; the requests outlive them.
using MakeParts =
    std::function<std::vector<std::unique_ptr<TestPart>>(const std::deque<PartRequest>&)>;
/// In memory of this computer.
std::vector<std::unique_ptr<TestPart>> make_host_parts(const std::deque<PartRequest>& requests);

/// The steps of all processes give every place of the program what `interpret` gives it, to the
/// last bit, from random contents of all buffers, when processes go on in turns drawn by chance;
/// and no process is ever blocked for good. `scratch`: as in plan_messages.
void expect_messages_right(const Program& program, DataType type, ReduceOp op,
                           std::int64_t elements, Buffering buffering, std::uint64_t seed,
                           const Scratch& scratch, const MakeParts& make = make_host_parts);

}  // namespace espalier

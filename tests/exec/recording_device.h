// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exec/lanes/lowering.h"
#include "exec/lanes/stream_plan.h"
#include "ir/interpret.h"

namespace espalier {

/// A machine of streams and events in memory of this computer, with CUDA's rules: a stream does one
/// command after the other, a wait concerns the event's latest recording at the time it was given,
/// and what nobody waits for happens in any order. Kernels may touch only what their device has
/// mapped. It takes the commands of a plan (see StreamDevice), then carries them out in an order
/// drawn by chance.
class RecordingDevice {
 public:
  RecordingDevice(const Program& program, const StreamPlan& plan, const DeviceSet& devices,
                  DataType type, ReduceOp op);

  void wait(const StreamCommand& command);
  void record(const StreamCommand& command);
  void copy(const StreamCommand& command);
  void fold(const StreamCommand& command);
  void compute(const StreamCommand& command);

  /// What is wrong with the commands themselves: a wait for an event never recorded, an event
  /// recorded on another device's stream, a kernel that reaches for memory that is not mapped, work
  /// that a capture would not include or that stream 0 does not wait for.
  std::vector<std::string> problems() const;

  /// Ops (a, b) for which b has to come after a, by dependency or by lane, but need not, as the
  /// commands stand.
  std::vector<std::pair<OpId, OpId>> unordered() const;

  /// Carries everything out on `memory`, in an order drawn by `random`.
  void run(Memory& memory, std::mt19937_64& random) const;

 private:
  /// A command as given, and the one of another stream that it waits for, if it is a wait.
  struct Given {
    StreamCommand command;
    std::uint32_t after = 0;  ///< index into `given_`, or kNone
  };
  using Clock = std::vector<std::uint32_t>;  ///< by stream: commands known to be done
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void give(const StreamCommand& command, std::uint32_t after = kNone);
  std::vector<Clock> clocks() const;
  bool kernel_reaches(int device, const BufferOffset& operand) const;
  void carry_out(const StreamCommand& command, Memory& memory,
                 std::vector<std::vector<std::byte>>& scratch) const;

  const Program& program_;
  const StreamPlan& plan_;
  const DeviceSet& devices_;
  DataType type_;
  ReduceOp op_;
  std::set<std::pair<int, int>> mapped_;
  std::vector<Given> given_;
  std::vector<std::uint32_t> position_;              ///< by given command: in its stream, from 1
  std::vector<std::vector<std::uint32_t>> streams_;  ///< given commands by stream
  std::vector<std::uint32_t> recorded_;              ///< by event: the latest recording
  std::vector<std::string> problems_;
};

/// The order of a plan and its memory accesses are right: asserts that there are no problems, that
/// everything that has to be ordered is, and that a run in an order drawn by `random` gives every
/// rank its result.
void expect_right(const Program& program, const DeviceSet& devices, DataType type, ReduceOp op,
                  std::int64_t elements, std::mt19937_64& random);

}  // namespace espalier

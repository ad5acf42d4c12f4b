// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "exec/lanes/lowering.h"
#include "ir/program.h"

namespace espalier {

/// What copy engines do; kernels do the rest. Copies between host memories are always made by
/// kernels: CUDA makes a copy engine's wait for the calling thread.
enum class CopyEngineUse : std::uint8_t {
  none,    ///< kernels copy, and combine operands where they lie
  copies,  ///< they copy; kernels combine operands where they lie (ReductionMode::reading)
  /// They copy, also what a combine has in another memory; kernels combine what is in the memory of
  /// their own device (ReductionMode::separate).
  operands
};

/// The devices a program shall run on, by index 0, 1, ...: what a plan has to know of them.
struct DeviceSet {
  static constexpr int kHost = -1;
  std::vector<int> device_of_place;  ///< kHost for host memories, which every device can access
  /// By device and other device: kernels of the first could access the memory of the second.
  std::vector<std::vector<bool>> can_access;
  int max_streams = 256;  ///< per device
  int max_peers = 8;      ///< devices that may be mapped into one device, or it into them
  CopyEngineUse copy_engines = CopyEngineUse::none;

  int devices() const { return static_cast<int>(can_access.size()); }
};

/// `wait` and `record` concern an event; the others carry out an op or part of it: `copy` by a copy
/// engine, `fold` by a kernel on one or more sources, `compute` keeps the device busy.
enum class StreamCommandKind : std::uint8_t { wait, record, copy, fold, compute };

/// What a stream does next. `dst` and sources lie in the buffers of places or, where the place is
/// kStreamScratch, at that offset of the stream's scratch memory. Sources are StreamPlan::sources
/// [source_begin, source_begin + source_count).
struct StreamCommand {
  static constexpr std::uint32_t kNoOp = ~std::uint32_t{0};
  StreamCommandKind kind = StreamCommandKind::wait;
  bool begins_op = false;  ///< the first command of its op
  bool ends_op = false;    ///< the last one
  bool remote = false;     ///< an operand lies in the memory of another device or of a host
  std::uint32_t stream = 0;
  std::uint32_t event = 0;  ///< of a wait or a record
  /// Carried out, about to be when what is waited for is done, or after which the event is
  /// recorded; kNoOp where everything begins and ends.
  std::uint32_t op = kNoOp;
  std::uint32_t source_begin = 0;
  std::uint32_t source_count = 0;
  BufferOffset dst;
  std::int64_t elements = 0;
};

inline constexpr PlaceId kStreamScratch = -1;

/// Whether a command carries out an op or part of it.
constexpr bool is_op(const StreamCommand& command) {
  return command.kind != StreamCommandKind::wait && command.kind != StreamCommandKind::record;
}

struct PlannedStream {
  int device = 0;
  std::int64_t scratch_bytes = 0;
};

/// A program for one message size as commands for the streams of some devices, in the order in
/// which they are to be given: an event is recorded before anybody waits for it, and may be
/// recorded again once everybody has been told to wait for it (a wait concerns the latest
/// recording at the time it is given). Everything begins after what stream 0 was given before, and
/// stream 0 goes on when everything is done, so that the whole can be captured and repeated. Plain
/// data.
struct StreamPlan {
  std::size_t element_bytes = 0;
  std::vector<PlannedStream> streams;
  std::vector<int> event_devices;          ///< by event: the device whose streams record it
  std::vector<std::pair<int, int>> peers;  ///< device and the one whose memory it has to map
  /// Pairs that would be used but can't be mapped, or may not because of `max_peers`; their data
  /// goes by copies.
  std::vector<std::pair<int, int>> unmapped;
  std::vector<int> remote_streams;  ///< by device: streams that have a remote `fold`
  std::vector<StreamCommand> commands;
  std::vector<BufferOffset> sources;

  std::span<const BufferOffset> sources_of(const StreamCommand& command) const {
    return {sources.data() + command.source_begin, command.source_count};
  }
};

/// The device that carries out each op: that of its place; for ops at a host memory that of the
/// destination, else of a source, else device 0.
std::vector<int> devices_of_ops(const Program& program, const DeviceSet& devices);

/// Lowers lane programs to streams. A combine is one kernel that reads each source once, straight
/// from where it lies if the device may map it and copy engines do not fetch operands, else from
/// scratch memory to which it is copied first; a result is copied there afterwards likewise. Where
/// devices may not map as many others as the program uses, the pairs that exchange most bytes are
/// mapped. Throws what `order_streams` throws. \pre every place has a device or is a host memory.
StreamPlan plan_streams(const Program& program, const LanePrograms& lowered,
                        const DeviceSet& devices, std::size_t element_bytes);

/// How many thread blocks the kernel of a fold may have where the device holds `resident` of them
/// at a time. Local ones take the whole device. One whose bytes come over a link needs only as many
/// as keep the link busy; more would keep the kernels of other links from running beside it.
int max_blocks(const StreamPlan& plan, const StreamCommand& command, int resident);

/// What carries out the commands of a plan: CUDA, or memory of this computer in tests. Bound at
/// compile time, one call per command.
template <class Device>
concept StreamDevice = requires(Device device, const StreamCommand& command) {
  device.wait(command);
  device.record(command);
  device.copy(command);
  device.fold(command);
  device.compute(command);
};

/// Gives a device one command.
template <StreamDevice Device>
void give(const StreamCommand& command, Device& device) {
  switch (command.kind) {
    case StreamCommandKind::wait:
      return device.wait(command);
    case StreamCommandKind::record:
      return device.record(command);
    case StreamCommandKind::copy:
      return device.copy(command);
    case StreamCommandKind::fold:
      return device.fold(command);
    case StreamCommandKind::compute:
      return device.compute(command);
  }
}

/// Gives a device all commands of a plan.
template <StreamDevice Device>
void issue(const StreamPlan& plan, Device& device) {
  for (const StreamCommand& command : plan.commands) give(command, device);
}

}  // namespace espalier

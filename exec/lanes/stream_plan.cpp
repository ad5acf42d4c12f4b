// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/stream_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"
#include "exec/lanes/stream_order.h"

namespace espalier {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Operands in scratch memory begin at multiples of this, as buffers do.
constexpr std::int64_t kScratchAlignment = 256;

// Blocks of a kernel whose bytes come over a link. A block has 16 KiB under way (256 threads, four
// loads of 16 bytes each), so that 64 of them cover 1 us at 1 TB/s, more than any link has; where
// lanes use several links at a time each gets its share, but no fewer than the smaller number,
// which covers a PCIe or NVLink of 100 GB/s.
constexpr int kMaxRemoteBlocks = 64;
constexpr int kMinRemoteBlocks = 8;

std::int64_t round_up(std::int64_t bytes) {
  return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

using DevicePair = std::pair<int, int>;

/// Who maps whose memory.
struct Peers {
  std::set<DevicePair> mapped;
  std::set<DevicePair> left_out;
};

/// Elements that devices read from and write to others, by pair.
std::map<DevicePair, std::int64_t> traffic(const Program& program, const LanePrograms& lowered,
                                           const DeviceSet& devices,
                                           const std::vector<int>& device_of) {
  std::map<DevicePair, std::int64_t> elements;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine || lowered.ops[id].elements == 0) continue;
    const auto note = [&](PlaceId place) {
      const int owner = devices.device_of_place[static_cast<std::size_t>(place)];
      if (owner != DeviceSet::kHost && owner != device_of[id])
        elements[{device_of[id], owner}] += lowered.ops[id].elements;
    };
    note(op.dst.place);
    for (const Operand& source : program.sources_of(op)) note(source.place);
  }
  return elements;
}

Peers choose_peers(const Program& program, const LanePrograms& lowered, const DeviceSet& devices,
                   const std::vector<int>& device_of) {
  std::vector<std::pair<std::int64_t, DevicePair>> wanted;
  Peers peers;
  for (const auto& [pair, elements] : traffic(program, lowered, devices, device_of)) {
    if (devices.can_access[static_cast<std::size_t>(pair.first)]
                          [static_cast<std::size_t>(pair.second)]) {
      wanted.push_back({-elements, pair});
    } else {
      peers.left_out.insert(pair);
    }
  }
  std::ranges::sort(wanted);
  std::vector<std::set<int>> others(devices.can_access.size());
  for (const auto& [order, pair] : wanted) {
    const auto [device, other] = pair;
    auto& mine = others[static_cast<std::size_t>(device)];
    auto& its = others[static_cast<std::size_t>(other)];
    const auto maximum = static_cast<std::size_t>(devices.max_peers);
    // Between two devices it is one connection, whichever maps the other.
    if (mine.count(other) == 0 && (mine.size() >= maximum || its.size() >= maximum)) {
      peers.left_out.insert(pair);
      continue;
    }
    mine.insert(other);
    its.insert(device);
    peers.mapped.insert(pair);
  }
  return peers;
}

class Planner {
 public:
  Planner(const Program& program, const LanePrograms& lowered, const DeviceSet& devices)
      : program_(program),
        lowered_(lowered),
        devices_(devices),
        device_of_(devices_of_ops(program, devices)),
        order_(order_streams(program, lowered, device_of_, devices.max_streams)),
        peers_(choose_peers(program, lowered, devices, device_of_)) {}

  StreamPlan plan(std::size_t element_bytes) {
    plan_.element_bytes = element_bytes;
    for (const int device : order_.stream_devices) plan_.streams.push_back({device, 0});
    plan_.peers.assign(peers_.mapped.begin(), peers_.mapped.end());
    plan_.unmapped.assign(peers_.left_out.begin(), peers_.left_out.end());
    count_waiters();
    const std::vector<bool> forked = forked_streams();
    const std::uint32_t start =
        std::ranges::count(forked, true) > 0 ? record(0, StreamCommand::kNoOp) : kNone;
    std::vector<bool> begun(plan_.streams.size(), false);
    for (std::uint32_t at = 0; at < order_.ops.size(); ++at) {
      const IssuedOp& issued = order_.ops[at];
      if (!begun[issued.stream] && forked[issued.stream]) {
        add_event(StreamCommandKind::wait, issued.stream, start, issued.op);
      }
      begun[issued.stream] = true;
      for (const std::uint32_t needed : order_.waits_of(issued)) {
        wait_for(issued.stream, needed, issued.op);
      }
      add_op(issued);
      if (waiters_[at] > 0) event_of_[at] = record(issued.stream, issued.op);
    }
    for (const std::uint32_t needed : order_.joins) wait_for(0, needed, StreamCommand::kNoOp);
    count_remote_streams();
    return std::move(plan_);
  }

 private:
  bool reaches(int device, PlaceId place) const {
    const int owner = devices_.device_of_place[static_cast<std::size_t>(place)];
    return owner == DeviceSet::kHost || owner == device || peers_.mapped.count({device, owner}) > 0;
  }

  /// Whether a combine's kernel may have this operand where it is.
  bool combines_in(int device, PlaceId place) const {
    if (devices_.copy_engines != CopyEngineUse::operands) return reaches(device, place);
    return devices_.device_of_place[static_cast<std::size_t>(place)] == device;
  }

  void count_waiters() {
    event_of_.assign(order_.ops.size(), kNone);
    waiters_.assign(order_.ops.size(), 0);
    for (const std::uint32_t needed : order_.waits) ++waiters_[needed];
    for (const std::uint32_t needed : order_.joins) ++waiters_[needed];
  }

  /// Streams whose first op waits for nothing, and so would not know when to begin.
  std::vector<bool> forked_streams() const {
    std::vector<bool> forked(plan_.streams.size(), false);
    std::vector<bool> begun(plan_.streams.size(), false);
    begun[0] = true;
    for (const IssuedOp& issued : order_.ops) {
      if (begun[issued.stream]) continue;
      begun[issued.stream] = true;
      forked[issued.stream] = issued.wait_begin == issued.wait_end;
    }
    return forked;
  }

  void add_event(StreamCommandKind kind, std::uint32_t stream, std::uint32_t event, OpId op) {
    StreamCommand command;
    command.kind = kind;
    command.stream = stream;
    command.event = event;
    command.op = op;
    plan_.commands.push_back(command);
  }

  /// The event of what is needed is free for another one when its last waiter has been told.
  void wait_for(std::uint32_t stream, std::uint32_t needed, OpId op) {
    add_event(StreamCommandKind::wait, stream, event_of_[needed], op);
    if (--waiters_[needed] > 0) return;
    free_events_[plan_.event_devices[event_of_[needed]]].push_back(event_of_[needed]);
  }

  std::uint32_t record(std::uint32_t stream, OpId op) {
    const int device = plan_.streams[stream].device;
    std::vector<std::uint32_t>& free = free_events_[device];
    std::uint32_t event = 0;
    if (free.empty()) {
      event = static_cast<std::uint32_t>(plan_.event_devices.size());
      plan_.event_devices.push_back(device);
    } else {
      event = free.back();
      free.pop_back();
    }
    add_event(StreamCommandKind::record, stream, event, op);
    return event;
  }

  /// Whether a device has to go over a link for an operand.
  bool is_remote(int device, const BufferOffset& operand) const {
    return operand.place != kStreamScratch &&
           devices_.device_of_place[static_cast<std::size_t>(operand.place)] != device;
  }

  void count_remote_streams() {
    std::vector<bool> remote(plan_.streams.size(), false);
    for (const StreamCommand& command : plan_.commands) {
      if (command.kind == StreamCommandKind::fold && command.remote) remote[command.stream] = true;
    }
    plan_.remote_streams.assign(devices_.can_access.size(), 0);
    for (std::size_t stream = 0; stream < remote.size(); ++stream) {
      if (remote[stream]) {
        ++plan_.remote_streams[static_cast<std::size_t>(plan_.streams[stream].device)];
      }
    }
  }

  void add(StreamCommandKind kind, const IssuedOp& issued, const BufferOffset& dst,
           std::span<const BufferOffset> sources) {
    StreamCommand command;
    command.kind = kind;
    command.stream = issued.stream;
    command.op = issued.op;
    command.source_begin = static_cast<std::uint32_t>(plan_.sources.size());
    command.source_count = static_cast<std::uint32_t>(sources.size());
    command.dst = dst;
    command.elements = lowered_.ops[issued.op].elements;
    const int device = plan_.streams[issued.stream].device;
    const auto remote = [&](const BufferOffset& operand) { return is_remote(device, operand); };
    command.remote =
        kind != StreamCommandKind::compute && (remote(dst) || std::ranges::any_of(sources, remote));
    plan_.sources.insert(plan_.sources.end(), sources.begin(), sources.end());
    plan_.commands.push_back(command);
  }

  void add_op(const IssuedOp& issued) {
    const std::size_t begin = plan_.commands.size();
    const Op& op = program_.ops[issued.op];
    if (op.kind != OpKind::combine) {
      add(StreamCommandKind::compute, issued, {}, {});
    } else if (op.src_count == 1) {
      add_copy(issued);
    } else {
      add_fold(issued);
    }
    plan_.commands[begin].begins_op = true;
    plan_.commands.back().ends_op = true;
  }

  std::span<const BufferOffset> sources_of(const IssuedOp& issued) const {
    const Op& op = program_.ops[issued.op];
    return std::span(lowered_.sources).subspan(op.src_begin, op.src_count);
  }

  void add_copy(const IssuedOp& issued) {
    const BufferOffset& dst = lowered_.ops[issued.op].dst;
    const auto sources = sources_of(issued);
    const int device = plan_.streams[issued.stream].device;
    const auto on_host = [&](const BufferOffset& operand) {
      return devices_.device_of_place[static_cast<std::size_t>(operand.place)] == DeviceSet::kHost;
    };
    const bool by_engine =
        devices_.copy_engines != CopyEngineUse::none && !(on_host(dst) && on_host(sources[0]));
    const bool by_kernel =
        !by_engine && reaches(device, dst.place) && reaches(device, sources[0].place);
    add(by_kernel ? StreamCommandKind::fold : StreamCommandKind::copy, issued, dst, sources);
  }

  void add_fold(const IssuedOp& issued) {
    const LoweredOp& lowered = lowered_.ops[issued.op];
    const int device = plan_.streams[issued.stream].device;
    const std::int64_t slot =
        round_up(lowered.elements * static_cast<std::int64_t>(plan_.element_bytes));
    std::int64_t used = 0;
    const auto take_scratch = [&] {
      const BufferOffset taken{kStreamScratch, Buffer::tmp, used};
      used += slot;
      return taken;
    };
    const auto lowered_sources = sources_of(issued);
    std::vector<BufferOffset> sources(lowered_sources.begin(), lowered_sources.end());
    for (BufferOffset& source : sources) {
      if (combines_in(device, source.place)) continue;
      const BufferOffset remote = source;
      source = take_scratch();
      add(StreamCommandKind::copy, issued, source, {&remote, 1});
    }
    if (combines_in(device, lowered.dst.place)) {
      add(StreamCommandKind::fold, issued, lowered.dst, sources);
    } else {
      const BufferOffset result = take_scratch();
      add(StreamCommandKind::fold, issued, result, sources);
      add(StreamCommandKind::copy, issued, lowered.dst, {&result, 1});
    }
    // Ops of a stream follow each other, so they can all use the same scratch memory.
    std::int64_t& scratch = plan_.streams[issued.stream].scratch_bytes;
    scratch = std::max(scratch, used);
  }

  const Program& program_;
  const LanePrograms& lowered_;
  const DeviceSet& devices_;
  const std::vector<int> device_of_;  // by op
  const StreamOrder order_;
  const Peers peers_;
  StreamPlan plan_;
  std::vector<std::uint32_t> waiters_;   // by issued op: who has not been told yet
  std::vector<std::uint32_t> event_of_;  // by issued op
  std::map<int, std::vector<std::uint32_t>> free_events_;  // by device
};

}  // namespace

std::vector<int> devices_of_ops(const Program& program, const DeviceSet& devices) {
  const auto device_of = [&](PlaceId place) {
    return devices.device_of_place[static_cast<std::size_t>(place)];
  };
  std::vector<int> all;
  all.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    int device = device_of(op.at);
    if (device == DeviceSet::kHost && op.kind == OpKind::combine) {
      device = device_of(op.dst.place);
      for (const Operand& source : program.sources_of(op)) {
        if (device == DeviceSet::kHost) device = device_of(source.place);
      }
    }
    all.push_back(device == DeviceSet::kHost ? 0 : device);
  }
  return all;
}

int max_blocks(const StreamPlan& plan, const StreamCommand& command, int resident) {
  if (!command.remote) return resident;
  const int device = plan.streams[command.stream].device;
  const int sharing = std::max(1, plan.remote_streams[static_cast<std::size_t>(device)]);
  return std::min(resident, std::clamp(resident / sharing, kMinRemoteBlocks, kMaxRemoteBlocks));
}

StreamPlan plan_streams(const Program& program, const LanePrograms& lowered,
                        const DeviceSet& devices, std::size_t element_bytes) {
  CHECK(devices.device_of_place.size() == static_cast<std::size_t>(program.places()));
  return Planner(program, lowered, devices).plan(element_bytes);
}

}  // namespace espalier

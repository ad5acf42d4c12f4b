// SPDX-License-Identifier: Apache-2.0
#include "tests/exec/recording_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "exec/host/combine_kernels.h"

namespace espalier {

RecordingDevice::RecordingDevice(const Program& program, const StreamPlan& plan,
                                 const DeviceSet& devices, DataType type, ReduceOp op)
    : program_(program),
      plan_(plan),
      devices_(devices),
      type_(type),
      op_(op),
      mapped_(plan.peers.begin(), plan.peers.end()),
      streams_(plan.streams.size()),
      recorded_(plan.event_devices.size(), kNone) {}

void RecordingDevice::give(const StreamCommand& command, std::uint32_t after) {
  auto& stream = streams_.at(command.stream);
  stream.push_back(static_cast<std::uint32_t>(given_.size()));
  given_.push_back({command, after});
  position_.push_back(static_cast<std::uint32_t>(stream.size()));
}

void RecordingDevice::wait(const StreamCommand& command) {
  if (recorded_.at(command.event) == kNone) {
    problems_.push_back("a wait for event " + std::to_string(command.event) + ", never recorded");
  }
  give(command, recorded_[command.event]);
}

void RecordingDevice::record(const StreamCommand& command) {
  const std::uint32_t event = command.event;
  if (plan_.event_devices.at(event) != plan_.streams.at(command.stream).device) {
    problems_.push_back("event " + std::to_string(event) + " recorded on another device");
  }
  recorded_.at(event) = static_cast<std::uint32_t>(given_.size());
  give(command);
}

bool RecordingDevice::kernel_reaches(int device, const BufferOffset& operand) const {
  if (operand.place == kStreamScratch) return true;
  const int owner = devices_.device_of_place.at(static_cast<std::size_t>(operand.place));
  return owner == DeviceSet::kHost || owner == device || mapped_.count({device, owner}) > 0;
}

void RecordingDevice::copy(const StreamCommand& command) { give(command); }

void RecordingDevice::fold(const StreamCommand& command) {
  const int device = plan_.streams.at(command.stream).device;
  bool reaches = kernel_reaches(device, command.dst);
  for (const BufferOffset& source : plan_.sources_of(command)) {
    reaches = reaches && kernel_reaches(device, source);
  }
  if (!reaches) {
    problems_.push_back("op " + std::to_string(command.op) + " reaches for foreign memory");
  }
  give(command);
}

void RecordingDevice::compute(const StreamCommand& command) { give(command); }

std::vector<RecordingDevice::Clock> RecordingDevice::clocks() const {
  std::vector<Clock> after(given_.size());
  std::vector<Clock> now(streams_.size(), Clock(streams_.size(), 0));
  for (std::size_t i = 0; i < given_.size(); ++i) {
    Clock& clock = now[given_[i].command.stream];
    if (given_[i].after != kNone) {
      const Clock& other = after[given_[i].after];
      for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
    }
    clock[given_[i].command.stream] = position_[i];
    after[i] = clock;
  }
  return after;
}

std::vector<std::string> RecordingDevice::problems() const {
  std::vector<std::string> all = problems_;
  const std::vector<Clock> after = clocks();
  for (std::size_t s = 1; s < streams_.size(); ++s) {
    if (streams_[s].empty()) continue;
    const std::uint32_t first = streams_[s].front();
    if (given_[first].after == kNone) {
      all.push_back("stream " + std::to_string(s) + " begins on its own");
    }
    const bool joined =
        !streams_[0].empty() && after[streams_[0].back()][s] >= position_[streams_[s].back()];
    // What comes after a stream's last op can only be the recording the origin waits for.
    if (!joined) all.push_back("stream 0 does not wait for stream " + std::to_string(s));
  }
  return all;
}

std::vector<std::pair<OpId, OpId>> RecordingDevice::unordered() const {
  const std::vector<Clock> after = clocks();
  std::vector<std::uint32_t> first(program_.ops.size(), kNone);
  std::vector<std::uint32_t> last(program_.ops.size(), kNone);
  for (std::uint32_t i = 0; i < given_.size(); ++i) {
    if (!is_op(given_[i].command)) continue;
    const OpId op = given_[i].command.op;
    if (given_[i].command.begins_op) first[op] = i;
    if (given_[i].command.ends_op) last[op] = i;
  }
  std::vector<std::pair<OpId, OpId>> found;
  const auto require = [&](OpId earlier, OpId later) {
    const std::uint32_t done = last.at(earlier);
    const std::uint32_t begin = first.at(later);
    // Before its first command, a stream knows what it knew after that, but for the command itself.
    if (done == kNone || begin == kNone ||
        after[begin][given_[done].command.stream] < position_[done]) {
      found.emplace_back(earlier, later);
    }
  };
  std::vector<std::pair<std::uint64_t, OpId>> lanes;
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    const Op& op = program_.ops[id];
    for (const OpId needed : program_.dependencies_of(op)) require(needed, id);
    lanes.emplace_back((static_cast<std::uint64_t>(op.at) << 16) | op.lane, id);
  }
  std::ranges::sort(lanes);
  for (std::size_t i = 1; i < lanes.size(); ++i) {
    if (lanes[i].first == lanes[i - 1].first) require(lanes[i - 1].second, lanes[i].second);
  }
  return found;
}

void RecordingDevice::carry_out(const StreamCommand& command, Memory& memory,
                                std::vector<std::vector<std::byte>>& scratch) const {
  if (!is_op(command) || command.kind == StreamCommandKind::compute) return;
  const std::size_t bytes = static_cast<std::size_t>(command.elements) * plan_.element_bytes;
  const auto at = [&](const BufferOffset& operand) {
    auto& buffer = operand.place == kStreamScratch
                       ? scratch[command.stream]
                       : memory.places.at(static_cast<std::size_t>(operand.place))
                             .at(static_cast<std::size_t>(operand.buffer));
    EXPECT_LE(static_cast<std::size_t>(operand.bytes) + bytes, buffer.size());
    return buffer.data() + operand.bytes;
  };
  std::vector<const std::byte*> sources;
  for (const BufferOffset& source : plan_.sources_of(command)) sources.push_back(at(source));
  combine(type_, op_, at(command.dst), sources, command.elements);
}

void RecordingDevice::run(Memory& memory, std::mt19937_64& random) const {
  std::vector<std::vector<std::byte>> scratch;
  for (const PlannedStream& stream : plan_.streams) {
    scratch.emplace_back(static_cast<std::size_t>(stream.scratch_bytes), std::byte{0xA5});
  }
  std::vector<bool> done(given_.size(), false);
  std::vector<std::size_t> next(streams_.size(), 0);
  // A stream drawn by chance goes on as far as it can: the order that differs most from the one in
  // which commands were given.
  std::vector<std::uint32_t> order(streams_.size());
  for (std::uint32_t s = 0; s < order.size(); ++s) order[s] = s;
  for (std::size_t left = given_.size(); left > 0;) {
    const std::size_t before = left;
    std::ranges::shuffle(order, random);
    for (const std::uint32_t s : order) {
      for (; next[s] < streams_[s].size(); ++next[s], --left) {
        const std::uint32_t i = streams_[s][next[s]];
        if (given_[i].after != kNone && !done[given_[i].after]) break;
        carry_out(given_[i].command, memory, scratch);
        done[i] = true;
        if (random() % 8 == 0) {
          ++next[s];
          --left;
          break;
        }
      }
    }
    ASSERT_LT(left, before) << "the streams block each other";
  }
}

void expect_right(const Program& program, const DeviceSet& devices, DataType type, ReduceOp op,
                  std::int64_t elements, std::mt19937_64& random) {
  const LanePrograms lowered = lower(program, elements, size_of(type));
  const StreamPlan plan = plan_streams(program, lowered, devices, size_of(type));
  RecordingDevice device(program, plan, devices, type, op);
  issue(plan, device);
  for (const std::string& problem : device.problems()) ADD_FAILURE() << problem;
  for (const auto& [earlier, later] : device.unordered()) {
    ADD_FAILURE() << "op " << later << " need not wait for op " << earlier;
  }
  Memory memory = initial_memory(program, type, op, elements);
  device.run(memory, random);
  EXPECT_EQ(count_wrong(program, type, op, elements, memory), 0);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/stream_order.h"

#include <algorithm>
#include <deque>
#include <map>

#include "core/check.h"
#include "exec/lanes/stuck_report.h"

namespace espalier {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// By stream: how many of its ops are known to be done.
using Clock = std::vector<std::uint32_t>;

void merge(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

class Orderer {
 public:
  Orderer(const Program& program, const LanePrograms& lowered, const std::vector<int>& device_of,
          int max_streams)
      : program_(program),
        lowered_(lowered),
        issued_at_(program.ops.size(), kNone),
        position_(program.ops.size(), 0),
        snapshot_uses_(program.ops.size(), 0),
        snapshots_(program.ops.size()),
        parked_(lowered.event_ops.size()) {
    choose_streams(device_of, max_streams);
    clocks_.assign(order_.stream_devices.size(), Clock(order_.stream_devices.size(), 0));
    for (const Lane& lane : lowered.lanes) next_.push_back(lane.begin);
    last_.assign(lowered.lanes.size(), kNone);
    count_snapshot_uses();
    order_.ops.reserve(program.ops.size());
  }

  StreamOrder run() {
    for (std::uint32_t lane = 0; lane < next_.size(); ++lane) ready_.push_back(lane);
    while (!ready_.empty()) {
      const std::uint32_t lane = ready_.front();
      ready_.pop_front();
      if (step(lane)) ready_.push_back(lane);
    }
    if (order_.ops.size() < program_.ops.size()) {
      throw stuck_error("the program cannot continue: every unfinished lane waits for another one",
                        program_, lowered_, blocked_lanes());
    }
    join();
    return std::move(order_);
  }

 private:
  void choose_streams(const std::vector<int>& device_of, int max_streams) {
    stream_of_.resize(program_.ops.size());
    std::map<int, std::vector<std::uint32_t>> streams;           // by device
    std::map<int, std::size_t> lanes;                            // by device
    std::map<std::pair<std::size_t, int>, std::uint32_t> given;  // by lane and device
    for (std::size_t lane = 0; lane < lowered_.lanes.size(); ++lane) {
      for (const Command& command : lowered_.commands_of(lowered_.lanes[lane])) {
        if (command.kind == CommandKind::wait || command.kind == CommandKind::record) continue;
        const int device = device_of[command.index];
        const auto [stream, is_new] = given.try_emplace({lane, device}, 0);
        if (is_new) {
          auto& here = streams[device];
          const std::size_t slot = lanes[device]++ % static_cast<std::size_t>(max_streams);
          if (slot == here.size()) {
            here.push_back(static_cast<std::uint32_t>(order_.stream_devices.size()));
            order_.stream_devices.push_back(device);
          }
          stream->second = here[slot];
        }
        stream_of_[command.index] = stream->second;
      }
    }
    if (order_.stream_devices.empty()) order_.stream_devices.push_back(0);
  }

  /// A snapshot of the clock after an op is kept until the last one that may wait for it is issued.
  void count_snapshot_uses() {
    for (const Lane& lane : lowered_.lanes) {
      std::uint32_t previous = kNone;
      for (const Command& command : lowered_.commands_of(lane)) {
        if (command.kind == CommandKind::record) continue;
        if (command.kind == CommandKind::wait) {
          ++snapshot_uses_[lowered_.event_ops[command.index]];
          continue;
        }
        if (previous != kNone && stream_of_[previous] != stream_of_[command.index]) {
          ++snapshot_uses_[previous];
        }
        previous = command.index;
      }
    }
  }

  /// Issues the next op of a lane, or parks the lane at the event it needs. Returns whether the
  /// lane can be looked at again.
  bool step(std::uint32_t lane) {
    const std::uint32_t end = lowered_.lanes[lane].end;
    std::uint32_t cursor = next_[lane];
    needs_.clear();
    for (; lowered_.commands[cursor].kind == CommandKind::wait; ++cursor) {
      const EventId event = lowered_.commands[cursor].index;
      const OpId needed = lowered_.event_ops[event];
      if (issued_at_[needed] == kNone) {
        parked_[event].push_back(lane);
        return false;
      }
      needs_.push_back(needed);
    }
    const OpId op = lowered_.commands[cursor++].index;
    if (last_[lane] != kNone && stream_of_[last_[lane]] != stream_of_[op]) {
      needs_.push_back(last_[lane]);
    }
    issue(op);
    last_[lane] = op;
    if (cursor < end && lowered_.commands[cursor].kind == CommandKind::record) {
      std::vector<std::uint32_t>& waiting = parked_[lowered_.commands[cursor++].index];
      ready_.insert(ready_.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    next_[lane] = cursor;
    return cursor < end;
  }

  /// Appends the op, with those of `needs_` that nothing else implies.
  void issue(OpId op) {
    const std::uint32_t stream = stream_of_[op];
    Clock& clock = clocks_[stream];
    IssuedOp issued{op, stream, static_cast<std::uint32_t>(order_.waits.size()), 0};
    // What was issued later may imply what was issued earlier, never the reverse.
    std::ranges::sort(needs_, [&](OpId a, OpId b) { return issued_at_[a] > issued_at_[b]; });
    for (const OpId needed : needs_) {
      if (clock[stream_of_[needed]] < position_[needed]) {
        order_.waits.push_back(issued_at_[needed]);
        merge(clock, snapshots_[needed]);
      }
      if (--snapshot_uses_[needed] == 0) Clock().swap(snapshots_[needed]);
    }
    issued.wait_end = static_cast<std::uint32_t>(order_.waits.size());
    position_[op] = ++clock[stream];
    if (snapshot_uses_[op] > 0) snapshots_[op] = clock;
    issued_at_[op] = static_cast<std::uint32_t>(order_.ops.size());
    order_.ops.push_back(issued);
  }

  void join() {
    std::vector<std::uint32_t> last(clocks_.size(), kNone);
    for (std::uint32_t i = 0; i < order_.ops.size(); ++i) last[order_.ops[i].stream] = i;
    std::ranges::sort(last, std::greater<>());
    for (const std::uint32_t at : last) {
      if (at == kNone) continue;  // only when there are no ops at all
      const std::uint32_t stream = order_.ops[at].stream;
      if (clocks_[0][stream] >= position_[order_.ops[at].op]) continue;
      order_.joins.push_back(at);
      merge(clocks_[0], clocks_[stream]);
    }
  }

  std::vector<BlockedLane> blocked_lanes() const {
    std::vector<BlockedLane> blocked;
    for (std::uint32_t lane = 0; lane < next_.size(); ++lane) {
      if (next_[lane] == lowered_.lanes[lane].end) continue;
      std::uint32_t cursor = next_[lane];
      while (issued_at_[lowered_.event_ops[lowered_.commands[cursor].index]] != kNone) ++cursor;
      blocked.push_back(
          {lane, lowered_.op_at(cursor), lowered_.event_ops[lowered_.commands[cursor].index]});
    }
    return blocked;
  }

  const Program& program_;
  const LanePrograms& lowered_;
  StreamOrder order_;
  std::vector<std::uint32_t> stream_of_;            // by op
  std::vector<std::uint32_t> issued_at_;            // by op: index into order_.ops
  std::vector<std::uint32_t> position_;             // by op: counted from 1 in its stream
  std::vector<std::uint32_t> snapshot_uses_;        // by op
  std::vector<Clock> snapshots_;                    // by op, while somebody may wait for it
  std::vector<Clock> clocks_;                       // by stream
  std::vector<std::uint32_t> next_;                 // by lane: command
  std::vector<OpId> last_;                          // by lane: op issued last
  std::vector<std::vector<std::uint32_t>> parked_;  // by event: lanes
  std::deque<std::uint32_t> ready_;                 // lanes
  std::vector<OpId> needs_;
};

}  // namespace

StreamOrder order_streams(const Program& program, const LanePrograms& lowered,
                          const std::vector<int>& device_of, int max_streams) {
  CHECK(max_streams >= 1);
  return Orderer(program, lowered, device_of, max_streams).run();
}

}  // namespace espalier

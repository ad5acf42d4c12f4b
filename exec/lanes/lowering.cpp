// SPDX-License-Identifier: Apache-2.0
#include "exec/lanes/lowering.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/error.h"

namespace espalier {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::uint64_t lane_key(const Op& op) { return (static_cast<std::uint64_t>(op.at) << 16) | op.lane; }

// Ops by lane, in program order: a counting sort.
struct LaneOrder {
  std::vector<Lane> lanes;                 // begin and end count ops here
  std::vector<std::uint32_t> lane_of;      // by op
  std::vector<std::uint32_t> position_of;  // by op: place in its lane
  std::vector<OpId> ops;                   // lane after lane
};

LaneOrder order_by_lane(const Program& program) {
  const std::size_t op_count = program.ops.size();
  std::vector<std::uint64_t> keys(op_count);
  std::transform(program.ops.begin(), program.ops.end(), keys.begin(), lane_key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());

  LaneOrder order;
  order.lanes.reserve(keys.size());
  for (const std::uint64_t key : keys) {
    order.lanes.push_back({static_cast<PlaceId>(key >> 16), static_cast<int>(key & 0xFFFF), 0, 0});
  }
  order.lane_of.resize(op_count);
  order.position_of.resize(op_count);
  for (OpId op = 0; op < op_count; ++op) {
    const auto key = std::lower_bound(keys.begin(), keys.end(), lane_key(program.ops[op]));
    const auto lane = static_cast<std::uint32_t>(key - keys.begin());
    order.lane_of[op] = lane;
    order.position_of[op] = order.lanes[lane].end++;
  }
  std::uint32_t begin = 0;
  for (Lane& lane : order.lanes) {
    lane.begin = begin;
    lane.end = begin += lane.end;
  }
  order.ops.resize(op_count);
  for (OpId op = 0; op < op_count; ++op) {
    order.ops[order.lanes[order.lane_of[op]].begin + order.position_of[op]] = op;
  }
  return order;
}

struct Wait {
  OpId op = 0;     // who waits
  OpId needs = 0;  // for whom
};

// The waits that are left when those that lane order or an earlier wait of the same lane imply are
// dropped, in lane order.
std::vector<Wait> needed_waits(const Program& program, const LaneOrder& order) {
  std::vector<Wait> waits;
  // By lane: the positions known to be done before the lane at hand goes on, as a count; valid when
  // the stamp is that of the lane at hand.
  std::vector<std::uint32_t> done(order.lanes.size(), 0);
  std::vector<std::uint32_t> stamp(order.lanes.size(), kNone);
  std::vector<OpId> latest;  // dependencies of an op: the last one of each lane comes first
  for (std::uint32_t lane = 0; lane < order.lanes.size(); ++lane) {
    for (std::uint32_t i = order.lanes[lane].begin; i < order.lanes[lane].end; ++i) {
      const OpId op = order.ops[i];
      const auto dependencies = program.dependencies_of(program.ops[op]);
      latest.assign(dependencies.begin(), dependencies.end());
      std::sort(latest.begin(), latest.end(), [&](OpId a, OpId b) {
        return std::pair(order.lane_of[a], order.position_of[b]) <
               std::pair(order.lane_of[b], order.position_of[a]);
      });
      for (const OpId needs : latest) {
        const std::uint32_t other = order.lane_of[needs];
        const std::uint32_t position = order.position_of[needs];
        if (other == lane && position < order.position_of[op]) continue;
        if (stamp[other] == lane && position < done[other]) continue;
        stamp[other] = lane;
        done[other] = position + 1;
        waits.push_back({op, needs});
      }
    }
  }
  return waits;
}

void write_commands(const Program& program, const LaneOrder& order, LanePrograms& lowered) {
  const std::vector<Wait> waits = needed_waits(program, order);
  std::vector<EventId> event_of(program.ops.size(), kNone);
  for (const Wait& wait : waits) event_of[wait.needs] = 0;
  for (OpId op = 0; op < program.ops.size(); ++op) {
    if (event_of[op] == kNone) continue;
    event_of[op] = static_cast<EventId>(lowered.event_ops.size());
    lowered.event_ops.push_back(op);
  }
  const std::size_t count = waits.size() + program.ops.size() + lowered.event_ops.size();
  if (count >= kNone) {
    throw Error(ErrorKind::unsupported, "the program has more than 2^32 commands");
  }
  lowered.commands.reserve(count);
  auto wait = waits.begin();
  for (Lane lane : order.lanes) {
    const auto begin = static_cast<std::uint32_t>(lowered.commands.size());
    for (std::uint32_t i = lane.begin; i < lane.end; ++i) {
      const OpId op = order.ops[i];
      for (; wait != waits.end() && wait->op == op; ++wait) {
        lowered.commands.push_back({CommandKind::wait, event_of[wait->needs]});
      }
      const bool combines = program.ops[op].kind == OpKind::combine;
      lowered.commands.push_back({combines ? CommandKind::combine : CommandKind::compute, op});
      if (event_of[op] != kNone) lowered.commands.push_back({CommandKind::record, event_of[op]});
    }
    lane.begin = begin;
    lane.end = static_cast<std::uint32_t>(lowered.commands.size());
    lowered.lanes.push_back(lane);
  }
  CHECK(wait == waits.end());
}

/// By place and buffer.
std::vector<std::array<std::int64_t, 3>> units_of_buffers(const Program& program) {
  const std::vector<std::int64_t> scratch = tmp_units(program);
  std::vector<std::array<std::int64_t, 3>> units(static_cast<std::size_t>(program.places()));
  for (PlaceId place = 0; place < program.places(); ++place) {
    auto& of_place = units[static_cast<std::size_t>(place)];
    of_place[static_cast<std::size_t>(Buffer::tmp)] = scratch[static_cast<std::size_t>(place)];
    if (place >= program.ranks()) continue;
    for (const Buffer buffer : {Buffer::in, Buffer::out}) {
      of_place[static_cast<std::size_t>(buffer)] = buffer_units(program.contract, place, buffer);
    }
  }
  return units;
}

}  // namespace

std::vector<std::array<double, 3>> buffer_sizes(const Program& program, const ElementLayout& layout,
                                                std::size_t element_bytes) {
  // A buffer of more units than the message has begins again.
  const std::int64_t message_units = program.contract.units;
  const auto bytes = [&](std::int64_t units) {
    const double messages = static_cast<double>(units / message_units);
    const double rest = static_cast<double>(layout.offset(units % message_units));
    return (messages * static_cast<double>(layout.message_elements()) + rest) *
           static_cast<double>(element_bytes);
  };
  std::vector<std::array<double, 3>> sizes;
  for (const auto& units : units_of_buffers(program)) {
    sizes.push_back({bytes(units[0]), bytes(units[1]), bytes(units[2])});
  }
  return sizes;
}

double lowered_bytes(const Program& program) {
  // Each op may record an event; each dependency may be a wait.
  const std::size_t ops = program.ops.size();
  const std::size_t waits = program.dependencies.size();
  const std::size_t bytes = ops * (sizeof(LoweredOp) + 2 * sizeof(Command) + sizeof(OpId)) +
                            waits * sizeof(Command) + program.sources.size() * sizeof(BufferOffset);
  return static_cast<double>(bytes);
}

OpId LanePrograms::op_at(std::uint32_t command) const {
  if (commands[command].kind == CommandKind::record) return event_ops[commands[command].index];
  while (commands[command].kind == CommandKind::wait) ++command;  // waits stand before their op
  return commands[command].index;
}

LanePrograms lower(const Program& program, std::int64_t elements, std::size_t element_bytes) {
  const ElementLayout layout(program.contract, elements);
  const auto bytes = [&](std::int64_t unit) {
    return layout.offset(unit) * static_cast<std::int64_t>(element_bytes);
  };
  const auto offset = [&](const Operand& operand) {
    return BufferOffset{operand.place, operand.buffer, bytes(operand.begin)};
  };
  LanePrograms lowered;
  lowered.ops.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    if (op.kind == OpKind::combine) {
      lowered.ops.push_back({offset(op.dst), layout.count(op.dst.begin, op.length)});
    } else {
      lowered.ops.emplace_back();
    }
  }
  lowered.sources.reserve(program.sources.size());
  for (const Operand& source : program.sources) lowered.sources.push_back(offset(source));

  for (const auto& units : units_of_buffers(program)) {
    lowered.buffer_bytes.push_back({bytes(units[0]), bytes(units[1]), bytes(units[2])});
  }
  write_commands(program, order_by_lane(program), lowered);
  return lowered;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/collective.h"
#include "ir/program.h"

namespace espalier {

using EventId = std::uint32_t;

/// What a lane does next. `index` is an event to wait for or to record, or an op to carry out.
enum class CommandKind : std::uint8_t { wait, combine, compute, record };
struct Command {
  CommandKind kind = CommandKind::wait;
  std::uint32_t index = 0;
  bool operator==(const Command&) const = default;
};

/// A position in the memory of a place.
struct BufferOffset {
  PlaceId place = 0;
  Buffer buffer = Buffer::in;
  std::int64_t bytes = 0;
  bool operator==(const BufferOffset&) const = default;
};

/// A combine for one message size: every operand has `elements` elements (maybe none). Its sources
/// are those of the op with the same number, in LanePrograms::sources.
struct LoweredOp {
  BufferOffset dst;
  std::int64_t elements = 0;
};

/// The commands of one (place, lane), in order: LanePrograms::commands [begin, end).
struct Lane {
  PlaceId place = 0;
  int lane = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// A program for one message size, as independent command lists that meet at events: what a machine
/// with threads or streams runs. Plain data, the same for every executing back end.
struct LanePrograms {
  std::vector<Lane> lanes;  ///< by place, then lane number
  std::vector<Command> commands;
  std::vector<OpId> event_ops;        ///< by event: the op after which it is recorded
  std::vector<LoweredOp> ops;         ///< by op of the program; empty but for combines
  std::vector<BufferOffset> sources;  ///< same places as Program::sources
  std::vector<std::array<std::int64_t, 3>> buffer_bytes;  ///< by place and buffer

  std::span<const Command> commands_of(const Lane& lane) const {
    return {commands.data() + lane.begin, lane.end - lane.begin};
  }
  /// Of an op in a switch, which has further destinations.
  std::span<const BufferOffset> copies_of(const Op& op) const {
    return {sources.data() + op.src_begin + op.src_count, op.copy_count};
  }
  /// The op that a command waits for its turn of, carries out, or records the event of.
  OpId op_at(std::uint32_t command) const;
};

/// By place and buffer: the bytes that `lower` finds, for messages of any size, whose bytes may be
/// more than 64 bits count.
std::vector<std::array<double, 3>> buffer_sizes(const Program& program, const ElementLayout& layout,
                                                std::size_t element_bytes);

/// Bytes of this computer's memory that the lowered program takes at most.
double lowered_bytes(const Program& program);

/// Lowers a program for messages of `elements` elements of `element_bytes` bytes. An op records an
/// event only when another lane waits for it; a lane waits for the last op of another lane it
/// needs, and only when it has not waited for that op or a later one of the same lane before. \pre
/// rules R1..R4 hold (the order may be cyclic: running then gets stuck). Throws Error{unsupported}
/// when the program has more commands than 32 bits count.
LanePrograms lower(const Program& program, std::int64_t elements, std::size_t element_bytes);

}  // namespace espalier

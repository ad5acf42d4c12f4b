// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/lanes/lowering.h"
#include "ir/program.h"

namespace espalier {

/// `send` and `receive` are the two ends of a message between processes; `combine` folds operands
/// that are all in the memory of this process, where one operand is a copy.
enum class MessageStepKind : std::uint8_t { send, receive, combine };

/// The place of scratch memory that a process has beside its buffers.
inline constexpr PlaceId kMessageScratch = -1;

/// A part of an op that one process carries out.
struct MessageStep {
  MessageStepKind kind = MessageStepKind::combine;
  OpId op = 0;
  std::uint32_t position = 0;  ///< of the op in the order that all processes share
  int peer = -1;               ///< of a message: the process at its other end
  int tag = 0;                 ///< of a message: below kMessageTags
  BufferOffset memory;         ///< what is sent, or where what is received or combined goes
  std::int64_t elements = 0;   ///< at least one
  std::uint32_t source_begin = 0;
  std::uint32_t source_count = 0;  ///< of a combine, in MessagePlan::sources
  std::uint32_t needs = 0;         ///< earlier steps of this process that have to be over
  std::uint32_t next_begin = 0;
  std::uint32_t next_count = 0;  ///< later ones that need this one, in MessagePlan::next
};

/// Messages of a pair of processes and a direction are numbered modulo this many.
inline constexpr int kMessageTags = 1 << 14;

/// How many steps beyond the oldest one that is not over a process may have begun.
inline constexpr std::uint32_t kMessageWindow = 512;
static_assert(kMessageWindow < kMessageTags);

/// What one process does of a program for one message size: the two-sided form of lane programs,
/// for processes that see no memory but their own. Plain data.
///
/// All processes derive their steps from one order of the ops, in which everything that an op
/// depends on, by data or by its lane, comes before it. So the ends of a message match by
/// construction: both processes count the messages of their pair and direction in that order, and
/// the number is the tag. A dependency is always between steps of one process, the one that has the
/// memory in question; what the order of lanes or further dependencies say about different memory
/// cannot change a result, and is left out.
///
/// A process may begin a step when the steps it needs are over and it is one of the kMessageWindow
/// steps from the oldest that is not over. This never blocks, even where a send is not over before
/// it is received and nothing is buffered: take the first op in the common order of which a step is
/// not over in some process, and of its pieces the first of which one is not over. All steps it
/// needs are of earlier ops or pieces, or earlier steps of this one (receives, then the combine;
/// behind the last piece, sends), so these are over everywhere, or are being carried out. What is
/// left of the op is the oldest step of each of its processes, hence within their windows: both
/// ends of its messages are begun, and it goes on. Slots of scratch memory are given to ops in the
/// same order and an op gets all of its own at once, so waiting for a slot is waiting for an
/// earlier op. Two messages of a pair that are under way at a time have different tags, as a window
/// is shorter than the tags are many; of equal ones the earlier is sent first, and transports keep
/// the order of these.
struct MessagePlan {
  std::size_t element_bytes = 0;
  std::int64_t scratch_bytes = 0;
  std::vector<MessageStep> steps;  ///< in the common order
  std::vector<BufferOffset> sources;
  std::vector<std::uint32_t> next;

  std::size_t bytes_of(const MessageStep& step) const {
    return static_cast<std::size_t>(step.elements) * element_bytes;
  }
  std::span<const BufferOffset> sources_of(const MessageStep& step) const {
    return {sources.data() + step.source_begin, step.source_count};
  }
  std::span<const std::uint32_t> next_of(const MessageStep& step) const {
    return {next.data() + step.next_begin, step.next_count};
  }
};

/// Scratch memory of a process, and how much of an op it holds at a time.
struct Scratch {
  /// More only where an op could not be carried out otherwise.
  std::int64_t bytes = std::int64_t{32} << 20;
  /// What an op combines of others comes in pieces of so many bytes, or in 128 if these would be
  /// more, each of which is combined when it has come; 0: as a whole.
  std::int64_t piece_bytes = 0;
};

/// The process that has the memory of each place: ranks their own, and host memories and relays
/// that of the rank that uses them first.
std::vector<int> processes_of_places(const Program& program);

/// The ops by the length of the longest chain of dependencies and lanes that leads to them, so
/// roughly as they would run at the same time; of equal length, by number. Throws Error{runtime}
/// that names the blocked lanes when the program can't finish.
std::vector<OpId> common_order(const Program& program, const LanePrograms& lowered);

/// The steps of a process. `order`: common_order. All processes have the same `scratch`. \pre the
/// program only combines
MessagePlan plan_messages(const Program& program, const LanePrograms& lowered,
                          const std::vector<OpId>& order, const std::vector<int>& process_of_place,
                          int process, std::size_t element_bytes, const Scratch& scratch);

}  // namespace espalier

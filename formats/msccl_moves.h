// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/msccl_run.h"
#include "ir/program.h"

namespace espalier {

/// An op to be: at a point of the order of steps, before or after what the step there sends.
struct Move {
  std::int64_t point = 0;
  Operand dst;
  std::vector<Operand> sources;
  int count = 0;
  PlaceId at = 0;
  int lane = 0;
  int step = 0;     ///< that stores
  int sender = -1;  ///< the step that sends what it stores, or -1
  int by = 0;       ///< of the two, the one whose thread block carries it out
};

/// What the steps of a right algorithm move, in an order in which it can happen. Where a message
/// can't be read when it is sent and written when it is received at the same time, since either
/// memory is used otherwise in between, and no other order helps, it is two moves by way of
/// scratch, as in the runtime's FIFO. Private to the room.
std::vector<Move> msccl_moves(const MscclSteps& steps, const Contract& contract, int fifo_slots);

}  // namespace espalier

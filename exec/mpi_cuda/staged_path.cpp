// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/staged_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "exec/room.h"

namespace espalier::cuda {
namespace {

constexpr std::size_t kReserved = 2;
// Of a message: enough for each to be somewhere else on its way.
constexpr std::size_t kPiecesEach = 4;

PinnedBytes allocate_pinned(std::size_t bytes, int gpu) {
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc", gpu,
          fmt::format("for {} of pinned memory for messages",
                      format_memory(static_cast<double>(bytes))));
  return PinnedBytes(memory);
}

}  // namespace

StagedPath::StagedPath(int gpu, Mailbox& mailbox, StepOver over, const Staging& staging)
    : staging_(staging),
      mailbox_(mailbox),
      over_(std::move(over)),
      memory_(allocate_pinned(staging.bytes(), gpu)),
      sends_(gpu),
      receives_(gpu) {
  CHECK(staging.pieces > kReserved);
  auto* next = static_cast<std::byte*>(memory_.get());
  for (Flow* flow : {&sends_, &receives_}) {
    for (std::size_t i = 0; i < staging.pieces; ++i, next += staging.piece_bytes) {
      flow->free.push_back(next);
    }
  }
}

void StagedPath::begin(const GpuMessage& message) {
  Flow& flow = flow_of(message);
  flow.moving.emplace(message.step, Moving{message});
  flow.waiting.insert(message.step);
}

void StagedPath::advance(std::uint32_t oldest) {
  for (Flow* flow : {&sends_, &receives_}) {
    flow->queue.advance();
    begin_pieces(*flow, oldest);
  }
}

/// Of older messages first, as others wait for these.
void StagedPath::begin_pieces(Flow& flow, std::uint32_t oldest) {
  for (auto step = flow.waiting.begin(); step != flow.waiting.end() && !flow.free.empty();) {
    Moving& moving = flow.moving.at(*step);
    const std::size_t kept = *step == oldest ? 0 : kReserved;
    const auto under_way = [&] { return moving.begun - moving.over; };
    while (moving.begun < moving.message.bytes && flow.free.size() > kept &&
           under_way() < kPiecesEach * staging_.piece_bytes) {
      begin_piece(flow, moving);
    }
    step = moving.begun == moving.message.bytes ? flow.waiting.erase(step) : std::next(step);
  }
}

void StagedPath::begin_piece(Flow& flow, Moving& moving) {
  const GpuMessage& message = moving.message;
  std::byte* const place = flow.free.back();
  flow.free.pop_back();
  std::byte* const memory = message.memory + moving.begun;
  const std::size_t bytes = std::min(staging_.piece_bytes, message.bytes - moving.begun);
  moving.begun += bytes;
  const auto finish = [this, &flow, &moving, place, bytes] {
    finish_piece(flow, moving, place, bytes);
  };
  // The pieces of a message have its tag: they arrive in the order in which they are sent, and a
  // stream ends its copies in the order in which they were begun.
  if (message.is_send) {
    flow.queue.copy(place, memory, bytes, [this, &message, place, bytes, finish] {
      mailbox_.send(message.peer, message.tag, {place, bytes}, finish);
    });
  } else {
    mailbox_.receive(
        message.peer, message.tag, {place, bytes},
        [&flow, place, bytes, memory, finish] { flow.queue.copy(memory, place, bytes, finish); });
  }
}

void StagedPath::finish_piece(Flow& flow, Moving& moving, std::byte* place, std::size_t bytes) {
  flow.free.push_back(place);
  moving.over += bytes;
  if (moving.over < moving.message.bytes) return;
  const std::uint32_t step = moving.message.step;
  flow.moving.erase(step);
  over_(step);
}

}  // namespace espalier::cuda

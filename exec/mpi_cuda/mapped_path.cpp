// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/mapped_path.h"

#include <span>
#include <utility>

#include "exec/mpi/exchange.h"

namespace espalier::cuda {
namespace {

// What receivers tell senders has tags of its own: more than a window has steps, and all below the
// 32768 that every MPI has.
constexpr int kPlaceTags = 1 << 13;
static_assert(kPlaceTags > static_cast<int>(kMessageWindow));
static_assert(kExchangeTag + kPlaceTags < 1 << 15);

int place_tag(const GpuMessage& message) { return kExchangeTag + 1 + message.tag % kPlaceTags; }

}  // namespace

MappedPath::MappedPath(int gpu, Mailbox& mailbox, const SharedMemory& memory, StepOver over)
    : gpu_(gpu), mailbox_(mailbox), memory_(memory), over_(std::move(over)) {}

void MappedPath::begin(const GpuMessage& message) {
  Moving& moving = moving_[message.step];
  moving.message = message;
  if (message.is_send) {
    begin_send(moving);
  } else {
    begin_receive(moving);
  }
}

void MappedPath::begin_send(Moving& moving) {
  mailbox_.receive(moving.message.peer, place_tag(moving.message),
                   std::as_writable_bytes(std::span(&moving.place, 1)),
                   [this, &moving] { copy(moving); });
}

void MappedPath::copy(Moving& moving) {
  const GpuMessage& message = moving.message;
  GpuQueue& queue = queues_.try_emplace(message.peer, gpu_).first->second;
  queue.copy(memory_.at(message.peer, moving.place), message.memory, message.bytes,
             [this, &moving] {
               mailbox_.send(moving.message.peer, moving.message.tag, {&moving.written, 1},
                             [this, &moving] { finish(moving); });
             });
}

void MappedPath::begin_receive(Moving& moving) {
  const GpuMessage& message = moving.message;
  moving.place = memory_.find(message.memory);
  moving.left = 2;
  const auto then = [this, &moving] {
    if (--moving.left == 0) finish(moving);
  };
  mailbox_.receive(message.peer, message.tag, {&moving.written, 1}, then);
  mailbox_.send(message.peer, place_tag(message), std::as_bytes(std::span(&moving.place, 1)), then);
}

void MappedPath::finish(const Moving& moving) {
  const std::uint32_t step = moving.message.step;
  moving_.erase(step);
  over_(step);
}

void MappedPath::advance(std::uint32_t) {
  for (auto& [peer, queue] : queues_) queue.advance();
}

}  // namespace espalier::cuda

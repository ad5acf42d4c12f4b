// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include "exec/cuda/memory.h"
#include "exec/mpi_cuda/gpu_queue.h"
#include "exec/mpi_cuda/mailbox.h"
#include "exec/mpi_cuda/message_path.h"

namespace espalier::cuda {

/// How messages are cut; the same in all processes.
struct Staging {
  std::size_t piece_bytes = std::size_t{512} << 10;
  std::size_t pieces = 32;  ///< that there is room for in each direction; more than two

  std::size_t bytes() const { return 2 * pieces * piece_bytes; }
};

/// Messages through pinned memory of this computer, for a transport that can't read GPUs: in
/// pieces, so that one is on its way between processes while the next one leaves the GPU.
///
/// The last two places for pieces are kept for the oldest step, so that steps whose other ends have
/// not begun, which may have taken all others, never keep it waiting.
class StagedPath : public MessagePath {
 public:
  /// Allocates. Throws OutOfMemory. The mailbox must outlive it.
  StagedPath(int gpu, Mailbox& mailbox, StepOver over, const Staging& staging);

  void begin(const GpuMessage& message) override;
  void advance(std::uint32_t oldest) override;

 private:
  struct Moving {
    GpuMessage message;
    std::size_t begun = 0;  ///< bytes of the pieces that have begun
    std::size_t over = 0;
  };
  /// The messages of one direction.
  struct Flow {
    explicit Flow(int gpu) : queue(gpu) {}
    GpuQueue queue;
    std::vector<std::byte*> free;  ///< places for pieces
    std::map<std::uint32_t, Moving> moving;
    std::set<std::uint32_t> waiting;  ///< of which pieces have not begun
  };

  Flow& flow_of(const GpuMessage& message) { return message.is_send ? sends_ : receives_; }
  void begin_pieces(Flow& flow, std::uint32_t oldest);
  void begin_piece(Flow& flow, Moving& moving);
  void finish_piece(Flow& flow, Moving& moving, std::byte* place, std::size_t bytes);

  const Staging staging_;
  Mailbox& mailbox_;
  const StepOver over_;
  PinnedBytes memory_;
  Flow sends_;
  Flow receives_;
};

}  // namespace espalier::cuda

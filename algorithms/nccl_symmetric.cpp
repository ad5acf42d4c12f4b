// SPDX-License-Identifier: Apache-2.0
// What NCCL's kernels over symmetric memory do (NVIDIA/nccl src/device/symmetric/*.cuh). A block
// has the same part of the message at every rank. There are no FIFOs: ranks read from and write to
// each other's buffers, and synchronize in their first and last step, or by the flags of packets.
#include "algorithms/nccl_symmetric.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "algorithms/schedules.h"
#include "core/check.h"

namespace espalier {
namespace {

using Kernel = NcclSymmetricKernel;

/// Loads and stores of a block overlap: its part of an allreduce is handled in pieces of what its
/// threads move at once (16 bytes of each, four times), as far as programs do not become too long.
constexpr double kPieceBytes = 4 * 16 * kNcclSymmetricThreads;
constexpr std::int64_t kMostPieces = 16;
constexpr std::int64_t kManyOps = 400'000;
/// Cells are not told apart where there are more.
constexpr double kManyCells = 8192;

class SymmetricKernels {
 public:
  SymmetricKernels(const BuildRequest& request, double bytes, const NcclChoice& choice)
      : request_(request),
        n_(request.ranks),
        blocks_(choice.work.channels),
        pieces_(pieces_of(choice.kernel, bytes)),
        shares_(choice.kernel == Kernel::rsxld_agxst || choice.kernel == Kernel::rsxldmc_agxstmc
                    ? n_
                    : 1),
        is_allreduce_(request.collective == Collective::allreduce) {
    const double stretch = is_allreduce_ ? bytes : bytes / n_;
    const double cells = std::ceil(stretch / kNcclSymmetricCell);
    const bool has_cells = is_packets(choice.kernel) && cells >= blocks_ && cells <= kManyCells;
    units_ = has_cells ? static_cast<std::int64_t>(cells) : blocks_ * shares_ * pieces_;
    of_block_ = has_cells ? (units_ + blocks_ - 1) / blocks_ : shares_ * pieces_;
  }

  Program build(Kernel kernel) {
    Builder builder("nccl", request_.contract(is_allreduce_ ? units_ : n_ * units_));
    builder_ = &builder;
    for (int block = 0; block < blocks_; ++block) {
      if (block * of_block_ < units_) add(kernel, block);
    }
    return builder.finish();
  }

 private:
  std::int64_t pieces_of(Kernel kernel, double bytes) const {
    if (kernel != Kernel::rsxld_agxst) return 1;
    const std::int64_t ops = static_cast<std::int64_t>(n_) * n_ * blocks_;
    const std::int64_t most = std::clamp<std::int64_t>(kManyOps / ops, 1, kMostPieces);
    return std::clamp<std::int64_t>(std::llround(bytes / blocks_ / n_ / kPieceBytes), 1, most);
  }

  void add(Kernel kernel, int block) {
    switch (kernel) {
      case Kernel::agxll_r:
        return is_in_place() ? reduce_packets_in_place(block) : reduce(block);
      case Kernel::agxllmc_r:
        return reduce_multicast_packets(block);
      case Kernel::rsxld_agxst:
        return load_and_store(block);
      case Kernel::rsxldmc_agxstmc:
        return load_and_store_in_switch(block);
      case Kernel::ll:
        return request_.collective == Collective::reducescatter ? reduce(block)
                                                                : send_packets(block);
      case Kernel::llmc:
      case Kernel::stmc:
        return multicast(block);
      case Kernel::st:
        return store(block);
      case Kernel::ld:
        return reduce(block);
      case Kernel::ldmc:
        return reduce_in_switch(block);
    }
    CHECK(false);
  }

  bool is_in_place() const { return request_.in_place; }
  std::int64_t first(int block) const { return block * of_block_; }
  std::int64_t length(int block) const { return std::min(of_block_, units_ - first(block)); }
  /// Where a rank's own block of a gathered or scattered message begins.
  std::int64_t own(int rank) const { return is_allreduce_ ? 0 : rank * units_; }

  auto input_at(std::int64_t begin, std::int64_t length) const {
    return [this, begin, length](int rank) { return builder_->input(rank, begin, length); };
  }
  auto output_at(std::int64_t begin, std::int64_t length) const {
    return [this, begin, length](int rank) { return builder_->output(rank, begin, length); };
  }
  /// At every rank, that one first.
  template <class At>
  std::vector<Slice> from(int rank, const At& at) const {
    std::vector<Slice> slices;
    for (int i = 0; i < n_; ++i) slices.push_back(at(wrap(rank + i, n_)));
    return slices;
  }

  /// Reads or receives what the ranks have of its part, and adds it up.
  void reduce(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      builder_->combine(builder_->output(rank, first(block), length(block)),
                        from(rank, input_at(own(rank) + first(block), length(block))),
                        {.lane = block, .at = rank});
    }
  }

  /// Packets lie in buffers of their own until nobody needs the rank's input any more.
  void reduce_packets_in_place(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      builder_->combine(builder_->tmp(rank, first(block), length(block)),
                        from(rank, input_at(first(block), length(block))),
                        {.lane = block, .at = rank});
    }
    for (int rank = 0; rank < n_; ++rank) {
      builder_->copy(builder_->output(rank, first(block), length(block)),
                     builder_->tmp(rank, first(block), length(block)), {.lane = block});
    }
  }

  void reduce_multicast_packets(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      const auto slot = [&](int at) {
        return builder_->tmp(at, rank * units_ + first(block), length(block));
      };
      builder_->in_switch(from(rank, slot),
                          std::vector{builder_->input(rank, first(block), length(block))},
                          {.lane = block, .at = rank});
    }
    for (int rank = 0; rank < n_; ++rank) {
      std::vector<Slice> slots;
      for (int i = 0; i < n_; ++i) {
        slots.push_back(builder_->tmp(rank, i * units_ + first(block), length(block)));
      }
      builder_->combine(builder_->output(rank, first(block), length(block)), slots,
                        {.lane = block, .at = rank});
    }
  }

  /// Of a rank's share it reads and adds up, and stores to all; with half of its threads each.
  void load_and_store(int block) {
    for (std::int64_t piece = 0; piece < pieces_; ++piece) {
      for (int rank = 0; rank < n_; ++rank) {
        const std::int64_t begin = first(block) + rank * pieces_ + piece;
        builder_->combine(builder_->output(rank, begin, 1), from(rank, input_at(begin, 1)),
                          {.lane = block, .at = rank});
        for (int distance = 1; distance < n_; ++distance) {
          builder_->copy(builder_->output(wrap(rank + distance, n_), begin, 1),
                         builder_->output(rank, begin, 1), {.lane = blocks_ + block, .at = rank});
        }
      }
    }
  }

  void load_and_store_in_switch(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      const std::int64_t begin = first(block) + rank * pieces_;
      builder_->in_switch(from(rank, output_at(begin, pieces_)),
                          from(rank, input_at(begin, pieces_)), {.lane = block, .at = rank});
    }
  }

  void reduce_in_switch(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      builder_->in_switch(std::vector{builder_->output(rank, first(block), length(block))},
                          from(rank, input_at(own(rank) + first(block), length(block))),
                          {.lane = block, .at = rank});
    }
  }

  void multicast(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      builder_->in_switch(from(rank, output_at(own(rank) + first(block), length(block))),
                          std::vector{builder_->input(rank, first(block), length(block))},
                          {.lane = block, .at = rank});
    }
  }

  void keep(int rank, int block, int lane) {
    builder_->copy(builder_->output(rank, own(rank) + first(block), length(block)),
                   builder_->input(rank, first(block), length(block)), {.lane = lane});
  }

  void send(int rank, int distance, int block, int lane) {
    builder_->copy(
        builder_->output(wrap(rank + distance, n_), own(rank) + first(block), length(block)),
        builder_->input(rank, first(block), length(block)), {.lane = lane, .at = rank});
  }

  void store(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      for (int distance = 1; distance < n_; ++distance) send(rank, distance, block, block);
      keep(rank, block, block);
    }
  }

  /// Packets go to all peers before a block waits for theirs: a lane for each.
  void send_packets(int block) {
    for (int rank = 0; rank < n_; ++rank) {
      for (int distance = 1; distance < n_; ++distance) {
        send(rank, distance, block, block * (n_ - 1) + distance - 1);
      }
      keep(rank, block, block * (n_ - 1));
    }
  }

  const BuildRequest& request_;
  const int n_;
  const int blocks_;
  const std::int64_t pieces_;
  const std::int64_t shares_;  ///< of a block's part, one for each rank
  const bool is_allreduce_;
  std::int64_t units_ = 1;     ///< of an allreduce, or of a rank's block of others
  std::int64_t of_block_ = 1;  ///< the last one may have less
  Builder* builder_ = nullptr;
};

}  // namespace

int nccl_symmetric_lanes(const BuildRequest& request, const NcclChoice& choice) {
  const bool gathers = request.collective == Collective::allgather;
  if (choice.kernel == Kernel::rsxld_agxst) return 2;
  return choice.kernel == Kernel::ll && gathers ? request.ranks - 1 : 1;
}

Program nccl_symmetric_program(const BuildRequest& request, double bytes,
                               const NcclChoice& choice) {
  return SymmetricKernels(request, bytes, choice).build(choice.kernel);
}

}  // namespace espalier

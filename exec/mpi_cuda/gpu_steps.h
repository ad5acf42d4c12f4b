// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "exec/cuda/kernels.h"
#include "exec/cuda/memory.h"
#include "exec/lanes/message_plan.h"
#include "exec/mpi/step_carrier.h"
#include "exec/mpi_cuda/gpu_buffers.h"
#include "exec/mpi_cuda/mailbox.h"
#include "exec/mpi_cuda/message_path.h"
#include "exec/mpi_cuda/nccl_link.h"
#include "exec/mpi_cuda/shared_memory.h"
#include "exec/mpi_cuda/staged_path.h"

namespace espalier::cuda {

/// Which way the messages of a pair of processes go, in one direction: the sender writes into the
/// receiver's memory, which it maps; the transport reads and writes GPUs; through pinned memory; or
/// NCCL's, which is that of all pairs or of none.
enum class Route : std::uint8_t { mapped, direct, staged, nccl };

/// By the other process, to it and from it.
struct Routes {
  std::vector<Route> to;
  std::vector<Route> from;
};

/// Steps in the memory of a GPU: messages by whichever route, combines by its kernels. The
/// arguments must outlive it.
class GpuSteps : public StepCarrier {
 public:
  /// Allocates tables. Throws OutOfMemory.
  GpuSteps(const MessagePlan& plan, const MessageKind& kind, const GpuBuffers& buffers,
           Transport& transport);

  /// What routes go over.
  struct Means {
    const SharedMemory& shared;
    std::shared_ptr<NcclLink> nccl = {};  ///< where it is a route
    Staging staging = {};
  };
  /// Before the first step. Allocates what a route needs. Throws OutOfMemory.
  void use(const Routes& routes, const Means& means);

  bool begin(std::uint32_t step) override;
  void advance(std::uint32_t oldest, std::vector<std::uint32_t>& over) override;

 private:
  SourceList sources_of(const MessageStep& step) const;
  void combine(std::uint32_t number);
  std::unique_ptr<MessagePath> make_path(Route route, const Means& means);
  std::vector<std::uint32_t> messages() const;

  const MessagePlan& plan_;
  const MessageKind& kind_;
  const GpuBuffers& buffers_;
  const Gpu gpu_;
  Mailbox mailbox_;
  GpuQueue combines_;
  std::vector<const std::byte*> sources_;  ///< as MessagePlan::sources
  DeviceBytes source_table_;               ///< the same for kernels, where one has many of them
  Routes routes_;
  std::vector<std::unique_ptr<MessagePath>> paths_;  ///< by Route; null where it is not used
  std::vector<std::uint32_t> over_;
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "exec/cuda/gpus.h"
#include "exec/cuda/memory.h"
#include "exec/lanes/message_plan.h"

namespace espalier::cuda {

/// The GPU of a process for its places of a program but host memories; those of others have none.
/// Throws what open_gpus throws.
Gpus open_gpu_of_process(const Program& program, int process, int gpu);

/// What a process has in the memory of its GPU: the buffers of its places, and what its messages
/// need beside them. `kind`, `gpus` and `host_nodes` must outlive it.
class GpuBuffers {
 public:
  /// Allocates. Throws OutOfMemory. `lowered` has the buffers of this process's places only.
  GpuBuffers(const MessageKind& kind, const LanePrograms& lowered, const MessagePlan& plan,
             const Gpus& gpus, const std::vector<HostNode>& host_nodes, Access access);

  const Gpu& gpu() const { return gpus_.all.front(); }
  PlaceMemory& places() { return places_; }
  const PlaceMemory& places() const { return places_; }
  /// \pre it is in a buffer of this process or in kMessageScratch
  std::byte* at(const BufferOffset& position) const;
  /// Where each allocation on the GPU begins.
  std::vector<std::byte*> blocks() const;

 private:
  DeviceBytes allocate_scratch(std::int64_t bytes, Access access) const;

  const MessageKind& kind_;
  const Gpus& gpus_;
  PlaceMemory places_;
  const DeviceBytes scratch_;
};

}  // namespace espalier::cuda

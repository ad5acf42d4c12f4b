// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/shared_memory.h"

#include <iterator>

#include "exec/cuda/calls.h"

namespace espalier::cuda {

SharedMemory::SharedMemory(int gpu, const std::vector<std::byte*>& blocks) : gpu_(gpu) {
  for (const std::byte* block : blocks) {
    blocks_.emplace(block, static_cast<std::uint32_t>(blocks_.size()));
  }
}

SharedMemory::~SharedMemory() { unmap(); }

MemoryOffer SharedMemory::offer() const {
  MemoryOffer offer;
  offer.handles.resize(blocks_.size());
  use_gpu(gpu_);
  for (const auto& [begin, number] : blocks_) {
    const cudaError_t status =
        cudaIpcGetMemHandle(&offer.handles[number], const_cast<std::byte*>(begin));
    if (status == cudaSuccess) continue;
    cudaGetLastError();
    return {{}, failure_text(status, "cudaIpcGetMemHandle", gpu_)};
  }
  return offer;
}

std::optional<std::string> SharedMemory::map(int process, const MemoryOffer& offer) {
  if (!offer.problem.empty()) return offer.problem;
  use_gpu(gpu_);
  std::vector<std::byte*>& mapped = mapped_[process];
  for (const cudaIpcMemHandle_t& handle : offer.handles) {
    void* begin = nullptr;
    const cudaError_t status = cudaIpcOpenMemHandle(&begin, handle, cudaIpcMemLazyEnablePeerAccess);
    if (status == cudaSuccess) {
      mapped.push_back(static_cast<std::byte*>(begin));
      continue;
    }
    cudaGetLastError();
    for (std::byte* block : mapped) cudaIpcCloseMemHandle(block);
    mapped_.erase(process);
    return failure_text(status, "cudaIpcOpenMemHandle", gpu_);
  }
  return std::nullopt;
}

void SharedMemory::unmap() {
  if (devices_abandoned()) return;
  for (const auto& [process, blocks] : mapped_) {
    for (std::byte* block : blocks) cudaIpcCloseMemHandle(block);
  }
  mapped_.clear();
}

SharedPlace SharedMemory::find(const std::byte* address) const {
  const auto& [begin, number] = *std::prev(blocks_.upper_bound(address));
  return {number, static_cast<std::uint64_t>(address - begin)};
}

std::byte* SharedMemory::at(int process, const SharedPlace& place) const {
  return mapped_.at(process)[place.block] + place.offset;
}

}  // namespace espalier::cuda

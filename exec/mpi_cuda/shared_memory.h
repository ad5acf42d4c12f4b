// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace espalier::cuda {

/// What a process lets others on its computer map: its blocks of GPU memory, by number.
struct MemoryOffer {
  std::vector<cudaIpcMemHandle_t> handles;
  std::string problem;  ///< why there are none, where CUDA refuses
};

/// A place in what a process offers.
struct SharedPlace {
  std::uint32_t block = 0;
  std::uint64_t offset = 0;
};

/// The GPU memory of this process that others map, and theirs that this one maps (CUDA IPC).
class SharedMemory {
 public:
  /// `blocks`: where allocations begin, in multiples of kSharedBlock each.
  SharedMemory(int gpu, const std::vector<std::byte*>& blocks);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  MemoryOffer offer() const;
  /// Maps what another process offers, all of it or nothing. Returns why not, where CUDA refuses.
  std::optional<std::string> map(int process, const MemoryOffer& offer);
  /// Gives up what is mapped. Processes free what they offered after all have come to that.
  void unmap();

  /// \pre `address` is in one of this process's blocks
  SharedPlace find(const std::byte* address) const;
  /// Where this process has mapped a place of another. \pre it is mapped
  std::byte* at(int process, const SharedPlace& place) const;

 private:
  const int gpu_;
  std::map<const std::byte*, std::uint32_t> blocks_;  ///< by where they begin
  std::map<int, std::vector<std::byte*>> mapped_;     ///< by process
};

}  // namespace espalier::cuda

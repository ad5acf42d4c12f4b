// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/host/numa.h"
#include "exec/lanes/lowering.h"

namespace espalier {

/// Bytes that the allocation of a buffer takes, guards included, where so many places have buffers
/// in this process.
double allocated_bytes(double buffer_bytes, std::size_t places = 1);

/// Of the sizes of buffers by place, those places that have any.
template <class Size>
std::size_t places_with_buffers(const std::vector<std::array<Size, 3>>& sizes_of_places) {
  return static_cast<std::size_t>(std::ranges::count_if(
      sizes_of_places, [](const auto& sizes) { return *std::ranges::max_element(sizes) > 0; }));
}

/// The buffers of a run, each an allocation of its own, aligned to cache lines (large ones to huge
/// pages) and between guards that tell whether somebody wrote outside of it. Where there are
/// several NUMA nodes, those of a place are of its node: asked to be, and first touched by a thread
/// there.
class HostMemory {
 public:
  /// Allocates; the pages are not touched yet. Throws OutOfMemory.
  explicit HostMemory(const LanePrograms& lowered, NumaPlan numa = {});

  /// Whether every buffer's pages are sure to be of the node of its place; where the system refused
  /// that, they are of the node where they were first touched.
  bool is_placed() const { return is_placed_; }

  std::span<std::byte> buffer(PlaceId place, Buffer buffer) const;
  std::byte* at(const BufferOffset& position) const {
    return buffer(position.place, position.buffer).data() + position.bytes;
  }
  /// Sets every byte of the buffer, and its guards anew, on the node of the place.
  void clear(PlaceId place, Buffer buffer);
  /// Guard bytes of the buffer that have changed.
  std::int64_t damaged_guard_bytes(PlaceId place, Buffer buffer) const;

  struct Free {
    Free() : mapping(nullptr), bytes(0) {}
    Free(void* mapped, std::size_t mapped_bytes) : mapping(mapped), bytes(mapped_bytes) {}
    void* mapping;  // what was mapped for it; nothing: it was allocated
    std::size_t bytes;
    void operator()(std::byte* memory) const;
  };
  using Bytes = std::unique_ptr<std::byte, Free>;
  /// Zeros beside the buffers, as well placed in pages as these; nothing for no bytes. Throws
  /// OutOfMemory.
  static Bytes scratch(std::size_t bytes);

 private:
  struct Allocation {
    Bytes memory;          // none for an empty buffer
    std::size_t size = 0;  // of the buffer alone
  };
  static Bytes map(std::size_t bytes, std::size_t alignment);
  static Bytes take(std::size_t bytes, std::size_t alignment, bool has_own_pages);
  Bytes allocate(std::size_t place, std::size_t size);
  const NumaNode* node_of(std::size_t place) const;
  const Allocation& allocation(PlaceId place, Buffer buffer) const {
    return places_[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
  }
  const NumaPlan numa_;
  const std::size_t sharing_;  // places that have buffers here
  bool is_placed_ = true;
  std::vector<std::array<Allocation, 3>> places_;
};

}  // namespace espalier

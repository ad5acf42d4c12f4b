// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "exec/lanes/lowering.h"

namespace espalier {

/// Bytes that the buffers of each place take when a unit has `unit_bytes` on average. Real numbers:
/// they may be more than any computer has.
std::vector<double> place_memory_bytes(const Program& program, double unit_bytes);
/// Of all places together.
double host_memory_bytes(const Program& program, double unit_bytes);

/// Bytes that this process may use at most: the computer's memory, or its control group's share.
double host_memory_limit();
/// Bytes that are free now, or would be if caches gave way.
double host_memory_available();

/// The buffers of a run, each an allocation of its own, aligned to cache lines (large ones to huge
/// pages) and between guards that tell whether somebody wrote outside of it.
class HostMemory {
 public:
  /// Allocates; the pages are not touched yet. Throws Error{unsupported} when there is no memory.
  explicit HostMemory(const LanePrograms& lowered);

  std::span<std::byte> buffer(PlaceId place, Buffer buffer) const;
  std::byte* at(const BufferOffset& position) const {
    return buffer(position.place, position.buffer).data() + position.bytes;
  }
  /// Sets every byte of the buffer, and its guards anew.
  void clear(PlaceId place, Buffer buffer);
  /// Guard bytes of the buffer that have changed.
  std::int64_t damaged_guard_bytes(PlaceId place, Buffer buffer) const;

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Allocation {
    std::unique_ptr<std::byte, Free> memory;  // none for an empty buffer
    std::size_t size = 0;                     // of the buffer alone
  };
  const Allocation& allocation(PlaceId place, Buffer buffer) const {
    return places_[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
  }
  std::vector<std::array<Allocation, 3>> places_;
};

}  // namespace espalier

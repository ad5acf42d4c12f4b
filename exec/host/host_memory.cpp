// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/error.h"

namespace espalier {
namespace {

constexpr std::size_t kGuard = 64;   // bytes on either side; also the alignment of a buffer
constexpr std::size_t kPage = 4096;  // or a part of one; mappings begin at whole ones
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::byte kGuardByte{0x5C};
// As in `interpret`: what was never written shows as wrong, not as a zero that may be right.
constexpr std::byte kUnwritten{0xA5};
constexpr std::array kBuffers{Buffer::in, Buffer::out, Buffer::tmp};

std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

// Fewer page faults and misses of the address cache when large buffers lie on huge pages; and MPI,
// which has the system copy from one process to another, page by page, takes half as long.
// Buffers of 128 KiB gain a quarter over MPI. Where a process has many places, such would take
// sixteen times the memory that they need, and so have huge pages only as from one of these on.
constexpr std::size_t kLarge = kHugePage / 16;
constexpr std::size_t kManyPlaces = 16;
std::size_t alignment_of(std::size_t size, std::size_t places) {
  return size >= (places > kManyPlaces ? kHugePage : kLarge) ? kHugePage : kGuard;
}

std::size_t allocated(std::size_t size, std::size_t places) {
  return round_up(size + 2 * kGuard, alignment_of(size, places));
}

}  // namespace

double allocated_bytes(double buffer_bytes, std::size_t places) {
  constexpr double kExact = 0x1p62;  // larger ones are more than any computer has
  if (buffer_bytes >= kExact) return buffer_bytes;
  return static_cast<double>(allocated(static_cast<std::size_t>(buffer_bytes), places));
}

HostMemory::HostMemory(const LanePrograms& lowered, NumaPlan numa)
    : numa_(std::move(numa)),
      sharing_(places_with_buffers(lowered.buffer_bytes)),
      places_(lowered.buffer_bytes.size()) {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
      const auto size = static_cast<std::size_t>(lowered.buffer_bytes[place][buffer]);
      if (size == 0) continue;
      places_[place][buffer].memory = allocate(place, size);
      places_[place][buffer].size = size;
    }
  }
}

void HostMemory::Free::operator()(std::byte* memory) const {
  if (mapping != nullptr) {
    munmap(mapping, bytes);
  } else {
    std::free(memory);
  }
}

/// The node to place on; nothing where there are not several.
const NumaNode* HostMemory::node_of(std::size_t place) const {
  if (numa_.nodes.empty()) return nullptr;
  return &numa_.nodes[static_cast<std::size_t>(numa_.node_of_place[place])];
}

/// Fresh pages. Memory that the heap has used before may lie on the wrong node or on small pages,
/// so that a buffer's speed would depend on earlier allocations. Nothing when there are none.
HostMemory::Bytes HostMemory::map(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = bytes + alignment;
  void* const mapping =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return {};
  void* begin = mapping;
  std::size_t space = whole;
  std::align(alignment, bytes, begin, space);
  return {static_cast<std::byte*>(begin), Free{mapping, whole}};
}

/// Large buffers have pages of their own, huge ones if the system has any; others only if
/// `has_own_pages`. Throws OutOfMemory where there is no memory.
HostMemory::Bytes HostMemory::take(std::size_t bytes, std::size_t alignment, bool has_own_pages) {
  Bytes memory = has_own_pages || alignment == kHugePage
                     ? map(bytes, std::max(alignment, kPage))
                     : Bytes(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)), {});
  if (!memory) throw OutOfMemory("this computer has no memory left for the buffers");
  // Only a hint: without huge pages everything works the same.
  if (alignment == kHugePage) madvise(memory.get(), bytes, MADV_HUGEPAGE);
  return memory;
}

HostMemory::Bytes HostMemory::scratch(std::size_t bytes) {
  if (bytes == 0) return {};
  const std::size_t alignment = alignment_of(bytes, 1);
  const std::size_t whole = round_up(bytes, alignment);
  Bytes memory = take(whole, alignment, false);
  std::fill_n(memory.get(), bytes, std::byte{0});
  return memory;
}

HostMemory::Bytes HostMemory::allocate(std::size_t place, std::size_t size) {
  const std::size_t alignment = alignment_of(size, sharing_);
  const std::size_t bytes = allocated(size, sharing_);
  const NumaNode* const node = node_of(place);
  // Small buffers are not worth pages of their own.
  const bool is_own = node != nullptr && size >= kPage;
  Bytes memory = take(bytes, alignment, is_own);
  // Only a hint as well.
  if (is_own && !prefer_node(memory.get(), bytes, node->number)) is_placed_ = false;
  return memory;
}

std::span<std::byte> HostMemory::buffer(PlaceId place, Buffer buffer) const {
  const Allocation& found = allocation(place, buffer);
  if (found.size == 0) return {};
  return {found.memory.get() + kGuard, found.size};
}

void HostMemory::clear(PlaceId place, Buffer buffer) {
  const Allocation& found = allocation(place, buffer);
  if (found.size == 0) return;
  const NumaNode* const node = node_of(static_cast<std::size_t>(place));
  const PinnedThread here(node != nullptr ? node->processors : std::vector<int>{});
  std::byte* const begin = found.memory.get();
  std::fill_n(begin, kGuard, kGuardByte);
  std::fill_n(begin + kGuard, found.size, kUnwritten);
  std::fill_n(begin + kGuard + found.size, kGuard, kGuardByte);
}

std::int64_t HostMemory::damaged_guard_bytes(PlaceId place, Buffer buffer) const {
  const Allocation& found = allocation(place, buffer);
  if (found.size == 0) return 0;
  const auto damaged = [](const std::byte* guard) {
    return std::count_if(guard, guard + kGuard, [](std::byte b) { return b != kGuardByte; });
  };
  return damaged(found.memory.get()) + damaged(found.memory.get() + kGuard + found.size);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>

#include "core/error.h"

namespace espalier {
namespace {

constexpr std::size_t kGuard = 64;  // bytes on either side; also the alignment of a buffer
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::byte kGuardByte{0x5C};
// As in `interpret`: what was never written shows as wrong, not as a zero that may be right.
constexpr std::byte kUnwritten{0xA5};
constexpr std::array kBuffers{Buffer::in, Buffer::out, Buffer::tmp};

std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

// Fewer page faults and misses of the address cache when large buffers lie on huge pages.
std::size_t alignment_of(std::size_t size) { return size >= 2 * kHugePage ? kHugePage : kGuard; }

std::size_t allocated(std::size_t size) { return round_up(size + 2 * kGuard, alignment_of(size)); }

}  // namespace

std::vector<double> place_memory_bytes(const Program& program, double unit_bytes) {
  const std::vector<std::int64_t> scratch = tmp_units(program);
  std::vector<double> bytes(static_cast<std::size_t>(program.places()), 0);
  for (PlaceId place = 0; place < program.places(); ++place) {
    const auto add = [&](std::int64_t units) {
      if (units == 0) return;
      bytes[static_cast<std::size_t>(place)] +=
          static_cast<double>(units) * unit_bytes + 2 * kGuard;
    };
    add(scratch[static_cast<std::size_t>(place)]);
    if (place >= program.ranks()) continue;
    add(buffer_units(program.contract, place, Buffer::in));
    add(buffer_units(program.contract, place, Buffer::out));
  }
  return bytes;
}

double host_memory_bytes(const Program& program, double unit_bytes) {
  const std::vector<double> places = place_memory_bytes(program, unit_bytes);
  return std::accumulate(places.begin(), places.end(), 0.0);
}

double host_memory_limit() {
  struct sysinfo info = {};
  double limit = 0;
  if (sysinfo(&info) == 0) limit = static_cast<double>(info.totalram) * info.mem_unit;
  std::ifstream group("/sys/fs/cgroup/memory.max");
  if (double maximum = 0; group >> maximum) limit = std::min(limit, maximum);  // not "max"
  return limit;
}

double host_memory_available() {
  double available = host_memory_limit();
  std::ifstream memory("/proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    if (double kib = 0; std::sscanf(line.c_str(), "MemAvailable: %lf", &kib) == 1) {
      available = std::min(available, kib * 1024);
    }
  }
  std::ifstream group("/sys/fs/cgroup/memory.max");
  std::ifstream used("/sys/fs/cgroup/memory.current");
  double maximum = 0;
  if (double now = 0; group >> maximum && used >> now) {
    available = std::min(available, std::max(0.0, maximum - now));
  }
  return available;
}

HostMemory::HostMemory(const LanePrograms& lowered) : places_(lowered.buffer_bytes.size()) {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
      const auto size = static_cast<std::size_t>(lowered.buffer_bytes[place][buffer]);
      if (size == 0) continue;
      void* memory = std::aligned_alloc(alignment_of(size), allocated(size));
      if (memory == nullptr) {
        throw Error(ErrorKind::unsupported, "there is not enough memory for the buffers");
      }
      // Only a hint: without huge pages everything works the same.
      if (alignment_of(size) == kHugePage) madvise(memory, allocated(size), MADV_HUGEPAGE);
      places_[place][buffer].memory.reset(static_cast<std::byte*>(memory));
      places_[place][buffer].size = size;
    }
  }
}

std::span<std::byte> HostMemory::buffer(PlaceId place, Buffer buffer) const {
  const Allocation& found = allocation(place, buffer);
  if (found.size == 0) return {};
  return {found.memory.get() + kGuard, found.size};
}

void HostMemory::clear(PlaceId place, Buffer buffer) {
  const Allocation& found = allocation(place, buffer);
  if (found.size == 0) return;
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

// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "exec/cuda/kernels.h"
#include "exec/room.h"
#include "ir/pattern.h"
#include "ir/print.h"

namespace espalier::cuda {
namespace {

constexpr std::int64_t kGuard = 256;  // bytes on either side; also the alignment of a buffer
constexpr std::byte kGuardByte{0x5C};
// As in `interpret`: what was never written shows as wrong, not as a zero that may be right.
constexpr std::byte kUnwritten{0xA5};
constexpr int kBlocksPerProcessor = 8;
constexpr std::array kBuffers{Buffer::in, Buffer::out, Buffer::tmp};

int as_int(std::byte value) { return std::to_integer<int>(value); }

}  // namespace

DeviceBytes allocate(std::size_t bytes, int gpu, const std::string& what) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, bytes), "cudaMalloc", gpu,
          fmt::format("for {} of {}", format_memory(static_cast<double>(bytes)), what));
  return DeviceBytes(memory);
}

double usable_bytes(int gpu) {
  // The rest is for contexts, graphs and what CUDA rounds up.
  constexpr double kShare = 0.95;
  std::size_t free = 0;
  std::size_t total = 0;
  use_gpu(gpu);
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", gpu);
  return static_cast<double>(free) * kShare;
}

double with_access(Access access, double bytes) {
  constexpr auto kBlock = static_cast<double>(kSharedBlock);
  return access == Access::own ? bytes : std::ceil(bytes / kBlock) * kBlock;
}

double PlaceMemory::allocated_bytes(double buffer_bytes) { return buffer_bytes + 2 * kGuard; }

std::vector<double> PlaceMemory::table_bytes(const MessageKind& kind, const Gpus& gpus) {
  const Contract& contract = kind.program.contract;
  std::set<std::pair<int, int>> tables;  // device and origin
  for (int rank = 0; rank < kind.program.ranks(); ++rank) {
    const int device = gpus.set.device_of_place[static_cast<std::size_t>(rank)];
    if (device == DeviceSet::kHost) continue;  // it is in another process
    tables.emplace(device, rank);
    for (const ResultRun& run : result_runs(contract, kind.layout, rank)) {
      tables.emplace(device, run.origin);
    }
  }
  const auto counters = static_cast<double>(gpus.set.device_of_place.size() * sizeof(Counts));
  std::vector<double> bytes(gpus.all.size(), counters);
  for (const auto& [device, origin] : tables) {
    bytes[static_cast<std::size_t>(device)] +=
        static_cast<double>(kPatternPeriod) * static_cast<double>(size_of(kind.type));
  }
  return bytes;
}

PlaceMemory::PlaceMemory(const MessageKind& kind, const LanePrograms& lowered, const Gpus& gpus,
                         const std::vector<HostNode>& host_nodes, Access access)
    : kind_(kind),
      gpus_(gpus),
      host_nodes_(host_nodes),
      access_(access),
      places_(lowered.buffer_bytes.size()) {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
      places_[place][buffer] = make_allocation(static_cast<PlaceId>(place), kBuffers[buffer],
                                               lowered.buffer_bytes[place][buffer]);
    }
  }
  const std::size_t counters = places_.size() * sizeof(Counts);
  for (const Gpu& gpu : gpus_.all) {
    use_gpu(gpu.number);
    streams_.push_back(make_stream(gpu.number));
    counters_.push_back(allocate(counters, gpu.number, "counters"));
  }
}

const HostNode& PlaceMemory::node_of(PlaceId place) const {
  return host_nodes_[static_cast<std::size_t>(place_number(kind_.program, place).number)];
}

/// CUDA takes and pins the pages within the call, and the system takes them from the node of the
/// thread that calls.
PinnedBytes PlaceMemory::allocate_pinned(std::size_t bytes, PlaceId place,
                                         const std::string& what) {
  const PinnedThread thread(node_of(place).node.processors);
  if (!thread.is_as_wanted()) kept_away_.insert(place);
  void* memory = nullptr;
  require(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc", gpus_.all.front().number,
          fmt::format("for {} of pinned memory of this computer for {}",
                      format_memory(static_cast<double>(bytes)), what));
  return PinnedBytes(memory);
}

std::vector<std::string> PlaceMemory::misplaced_hosts() const {
  std::vector<std::string> lines;
  for (PlaceId place = 0; place < kind_.program.places(); ++place) {
    if (place_number(kind_.program, place).kind != PlaceKind::host) continue;
    const HostNode& host = node_of(place);
    const bool is_kept_away = kept_away_.contains(place);
    if (!host.is_missing() && !is_kept_away) continue;
    lines.push_back(fmt::format(
        "{} stands for the memory of {}, NUMA node {}, {}: it is wherever the system puts it",
        place_name(kind_.program, place), host.cpu, host.node.number,
        is_kept_away ? "to which the system does not let this process"
                     : "which this computer does not have or this process may not use"));
  }
  return lines;
}

PlaceMemory::Allocation PlaceMemory::make_allocation(PlaceId place, Buffer buffer,
                                                     std::int64_t size) {
  Allocation made;
  if (size == 0) return made;
  made.size = size;
  const auto bytes = static_cast<std::size_t>(size + 2 * kGuard);
  const std::string what = place_name(kind_.program, place) + "." + std::string(to_string(buffer));
  if (device_of(place) != DeviceSet::kHost) {
    const int gpu = gpu_of(place).number;
    use_gpu(gpu);
    const double whole = with_access(access_, static_cast<double>(bytes));
    made.on_gpu = allocate(static_cast<std::size_t>(whole), gpu, what);
    made.begin = static_cast<std::byte*>(made.on_gpu.get()) + kGuard;
  } else {
    made.pinned = allocate_pinned(bytes, place, what);
    made.begin = static_cast<std::byte*>(made.pinned.get()) + kGuard;
  }
  return made;
}

std::byte* PlaceMemory::at(const BufferOffset& position) const {
  return allocation(position.place, position.buffer).begin + position.bytes;
}

std::byte* PlaceMemory::block(PlaceId place, Buffer buffer) const {
  const Allocation& made = allocation(place, buffer);
  return made.size == 0 ? nullptr : made.begin - kGuard;
}

void PlaceMemory::synchronize() {
  for (std::size_t device = 0; device < streams_.size(); ++device) {
    require(cudaStreamSynchronize(streams_[device].get()), "cudaStreamSynchronize",
            gpus_.all[device].number, "while buffers were filled or compared");
  }
}

const std::byte* PlaceMemory::table(int device, int origin) {
  DeviceBytes& known = tables_[{device, origin}];
  if (!known) {
    const int gpu = gpus_.all[static_cast<std::size_t>(device)].number;
    const auto bytes = pattern_table(kind_.type, kind_.op, kind_.program.ranks(), origin);
    use_gpu(gpu);
    known = allocate(bytes.size(), gpu, "tables");
    // Returns when the table is there, whatever stream then reads it.
    require(cudaMemcpy(known.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
            "cudaMemcpy", gpu);
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize", gpu);
  }
  return static_cast<const std::byte*>(known.get());
}

void PlaceMemory::clear(PlaceId place) {
  for (const Allocation& cleared : places_[static_cast<std::size_t>(place)]) {
    if (cleared.size == 0) continue;
    std::byte* const begin = cleared.begin - kGuard;
    const auto whole = static_cast<std::size_t>(cleared.size + 2 * kGuard);
    const auto size = static_cast<std::size_t>(cleared.size);
    if (cleared.pinned) {
      std::memset(begin, as_int(kGuardByte), whole);
      std::memset(cleared.begin, as_int(kUnwritten), size);
      continue;
    }
    const Gpu& gpu = gpu_of(place);
    const cudaStream_t stream = streams_[static_cast<std::size_t>(device_of(place))].get();
    use_gpu(gpu.number);
    require(cudaMemsetAsync(begin, as_int(kGuardByte), whole, stream), "cudaMemset", gpu.number);
    require(cudaMemsetAsync(cleared.begin, as_int(kUnwritten), size, stream), "cudaMemset",
            gpu.number);
  }
}

void PlaceMemory::fill_input_of(int rank) {
  if (device_of(rank) == DeviceSet::kHost) return;  // it is in another process
  const Region region = input_region(kind_.program.contract, rank);
  const std::int64_t elements = kind_.layout.count(region.begin, region.units);
  if (elements == 0) return;
  const std::size_t size = size_of(kind_.type);
  const Gpu& gpu = gpu_of(rank);
  const std::byte* const entries = table(device_of(rank), rank);
  const auto begin = kind_.layout.offset(region.begin) * static_cast<std::int64_t>(size);
  use_gpu(gpu.number);
  require(launch_fill(size, at({rank, region.buffer, begin}), 0, entries,
                      {elements, kBlocksPerProcessor * gpu.processors},
                      streams_[static_cast<std::size_t>(device_of(rank))].get()),
          "filling inputs", gpu.number);
}

void PlaceMemory::fill() {
  for (PlaceId place = 0; place < kind_.program.places(); ++place) clear(place);
  fill_inputs();
}

void PlaceMemory::fill_inputs() {
  for (int rank = 0; rank < kind_.program.ranks(); ++rank) fill_input_of(rank);
  synchronize();
}

/// Counts into `counters`, one Counts in memory of the rank's device.
void PlaceMemory::start_check(int rank, unsigned long long* counters) {
  const Contract& contract = kind_.program.contract;
  const std::size_t size = size_of(kind_.type);
  const int device = device_of(rank);
  const Gpu& gpu = gpu_of(rank);
  const cudaStream_t stream = streams_[static_cast<std::size_t>(device)].get();
  const int max_blocks = kBlocksPerProcessor * gpu.processors;
  const auto count_different = [&](const Region& region, const ResultRun& run,
                                   unsigned long long* counter) {
    if (run.count == 0) return;
    const std::byte* const entries = table(device, run.origin);
    const std::int64_t first = kind_.layout.offset(region.begin) + run.first;
    const BufferOffset position{rank, region.buffer, first * static_cast<std::int64_t>(size)};
    require(launch_count_different(size, at(position), run.element, entries, counter,
                                   {run.count, max_blocks}, stream),
            "checking results", gpu.number);
  };
  use_gpu(gpu.number);
  const Region result = output_region(contract, rank);
  for (const ResultRun& run : result_runs(contract, kind_.layout, rank)) {
    count_different(result, run, counters);
  }
  if (!contract.in_place) {
    const Region input = input_region(contract, rank);
    count_different(input, {0, kind_.layout.count(input.begin, input.units), rank, 0},
                    counters + 1);
  }
}

/// The same for the guards of a place on a GPU.
void PlaceMemory::start_guard_check(PlaceId place, unsigned long long* counters) {
  const Gpu& gpu = gpu_of(place);
  use_gpu(gpu.number);
  for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
    const Allocation& checked = allocation(place, kBuffers[buffer]);
    if (checked.size == 0) continue;
    for (const std::byte* guard : {checked.begin - kGuard, checked.begin + checked.size}) {
      require(launch_count_other_bytes(guard, kGuardByte, counters + 2 + buffer, {kGuard, 1},
                                       streams_[static_cast<std::size_t>(device_of(place))].get()),
              "checking guards", gpu.number);
    }
  }
}

PlaceMemory::Counts PlaceMemory::host_guard_counts(PlaceId place) const {
  Counts counts{};
  for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
    const Allocation& checked = allocation(place, kBuffers[buffer]);
    if (checked.size == 0) continue;
    for (const std::byte* guard : {checked.begin - kGuard, checked.begin + checked.size}) {
      counts[2 + buffer] += static_cast<unsigned long long>(
          std::count_if(guard, guard + kGuard, [](std::byte b) { return b != kGuardByte; }));
    }
  }
  return counts;
}

std::vector<PlaceMemory::Counts> PlaceMemory::count_all(Checked what) {
  for (std::size_t device = 0; device < streams_.size(); ++device) {
    use_gpu(gpus_.all[device].number);
    require(cudaMemsetAsync(counters_[device].get(), 0, places_.size() * sizeof(Counts),
                            streams_[device].get()),
            "cudaMemset", gpus_.all[device].number);
  }
  const auto counters_of = [&](PlaceId place) {
    const auto device = static_cast<std::size_t>(device_of(place));
    return static_cast<unsigned long long*>(counters_[device].get()) +
           static_cast<std::size_t>(place) * kCounters;
  };
  for (PlaceId place = 0; place < kind_.program.places(); ++place) {
    if (device_of(place) == DeviceSet::kHost) continue;
    const bool has_results = place < kind_.program.ranks() && what == Checked::everything;
    if (has_results) start_check(place, counters_of(place));
    start_guard_check(place, counters_of(place));
  }
  synchronize();
  std::vector<Counts> counts;
  for (PlaceId place = 0; place < kind_.program.places(); ++place) {
    if (device_of(place) == DeviceSet::kHost) {
      counts.push_back(host_guard_counts(place));
      continue;
    }
    require(cudaMemcpy(counts.emplace_back().data(), counters_of(place), sizeof(Counts),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy", gpu_of(place).number);
  }
  return counts;
}

Damage PlaceMemory::check(Checked what) {
  const std::vector<Counts> counts = count_all(what);
  Damage damage;
  for (const Counts& place : counts) damage.wrong += static_cast<std::int64_t>(place[0]);
  for (int rank = 0; rank < kind_.program.ranks(); ++rank) {
    add_input_damage(damage, rank,
                     static_cast<std::int64_t>(counts[static_cast<std::size_t>(rank)][1]));
  }
  for (PlaceId place = 0; place < kind_.program.places(); ++place) {
    for (std::size_t buffer = 0; buffer < kBuffers.size(); ++buffer) {
      add_guard_damage(
          damage, kind_.program, place, kBuffers[buffer],
          static_cast<std::int64_t>(counts[static_cast<std::size_t>(place)][2 + buffer]),
          kind_.type);
    }
  }
  return damage;
}

}  // namespace espalier::cuda

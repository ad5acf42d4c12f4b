// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_backend.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/processors.h"
#include "exec/free_memory.h"
#include "exec/host/host_data.h"
#include "exec/host/host_memory.h"
#include "exec/host/host_run.h"
#include "exec/host/lane_runner.h"
#include "exec/lanes/lowering.h"
#include "exec/room.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

/// Everything that a run allocates in proportion to the message or the program.
MemoryNeed need_of(const HostData& data, const RunOptions& options) {
  MemoryNeed need{.owner = "this computer", .available = free_memory_bytes() * kFreeMemoryShare};
  const auto all_sizes = buffer_sizes(data.program, data.layout, size_of(data.type));
  const std::size_t places = places_with_buffers(all_sizes);
  for (const auto& sizes : all_sizes) {
    need.add_buffers(sizes, [&](double bytes) { return allocated_bytes(bytes, places); });
  }
  const Program& program = data.program;
  const std::size_t addresses = program.sources.size() * sizeof(const std::byte*);
  need.add("commands", lowered_bytes(program) + static_cast<double>(addresses), false);
  if (options.timeline) {
    need.add("the timeline", static_cast<double>(program.ops.size() * sizeof(OpTiming)), false);
  }
  if (options.check) need.add("checking", check_scratch_bytes(data), true);
  return need;
}

void require_memory(const HostData& data, const RunOptions& options) {
  const std::vector<MemoryNeed> needs{need_of(data, options)};
  if (const auto shortage = find_shortage(needs, options.size_bytes)) throw *shortage;
}

HostData data_of(const Program& program, const RunOptions& options, int threads) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(options.type));
  return {program, ElementLayout(program.contract, options.size_bytes / element_bytes),
          options.type, options.op, threads};
}

}  // namespace

HostBackend::HostBackend(int threads, std::filesystem::path nodes)
    : threads_(threads > 0 ? threads : usable_processors()), nodes_(std::move(nodes)) {}

std::optional<std::string> HostBackend::unsupported(const Program&, const Target&) const {
  return std::nullopt;
}

void HostBackend::require_room(const Program& program, const Target&, const RunOptions& options) {
  require_sane(options);
  require_memory(data_of(program, options, threads_), options);
}

RunReport HostBackend::run(const Program& program, const Target&, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require_sane(options);
  const HostData data = data_of(program, options, threads_);
  require_memory(data, options);
  return with_memory_to("run " + program.name + " on this computer", [&] {
    const std::size_t element_bytes = size_of(options.type);
    const auto size = static_cast<std::int64_t>(element_bytes);
    const LanePrograms lowered = lower(program, options.size_bytes / size, element_bytes);
    const NumaPlan numa =
        spread_over_nodes(program, numa_nodes(allowed_processors(), nodes_), threads_);
    HostMemory memory(lowered, numa);
    RunReport report =
        run_on_host(data, lowered, memory, combine_on(data, lowered, memory), numa, options);
    report.message_bytes = data.layout.message_elements() * size;
    report.transfers = count_transfers(program);
    report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  });
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <thread>
#include <vector>

#include "core/units.h"
#include "exec/host/host_data.h"
#include "exec/host/host_memory.h"
#include "exec/host/lane_runner.h"
#include "exec/lanes/lowering.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

// Share of the memory that buffers may take: the rest is for everybody else.
constexpr double kMemoryShare = 0.8;

void require_memory(const HostData& data, std::int64_t size_bytes) {
  const double needed =
      host_memory_bytes(data.program, unit_bytes(data)) + check_scratch_bytes(data);
  const double available = host_memory_limit();
  if (needed <= available * kMemoryShare) return;
  // The need grows in proportion to the message; the largest power of two that fits is a round
  // answer.
  const double fitting = static_cast<double>(size_bytes) * kMemoryShare * available / needed;
  const std::int64_t size = fitting < 1 ? 0 : std::int64_t{1} << std::ilogb(fitting);
  throw Error(
      ErrorKind::unsupported,
      fmt::format("a message of {} takes {:.1f} GiB of buffers; {:.0f} % of this computer's "
                  "memory are {:.1f} GiB",
                  format_bytes(size_bytes), std::ldexp(needed, -30), kMemoryShare * 100,
                  std::ldexp(available * kMemoryShare, -30)),
      fmt::format("{} fits", format_bytes(size)));
}

HostData data_of(const Program& program, const RunOptions& options, int threads) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(options.type));
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  return {program, ElementLayout(program.contract, options.size_bytes / element_bytes),
          options.type, options.op, threads > 0 ? threads : static_cast<int>(processors)};
}

// Runs the program as often as the options say and reports.
RunReport run_lowered(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const RunOptions& options) {
  const Program& program = data.program;
  fill_memory(data, memory);
  LaneRunner runner(program, lowered, combine_on(data, lowered, memory), data.threads);
  RunReport report;
  report.executed.emplace();
  if (options.check) {
    runner.run(options.timeout_s);
    Damage damage = check_memory(data, memory);
    report.executed->wrong = damage.wrong;
    report.executed->damage = std::move(damage.notes);
  }
  std::vector<double> times_s;
  for (int i = -options.warmup; i < options.iterations; ++i) {
    if (program.contract.in_place) fill_inputs(data, memory);
    const bool last = i + 1 == options.iterations;
    const double time_s =
        runner.run(options.timeout_s, last && options.timeline ? &report.timeline : nullptr);
    if (i >= 0) times_s.push_back(time_s);
  }
  note_times(report, times_s);
  return report;
}

}  // namespace

std::optional<std::string> HostBackend::unsupported(const Program&, const Target&) const {
  return std::nullopt;
}

void HostBackend::require_room(const Program& program, const Target&, const RunOptions& options) {
  require_sane(options);
  require_memory(data_of(program, options, threads_), options.size_bytes);
}

RunReport HostBackend::run(const Program& program, const Target&, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  require_sane(options);
  const std::size_t element_bytes = size_of(options.type);
  const std::int64_t elements = options.size_bytes / static_cast<std::int64_t>(element_bytes);
  const HostData data = data_of(program, options, threads_);
  require_memory(data, options.size_bytes);
  try {
    const LanePrograms lowered = lower(program, elements, element_bytes);
    HostMemory memory(lowered);
    RunReport report = run_lowered(data, lowered, memory, options);
    report.message_bytes =
        data.layout.message_elements() * static_cast<std::int64_t>(element_bytes);
    report.transfers = count_transfers(program);
    report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::unsupported, "this computer has no memory left for the run");
  }
}

}  // namespace espalier

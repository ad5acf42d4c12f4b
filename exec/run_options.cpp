// SPDX-License-Identifier: Apache-2.0
#include "exec/run_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/median.h"

namespace espalier {
namespace {

// As for sizes on the command line (parse_bytes); keeps offsets within 64 bits.
constexpr std::int64_t kMaxSizeBytes = std::int64_t{1} << 50;

}  // namespace

void require_sane(const RunOptions& options) {
  DiagnosticList problems;
  if (options.size_bytes < 0 || options.size_bytes > kMaxSizeBytes) {
    problems.add({}, fmt::format("the size is {} bytes, but must be between 0 and 2^50",
                                 options.size_bytes));
  }
  if (options.iterations < 1) problems.add({}, "there must be at least one iteration");
  if (options.warmup < 0) problems.add({}, "the number of warm-up runs must not be negative");
  if (!(options.timeout_s > 0)) problems.add({}, "the timeout must be positive");
  problems.throw_if_any(ErrorKind::usage);
}

void note_times(RunReport& report, std::span<const double> times_s) {
  const auto [minimum, maximum] = std::ranges::minmax(times_s);
  ExecutedPart& executed = *report.executed;
  executed.min_time_s = minimum;
  executed.max_time_s = maximum;
  executed.median_time_s = median({times_s.begin(), times_s.end()});
  report.time_s = 0;
  for (const double time_s : times_s) report.time_s += time_s / static_cast<double>(times_s.size());
}

}  // namespace espalier

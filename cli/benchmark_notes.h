// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "scenarios/scenario.h"

namespace espalier {

/// Whether a table tells of benchmarks and of errors: not under `ideal`, which is theory.
bool has_benchmark(const Query& query);

/// "+-7 %", or "-" of what is exact.
std::string error_text(double relative);

/// "x1.23"
std::string speedup_text(double speedup);

/// What the columns of times mean and how benchmarks are launched, then `print_error_sources`.
void print_benchmark_notes(const Console& console, const std::vector<Outcome>& outcomes);

/// What the expected errors are known from, each once.
void print_error_sources(const Console& console, const std::vector<Outcome>& outcomes);

/// Where measured times are from, and what stands in the column of errors.
void print_measured_note(const Console& console, const MeasuredSeries& measured);

/// What "vs nccl" compares with: the speed, `of_what`. Nothing where no answer has it.
void print_nccl_note(const Console& console, const std::vector<Outcome>& outcomes,
                     std::string_view of_what);

}  // namespace espalier

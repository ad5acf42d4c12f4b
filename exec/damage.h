// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/data.h"
#include "ir/program.h"
#include "run/report.h"

namespace espalier {

/// What a check of the memory found after a run.
struct Damage {
  std::int64_t wrong = 0;          ///< number of wrong elements of results, inputs and guards
  std::vector<std::string> notes;  ///< what is wrong apart from results, in rank order
};

/// Counts it among what a run is known to have done wrong.
void add_damage(ExecutedPart& executed, const Damage& damage);

/// Notes that `elements` elements of a rank's input were overwritten, unless there are none.
void add_input_damage(Damage& damage, int rank, std::int64_t elements);

/// Notes that `bytes` bytes beside a buffer were overwritten, unless there are none.
void add_guard_damage(Damage& damage, const Program& program, PlaceId place, Buffer buffer,
                      std::int64_t bytes, DataType type);

}  // namespace espalier

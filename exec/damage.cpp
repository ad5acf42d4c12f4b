// SPDX-License-Identifier: Apache-2.0
#include "exec/damage.h"
#include "ir/print.h"

#include <fmt/format.h>

namespace espalier {

void add_damage(ExecutedPart& executed, const Damage& damage) {
  executed.wrong = executed.wrong.value_or(0) + damage.wrong;
  executed.damage.insert(executed.damage.end(), damage.notes.begin(), damage.notes.end());
}

void add_input_damage(Damage& damage, int rank, std::int64_t elements) {
  if (elements == 0) return;
  damage.wrong += elements;
  damage.notes.push_back(
      fmt::format("r{}.in: {} elements of the input were overwritten", rank, elements));
}

void add_guard_damage(Damage& damage, const Program& program, PlaceId place, Buffer buffer,
                      std::int64_t bytes, DataType type) {
  if (bytes == 0) return;
  const auto size = static_cast<std::int64_t>(size_of(type));
  damage.wrong += (bytes + size - 1) / size;
  damage.notes.push_back(fmt::format("{}.{}: {} bytes beside the buffer were overwritten",
                                     place_name(program, place), to_string(buffer), bytes));
}

}  // namespace espalier

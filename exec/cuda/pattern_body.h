// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "exec/cuda/fold_body.h"
#include "ir/pattern.h"

namespace espalier::cuda {

/// Writes the elements [first, first + count) of an input, whose table is `table` (see
/// `pattern_table` in ir/data.h). T: an unsigned integer of the element's size.
template <class T>
ESPALIER_DEVICE void fill_body(T* out, std::int64_t first, std::int64_t count, const T* table,
                               Worker worker) {
  for (std::int64_t i = worker.index; i < count; i += worker.count) {
    out[i] = table[pattern_position(first + i)];
  }
}

/// How many of the worker's share of those elements differ.
template <class T>
ESPALIER_DEVICE std::int64_t count_different_body(const T* got, std::int64_t first,
                                                  std::int64_t count, const T* table,
                                                  Worker worker) {
  std::int64_t different = 0;
  for (std::int64_t i = worker.index; i < count; i += worker.count) {
    if (got[i] != table[pattern_position(first + i)]) ++different;
  }
  return different;
}

/// How many bytes of the worker's share of `count` are not `value`.
ESPALIER_DEVICE inline std::int64_t count_other_bytes_body(const std::uint8_t* bytes,
                                                           std::int64_t count, std::uint8_t value,
                                                           Worker worker) {
  std::int64_t other = 0;
  for (std::int64_t i = worker.index; i < count; i += worker.count) {
    if (bytes[i] != value) ++other;
  }
  return other;
}

}  // namespace espalier::cuda

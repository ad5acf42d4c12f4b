// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace espalier {

/// Of a place: in, out and tmp.
inline constexpr std::size_t kBuffersOfPlace = 3;

/// Units of a buffer.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Most ops go on where the one before them has ended, whose stretch grows then.
void add_stretch(std::vector<Stretch>& stretches, std::int64_t begin, std::int64_t length);

/// The same units in stretches that are in order and apart.
void merge(std::vector<Stretch>& stretches);

/// \pre they are merged
std::int64_t units_of(const std::vector<Stretch>& stretches);
bool overlaps(const std::vector<Stretch>& stretches, std::int64_t begin, std::int64_t length);

}  // namespace espalier

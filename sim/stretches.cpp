// SPDX-License-Identifier: Apache-2.0
#include "sim/stretches.h"

#include <algorithm>

namespace espalier {

void add_stretch(std::vector<Stretch>& stretches, std::int64_t begin, std::int64_t length) {
  if (!stretches.empty() && stretches.back().end == begin) {
    stretches.back().end += length;
  } else {
    stretches.push_back({begin, begin + length});
  }
}

void merge(std::vector<Stretch>& stretches) {
  std::ranges::sort(stretches, {}, &Stretch::begin);
  std::size_t count = 0;
  for (const Stretch& stretch : stretches) {
    if (count > 0 && stretch.begin <= stretches[count - 1].end) {
      stretches[count - 1].end = std::max(stretches[count - 1].end, stretch.end);
    } else {
      stretches[count++] = stretch;
    }
  }
  stretches.resize(count);
}

std::int64_t units_of(const std::vector<Stretch>& stretches) {
  std::int64_t units = 0;
  for (const Stretch& stretch : stretches) units += stretch.end - stretch.begin;
  return units;
}

bool overlaps(const std::vector<Stretch>& stretches, std::int64_t begin, std::int64_t length) {
  const auto next = std::ranges::upper_bound(stretches, begin, {}, &Stretch::end);
  return next != stretches.end() && next->begin < begin + length;
}

}  // namespace espalier

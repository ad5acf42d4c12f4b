// SPDX-License-Identifier: Apache-2.0
#include "sim/working_set.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/check.h"
#include "ir/program.h"

namespace espalier {
namespace {

struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Units that are in at least one of them.
std::int64_t units_of(std::vector<Stretch>& stretches) {
  std::ranges::sort(stretches, {}, &Stretch::begin);
  std::int64_t units = 0;
  std::int64_t end = 0;
  for (const Stretch& stretch : stretches) {
    units += std::max<std::int64_t>(0, stretch.end - std::max(end, stretch.begin));
    end = std::max(end, stretch.end);
  }
  return units;
}

/// By place.
std::vector<std::int64_t> touched_units(const Program& program, bool stores_arrivals) {
  CHECK(!program.fold.is_folded());  // where memories are shared, none is (Rotation::find)
  const auto places = static_cast<std::size_t>(program.places());
  constexpr std::size_t kBuffers = 3;
  std::vector<std::vector<Stretch>> touched(places * kBuffers);
  std::vector<std::int64_t> units(places);
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    const auto touch = [&](const Operand& operand) {
      auto& stretches = touched[static_cast<std::size_t>(operand.place) * kBuffers +
                                static_cast<std::size_t>(operand.buffer)];
      const std::int64_t begin = operand.begin;
      const std::int64_t end = begin + op.length;
      // Most ops go on where the one before them has ended.
      if (!stretches.empty() && stretches.back().end == begin) {
        stretches.back().end = end;
      } else {
        stretches.push_back({begin, end});
      }
    };
    for (const Operand& source : program.sources_of(op)) {
      touch(source);
      const bool arrives = op.src_count > 1 && source.place != op.at;
      if (arrives && stores_arrivals) units[static_cast<std::size_t>(op.at)] += op.length;
    }
    for_each_destination(program, op, touch);
  }
  for (std::size_t place = 0; place < places; ++place) {
    for (std::size_t buffer = 0; buffer < kBuffers; ++buffer) {
      units[place] += units_of(touched[place * kBuffers + buffer]);
    }
  }
  return units;
}

}  // namespace

std::vector<double> touched_bytes(const Program& program, const Target& target,
                                  double message_bytes) {
  const bool stores = target.router->profile().reduction == ReductionMode::separate;
  const std::vector<std::int64_t> units = touched_units(program, stores);
  const double unit_bytes = message_bytes / static_cast<double>(program.contract.units);
  std::vector<double> bytes(target.router->topology().nodes.size());
  for (PlaceId place = 0; place < program.places(); ++place) {
    bytes[static_cast<std::size_t>(node_of(program, target.placement, place))] +=
        unit_bytes * static_cast<double>(units[static_cast<std::size_t>(place)]);
  }
  return bytes;
}

}  // namespace espalier

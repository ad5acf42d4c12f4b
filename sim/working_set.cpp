// SPDX-License-Identifier: Apache-2.0
#include "sim/working_set.h"

#include <cstdint>
#include <vector>

#include "core/check.h"
#include "ir/program.h"
#include "sim/stretches.h"

namespace espalier {
namespace {

/// By place.
std::vector<std::int64_t> touched_units(const Program& program, bool stores_arrivals) {
  CHECK(!program.fold.is_folded());  // where memories are shared, none is (Rotation::find)
  const auto places = static_cast<std::size_t>(program.places());
  std::vector<std::vector<Stretch>> touched(places * kBuffersOfPlace);
  std::vector<std::int64_t> units(places);
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    const auto touch = [&](const Operand& operand) {
      add_stretch(touched[static_cast<std::size_t>(operand.place) * kBuffersOfPlace +
                          static_cast<std::size_t>(operand.buffer)],
                  operand.begin, op.length);
    };
    for (const Operand& source : program.sources_of(op)) {
      touch(source);
      const bool arrives = op.src_count > 1 && source.place != op.at;
      if (arrives && stores_arrivals) units[static_cast<std::size_t>(op.at)] += op.length;
    }
    for_each_destination(program, op, touch);
  }
  for (std::size_t number = 0; number < touched.size(); ++number) {
    merge(touched[number]);
    units[number / kBuffersOfPlace] += units_of(touched[number]);
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

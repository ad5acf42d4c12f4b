// SPDX-License-Identifier: Apache-2.0
#include "sim/arrivals.h"

#include <algorithm>

#include "sim/stretches.h"

namespace espalier {
namespace {

std::size_t number_of(const Operand& operand) {
  return static_cast<std::size_t>(operand.place) * kBuffersOfPlace +
         static_cast<std::size_t>(operand.buffer);
}

/// A copy goes straight to where it belongs; operands of a combine come together first.
bool is_sent(const Program& program, const Op& op, const Operand& source) {
  if (op.src_count > 1) return source.place != op.at;
  bool elsewhere = false;
  for_each_destination(program, op, [&](const Operand& destination) {
    elsewhere = elsewhere || destination.place != source.place;
  });
  return elsewhere;
}

}  // namespace

std::vector<OpArrivals> arrivals_of(const Program& program) {
  const std::size_t buffers = static_cast<std::size_t>(program.places()) * kBuffersOfPlace;
  std::vector<std::vector<Stretch>> sent(buffers);
  std::vector<std::vector<Stretch>> written(buffers);
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    for (const Operand& source : program.sources_of(op)) {
      if (is_sent(program, op, source))
        add_stretch(sent[number_of(source)], source.begin, op.length);
    }
    for_each_destination(program, op, [&](const Operand& destination) {
      add_stretch(written[number_of(destination)], destination.begin, op.length);
    });
  }
  for (std::vector<Stretch>& stretches : sent) merge(stretches);
  for (std::vector<Stretch>& stretches : written) merge(stretches);

  const auto is_passed_on = [&](const Op& op, const Operand& destination) {
    return overlaps(sent[number_of(destination)], destination.begin, op.length);
  };
  const auto is_unchanged = [&](const Op& op, const Operand& source) {
    return source.buffer != Buffer::tmp &&
           !overlaps(written[number_of(source)], source.begin, op.length);
  };
  std::vector<OpArrivals> all(program.ops.size());
  for (std::size_t id = 0; id < all.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine) continue;
    const bool is_copy = op.src_count == 1;
    bool unchanged = true;
    for (const Operand& source : program.sources_of(op)) {
      if (is_copy || source.place != op.at) unchanged = unchanged && is_unchanged(op, source);
    }
    bool here_passed_on = false;
    bool there_passed_on = false;
    for_each_destination(program, op, [&](const Operand& destination) {
      bool& passed_on = destination.place == op.at ? here_passed_on : there_passed_on;
      passed_on = passed_on || is_passed_on(op, destination);
    });
    const Arrival moved = unchanged ? Arrival::unchanged : Arrival::fresh;
    all[id].operands = is_copy && here_passed_on ? Arrival::passed_on : moved;
    all[id].result = there_passed_on ? Arrival::passed_on : is_copy ? moved : Arrival::fresh;
  }
  return all;
}

}  // namespace espalier

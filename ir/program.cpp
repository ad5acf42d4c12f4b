// SPDX-License-Identifier: Apache-2.0
#include "ir/program.h"

#include <algorithm>

namespace espalier {
namespace {

bool same_op(const Program& a, const Op& x, const Program& b, const Op& y) {
  if (x.kind != y.kind || x.at != y.at || x.lane != y.lane) return false;
  if ((x.via < 0) != (y.via < 0) || (x.via >= 0 && a.vias[x.via] != b.vias[y.via])) return false;
  if (!std::ranges::equal(a.dependencies_of(x), b.dependencies_of(y))) return false;
  // Fold::dependency_groups, which are equal, go by the places of dependencies.
  if (a.fold.is_folded() && x.dep_begin != y.dep_begin) return false;
  if (x.kind != OpKind::combine) return a.duration_s(x) == b.duration_s(y);
  return x.dst == y.dst && x.length == y.length && x.in_switch == y.in_switch &&
         std::ranges::equal(a.sources_of(x), b.sources_of(y)) &&
         std::ranges::equal(a.copies_of(x), b.copies_of(y));
}

}  // namespace

std::int64_t count_transfers(const Program& program) {
  std::int64_t transfers = 0;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op, [&](PlaceId, PlaceId) { ++transfers; });
  }
  return transfers;
}

PlaceId usual_place(const Program& program, const Op& op) {
  return op.src_count == 1 ? program.sources_of(op)[0].place : op.dst.place;
}

PlaceNumber place_number(const Program& program, PlaceId place) {
  if (place < program.ranks()) return {PlaceKind::rank, place};
  const int beyond = place - program.ranks();
  if (beyond < program.hosts || program.relays == 0) return {PlaceKind::host, beyond};
  return {PlaceKind::relay, beyond - program.hosts};
}

std::vector<std::int64_t> tmp_units(const Program& program) {
  std::vector<std::int64_t> units(program.places(), 0);
  const auto reach = [&](const Operand& operand, std::uint32_t length) {
    if (operand.buffer != Buffer::tmp) return;
    if (operand.place < 0 || operand.place >= program.places()) return;
    std::int64_t& maximum = units[operand.place];
    maximum = std::max(maximum, std::int64_t{operand.begin} + length);
  };
  for (const Op& op : program.ops) {
    if (op.kind != OpKind::combine) continue;
    for_each_destination(program, op, [&](const Operand& dst) { reach(dst, op.length); });
    for (const Operand& src : program.sources_of(op)) reach(src, op.length);
  }
  return units;
}

bool same_program(const Program& a, const Program& b) {
  if (&a == &b) return true;
  if (a.name != b.name || !(a.contract == b.contract) || a.hosts != b.hosts ||
      a.relays != b.relays || !(a.fold == b.fold)) {
    return false;
  }
  return std::ranges::equal(a.ops, b.ops,
                            [&](const Op& x, const Op& y) { return same_op(a, x, b, y); });
}

}  // namespace espalier

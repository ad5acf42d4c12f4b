// SPDX-License-Identifier: Apache-2.0
#include "sim/last_writers.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/interruption.h"
#include "ir/access_tracker.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

std::vector<OpId> order_of(const Program& program) {
  bool is_sorted = true;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    for (const OpId other : program.dependencies_of(program.ops[id])) {
      is_sorted = is_sorted && other < id;
    }
  }
  if (!is_sorted) return run_order(program, lane_chains(program));
  std::vector<OpId> order(program.ops.size());
  std::iota(order.begin(), order.end(), OpId{0});
  return order;
}

}  // namespace

void for_each_touched(const Program& program, const Rounds& rounds,
                      const std::function<void(const Touched&)>& visit) {
  AccessTracker written;
  const auto is_later = [](OpId) { return true; };  // nobody asks who has read
  for (const OpId id : order_of(program)) {
    check_interruption_at(id);
    if (id >= rounds.ops && id < rounds.end()) continue;
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine) continue;
    const auto where = [&](const Operand& operand) {
      return packed_in_first_group(program.fold, operand, op.length);
    };
    for (const Operand& source : program.sources_of(op)) {
      const auto writer = [&](OpId other) { visit({id, other, source.place == op.at}); };
      written.read(id, where(source), op.length, writer, is_later);
    }
    struct Overwritten {
      const std::function<void(const Touched&)>& visit;
      OpId id;
      void operator()(OpId writer) const { visit({id, writer, false}); }
      void operator()(const AccessTracker::Readers&) const {}
    };
    for_each_destination(program, op, [&](const Operand& dst) {
      written.write(id, where(dst), op.length, Overwritten{visit, id});
    });
  }
}

}  // namespace espalier

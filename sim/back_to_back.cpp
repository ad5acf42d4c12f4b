// SPDX-License-Identifier: Apache-2.0
#include "sim/back_to_back.h"

#include <algorithm>
#include <limits>

namespace espalier {
namespace {

/// When a GPU is busy with a call.
struct Span {
  double first_s = std::numeric_limits<double>::infinity();
  double last_s = 0;
  /// When the first op began whose result comes to it: if it has no ops of its own, it waits for
  /// that with a block of its own.
  double first_coming_s = std::numeric_limits<double>::infinity();

  double length_s() const {
    const bool has_ops = first_s <= last_s;
    return std::max(0.0, last_s - (has_ops ? first_s : first_coming_s));
  }
};

}  // namespace

double back_to_back_s(const Program& program, const OpHistory& history,
                      const std::vector<LinkUse>& links, double call_overhead_s) {
  std::vector<Span> spans(static_cast<std::size_t>(program.places()));
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    Span& own = spans[static_cast<std::size_t>(op.at)];
    own.first_s = std::min(own.first_s, history.start_s[id]);
    own.last_s = std::max(own.last_s, history.end_s[id]);
    if (op.kind != OpKind::combine) continue;
    for_each_destination(program, op, [&](const Operand& dst) {
      Span& there = spans[static_cast<std::size_t>(dst.place)];
      there.first_coming_s = std::min(there.first_coming_s, history.start_s[id]);
      there.last_s = std::max(there.last_s, history.seen_s[id]);
    });
  }
  double period_s = 0;
  for (PlaceId place = 0; place < program.places(); ++place) {
    if (place_number(program, place).kind == PlaceKind::host) continue;
    period_s = std::max(period_s, spans[static_cast<std::size_t>(place)].length_s());
  }
  period_s += call_overhead_s;
  for (const LinkUse& link : links) period_s = std::max(period_s, link.busy_s);
  return period_s;
}

}  // namespace espalier

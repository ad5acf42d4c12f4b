// SPDX-License-Identifier: Apache-2.0
#include "sim/least_time.h"

#include <algorithm>

namespace espalier {
namespace {

/// Sums in another order, amounts that are rounded and dates that are one instant make simulations
/// shorter than bounds by less than this part.
constexpr double kRounding = 1e-6;

}  // namespace

LeastTime::LeastTime(const Program& program, const OpGraph& graph, const BlockMap& blocks,
                     const Target& target, const TimeUnit& unit, double message_bytes,
                     double limit_s)
    : program_(program),
      limit_s_(limit_s * (1 + kRounding)),
      machine_(program, target, unit, unused_),
      costs_(program, blocks, target.router->profile(), message_bytes, machine_),
      tails_s_(program.ops.size()) {
  // Ops come after what they wait for. Where one of them does not, as in a file, whatever comes
  // before it is taken to wait for nothing else: the bound is lower.
  for (OpId id = static_cast<OpId>(program.ops.size()); id-- > 0;) {
    double rest_s = 0;
    for (const OpId next : graph.successors(id)) rest_s = std::max(rest_s, tails_s_[next]);
    const OpId next = graph.next_in_lane(id);
    if (next != OpGraph::kNone) rest_s = std::max(rest_s, tails_s_[next]);
    const Op& op = program.ops[id];
    find_transfers(op);
    tails_s_[id] = least_s(op) + rest_s;
    left_s_.resize(machine_.resources());
    for_each_load(op, [&](double& left_s, double busy_s) { left_s += busy_s; });
  }
}

bool LeastTime::is_too_slow(OpId id, double now_s, double start_s) {
  bool is = start_s + tails_s_[id] > limit_s_;
  const Op& op = program_.ops[id];
  find_transfers(op);
  for_each_load(op, [&](double& left_s, double busy_s) {
    is = is || now_s + left_s > limit_s_;
    left_s -= busy_s;
  });
  return is;
}

/// Of those that count.
void LeastTime::find_transfers(const Op& op) {
  transfers_.clear();
  if (op.kind == OpKind::combine && !op.in_switch) costs_.transfers_of(op, transfers_);
}

/// Of the op whose transfers were found.
double LeastTime::least_s(const Op& op) {
  if (op.kind == OpKind::compute) return machine_.computing_s(op.at, program_.duration_s(op));
  if (op.kind == OpKind::wait) return program_.duration_s(op);
  if (transfers_.empty()) return 0;
  double bytes_per_s = transfers_[0].path->narrowest_bytes_per_s;
  for (const Transfer& transfer : transfers_) {
    bytes_per_s = std::min(bytes_per_s, transfer.path->narrowest_bytes_per_s);
  }
  // The result of what is reduced separately has a start-up of its own, and no block.
  if (costs_.reduces_separately(op)) return costs_.bytes_of(op) / bytes_per_s;
  const ResourceId block = costs_.block_of(op, transfers_);
  if (block != kNoResource) bytes_per_s = std::min(bytes_per_s, machine_.bytes_per_s(block));
  return costs_.start_up_s(op, transfers_) + costs_.bytes_of(op) / bytes_per_s;
}

/// Calls `visit(left_s, busy_s)` for every link that an op's transfers use, as often as they do.
template <class Visit>
void LeastTime::for_each_load(const Op& op, Visit&& visit) {
  for (const Transfer& transfer : transfers_) {
    for (const ResourceId link : transfer.path->resources) {
      visit(left_s_[link], costs_.bytes_of(op) / machine_.bytes_per_s(link));
    }
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "sim/op_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/lane_numbers.h"
#include "sim/text_findings.h"

namespace espalier {
namespace {

/// Slices are doubles: what divides exactly must not look a little too large.
constexpr double kTolerance = 1e-6;
constexpr double kManySlices = 1e9;

/// Whether a slice begins where another of so many units ends.
bool goes_on(const Operand& after, const Operand& before, std::uint32_t length) {
  return after.place == before.place && after.buffer == before.buffer &&
         after.begin == before.begin + length;
}

}  // namespace

OpsOverLinks ops_over_links(const Program& program) {
  OpsOverLinks passed_by(program.ops.size());
  LaneNumbers lanes;
  std::vector<int> passed;  // by lane
  for (std::size_t id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    bool is_over_links = false;
    for_each_transfer(program, op, [&](PlaceId, PlaceId) { is_over_links = true; });
    if (!is_over_links) continue;
    const std::uint32_t lane = lanes.number(op.at, op.lane);
    if (passed.size() < lanes.size()) passed.resize(lanes.size());
    passed_by[id] = ++passed[lane];
  }
  return passed_by;
}

OpCosts::OpCosts(const Program& program, const BlockMap& blocks, const Profile& profile,
                 double message_bytes, MachineResources& machine, TextFindings* text)
    : program_(program),
      blocks_(blocks),
      profile_(profile),
      bytes_per_unit_(message_bytes / static_cast<double>(program.contract.units)),
      machine_(machine),
      lockstep_(program, profile.protocol.lockstep_bytes / bytes_per_unit_, bytes_per_unit_,
                machine) {
  const Protocol& protocol = profile.protocol;
  const bool has_slices = protocol.slice_bytes > 0 && blocks.slices_per_op(protocol) > 1;
  has_early_ = has_slices && !protocol.hold_s.empty();
  drift_ = protocol.drift_ops > 0 ? protocol.drift_ops : std::numeric_limits<int>::max();
  if (has_early_ || protocol.drift_ops > 0) {
    passed_ = text != nullptr ? text->ops_over_links()
                              : std::make_shared<const OpsOverLinks>(ops_over_links(program));
  }
  if (machine.has_exchange()) arrivals_ = espalier::arrivals_of(program);
}

OpCosts::OpCosts(const Program& program, const BlockMap& blocks, const Profile& profile,
                 double message_bytes, MachineResources& machine, std::vector<OpTurn> turns,
                 int groups)
    : program_(program),
      blocks_(blocks),
      profile_(profile),
      bytes_per_unit_(message_bytes / static_cast<double>(program.contract.units)),
      machine_(machine),
      lockstep_(program, 0, bytes_per_unit_, machine),
      turns_(std::move(turns)),
      groups_(static_cast<std::size_t>(groups)) {}

void OpCosts::transfers_of(const Op& op, std::vector<Transfer>& transfers) const {
  transfers.clear();
  for_each_transfer(program_, op, [&](PlaceId from, PlaceId to) {
    transfers.push_back({from, to, &machine_.path(from, to, op.via)});
  });
}

bool OpCosts::reduces_separately(const Op& op) const {
  return op.kind == OpKind::combine && op.src_count > 1 && !op.in_switch &&
         profile_.reduction == ReductionMode::separate;
}

bool is_further_part(const Program& program, const Op& op) {
  if (&op == program.ops.data()) return false;
  const Op& before = *(&op - 1);
  if (before.at != op.at || before.lane != op.lane || before.src_count != op.src_count)
    return false;
  const std::span<const Operand> sources = program.sources_of(op);
  const std::span<const Operand> sources_before = program.sources_of(before);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!goes_on(sources[i], sources_before[i], before.length)) return false;
  }
  return goes_on(op.dst, before.dst, before.length);
}

double OpCosts::fixed_s(const Op& op, std::span<const Transfer> transfers) const {
  if (is_further(op)) return 0;
  double overhead_s = 0;
  double slice_s = 0;
  double hop_s = 0;
  for (const Transfer& transfer : transfers) {
    const double start_up_s = transfer.path->start_up.of(bytes_of(op));
    overhead_s = std::max(overhead_s, start_up_s);
    slice_s = std::max(slice_s, transfer.path->slice_s);
    hop_s = std::max(hop_s, start_up_s + transfer.path->latency_s);
  }
  const Protocol& protocol = profile_.protocol;
  overhead_s += local_s(op);
  if (protocol.slice_bytes <= 0) return overhead_s;
  const double bytes =
      bytes_of(op) / static_cast<double>(std::max<std::size_t>(blocks_.width(op.at, op.lane), 1));
  const auto as_many = [&](double slice_bytes) {
    return slice_bytes > 0 ? std::ceil(bytes / slice_bytes * (1 - kTolerance)) : kManySlices;
  };
  const double wanted =
      std::min<double>(blocks_.slices_per_op(protocol), as_many(protocol.min_slice_bytes));
  const double slices = std::max({1.0, wanted, as_many(protocol.slice_bytes)});
  const double unhidden_s = is_early(op) ? std::max(hop_s - slice_s, 0.0) : 0;
  return overhead_s + (slices - 1) * slice_s + (std::max(wanted, 1.0) - 1) * unhidden_s;
}

/// Its share of an op that stays in the GPU (BlockUse::ops_per_local), of as many bytes.
double OpCosts::local_s(const Op& op) const {
  if (blocks_.ops_per_local() == 0) return 0;
  const double bytes_per_s = machine_.copy_bytes_per_s(op.at, blocks_.rate(op.at, op.lane));
  return (profile_.local_overhead_s + bytes_of(op) / bytes_per_s) / blocks_.ops_per_local();
}

ResourceId OpCosts::slowed_block_of(const Op& op, const Transfer& transfer, double paused_s) const {
  const double bytes = bytes_of(op);
  const double bytes_per_s = machine_.block_bytes_per_s(op.at, blocks_.rate(op.at, op.lane),
                                                        transfer.path->narrowest_bytes_per_s);
  return machine_.slowed_block(op.at, op.lane, bytes / (paused_s + bytes / bytes_per_s));
}

ResourceId OpCosts::block_of(const Op& op, std::span<const Transfer> transfers) const {
  double links_bytes_per_s = 0;  // all transfers together are no faster
  for (const Transfer& transfer : transfers) {
    links_bytes_per_s += transfer.path->narrowest_bytes_per_s;
  }
  return machine_.block(op.at, op.lane, blocks_.rate(op.at, op.lane), links_bytes_per_s);
}

}  // namespace espalier

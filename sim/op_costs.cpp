// SPDX-License-Identifier: Apache-2.0
#include "sim/op_costs.h"

#include <algorithm>
#include <cmath>

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

OpCosts::OpCosts(const Program& program, const BlockMap& blocks, const Profile& profile,
                 double message_bytes, MachineResources& machine)
    : program_(program),
      blocks_(blocks),
      profile_(profile),
      bytes_per_unit_(message_bytes / static_cast<double>(program.contract.units)),
      machine_(machine),
      lockstep_(program, profile.protocol.lockstep_bytes / bytes_per_unit_, bytes_per_unit_,
                machine) {}

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

bool OpCosts::is_further_part(const Op& op) const {
  if (!blocks_.streams() || &op == program_.ops.data()) return false;
  const Op& before = *(&op - 1);
  if (before.at != op.at || before.lane != op.lane || before.src_count != op.src_count)
    return false;
  const std::span<const Operand> sources = program_.sources_of(op);
  const std::span<const Operand> sources_before = program_.sources_of(before);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!goes_on(sources[i], sources_before[i], before.length)) return false;
  }
  return goes_on(op.dst, before.dst, before.length);
}

double OpCosts::fixed_s(const Op& op, std::span<const Transfer> transfers) const {
  if (is_further_part(op)) return 0;
  double overhead_s = 0;
  double slice_s = 0;
  for (const Transfer& transfer : transfers) {
    overhead_s = std::max(overhead_s, transfer.path->overhead_s);
    slice_s = std::max(slice_s, transfer.path->slice_s);
  }
  const Protocol& protocol = profile_.protocol;
  if (protocol.slice_bytes <= 0) return overhead_s;
  const double bytes =
      bytes_of(op) / static_cast<double>(std::max<std::size_t>(blocks_.width(op.at, op.lane), 1));
  const auto as_many = [&](double slice_bytes) {
    return slice_bytes > 0 ? std::ceil(bytes / slice_bytes * (1 - kTolerance)) : kManySlices;
  };
  const double wanted =
      std::min<double>(blocks_.slices_per_op(protocol), as_many(protocol.min_slice_bytes));
  const double slices = std::max({1.0, wanted, as_many(protocol.slice_bytes)});
  return overhead_s + (slices - 1) * slice_s;
}

ResourceId OpCosts::block_of(const Op& op, std::span<const Transfer> transfers) const {
  double links_bytes_per_s = 0;  // all transfers together are no faster
  for (const Transfer& transfer : transfers) {
    links_bytes_per_s += transfer.path->narrowest_bytes_per_s;
  }
  return machine_.block(op.at, op.lane, blocks_.rate(op.at, op.lane), links_bytes_per_s);
}

}  // namespace espalier

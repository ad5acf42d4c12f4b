// SPDX-License-Identifier: Apache-2.0
#include "sim/alike_costs.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/hash.h"
#include "core/interruption.h"

namespace espalier {
namespace {

using Hash = std::uint64_t;

class Mixed {
 public:
  void add(Hash value) { hash_ = mix64(hash_ ^ value); }
  void add(double value) { add(std::bit_cast<Hash>(value)); }
  void add_flag(bool value) { add(Hash{value}); }
  Hash hash() const { return hash_; }

 private:
  Hash hash_ = 0;
};

void add(Mixed& mixed, const FlowList& list) {
  mixed.add(list.landing_s);
  mixed.add(static_cast<Hash>(list.transfers));
  for (const FlowList::Flow& flow : list.flows) {
    mixed.add(flow.latency_s);
    mixed.add(flow.bytes);
  }
}

Hash cost_hash(OpShapes& shapes, OpId id) {
  Mixed mixed;
  add(mixed, shapes.begin(id));
  if (shapes.reduces_separately(id)) add(mixed, shapes.reduce(id));
  return mixed.hash();
}

/// All of a path but what it uses.
Hash hash_of(const Path& path) {
  Mixed mixed;
  mixed.add(path.latency_s);
  mixed.add(path.start_up.s);
  mixed.add(Hash{path.start_up.longer.size()});
  for (const StartUp::Longer& one : path.start_up.longer) {
    mixed.add(one.above_bytes);
    mixed.add(one.s);
  }
  mixed.add(path.slice_s);
  mixed.add(path.narrowest_bytes_per_s);
  mixed.add_flag(path.is_fabric);
  mixed.add_flag(path.sends.has_value());
  mixed.add_flag(path.receives.has_value());
  return mixed.hash();
}

/// Finds what combines cost, op by op.
class Inputs {
 public:
  Inputs(const Program& program, const BlockMap& blocks, MachineResources& machine)
      : program_(program), blocks_(blocks), machine_(machine) {}

  Hash of(const Op& op, const OpTurn& turn, const Lockstep::Reads& reads) {
    Mixed mixed;
    mixed.add(Hash{op.length});
    mixed.add(Hash{op.src_count} << 32 | op.copy_count);
    mixed.add_flag(op.dst.place == op.at);
    mixed.add_flag(place_number(program_, op.at).kind == PlaceKind::host);
    mixed.add(Hash{blocks_.width(op.at, op.lane)});
    if (blocks_.ops_per_local() > 0) {
      mixed.add(machine_.copy_bytes_per_s(op.at, blocks_.rate(op.at, op.lane)));
    }
    mixed.add(Hash{turn.is_early} << 1 | Hash{turn.is_further_part});
    mixed.add(static_cast<Hash>(turn.arrivals.operands) << 8 |
              static_cast<Hash>(turn.arrivals.result));
    mixed.add(reads.units_before);
    mixed.add(reads.lost_s_a_byte);
    for_each_transfer(program_, op, [&](PlaceId from, PlaceId to) {
      mixed.add_flag(to == op.at);
      mixed.add(of(machine_.path(from, to, op.via)));
    });
    return mixed.hash();
  }

 private:
  Hash of(const Path& path) {
    const auto [known, is_new] = paths_.try_emplace(&path);
    if (is_new) known->second = hash_of(path);
    return known->second;
  }

  const Program& program_;
  const BlockMap& blocks_;
  MachineResources& machine_;
  std::unordered_map<const Path*, Hash> paths_;
};

/// Whether ops may read several peers that differ in nothing but their turn, as pieces of an op do:
/// the first ones lose more in lockstep.
bool read_in_pieces(const Program& program) {
  std::unordered_set<Hash> shapes;
  return std::ranges::any_of(program.ops, [&](const Op& op) {
    return reads_several_peers(program, op) && !shapes.insert(shape_hash(program, op)).second;
  });
}

}  // namespace

AlikeCosts costs_alike(OpShapes& shapes) {
  AlikeCosts all;
  all.reserve(shapes.numbers().examples().size());
  for (const OpId id : shapes.numbers().examples()) all.push_back(cost_hash(shapes, id));
  return all;
}

std::optional<CostInputs> CostInputs::find(const Program& program, const Target& target,
                                           const BlockMap& blocks, OpShapes& shapes,
                                           MachineResources& machine) {
  const Protocol& protocol = target.router->profile().protocol;
  const bool in_step = protocol.lockstep_bytes > 0;
  const bool depends_on_size = target.rotation != nullptr || protocol.drift_ops > 0 ||
                               target.router->topology().has_working_sets() ||
                               std::ranges::any_of(program.ops, &Op::in_switch) ||
                               (in_step && read_in_pieces(program));
  if (depends_on_size) return std::nullopt;
  const Lockstep lockstep(program, in_step ? std::numeric_limits<double>::max() : 0, 1, machine);
  CostInputs found;
  found.lockstep_bytes_ = protocol.lockstep_bytes;
  Inputs inputs(program, blocks, machine);
  for (const OpId id : shapes.numbers().examples()) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    OpTurn& turn = found.turns_.emplace_back(shapes.turn_of(op));
    turn.lockstep_s = 0;
    const Lockstep::Reads& reads = found.reads_.emplace_back(lockstep.of(op));
    const bool moves = op.kind == OpKind::combine;
    found.by_shape_.push_back(moves ? inputs.of(op, turn, reads) : cost_hash(shapes, id));
  }
  return found;
}

OpTurn CostInputs::turn(std::uint32_t shape, const Op& op, double bytes_per_unit) const {
  OpTurn turn = turns_[shape];
  turn.lockstep_s =
      Lockstep::seconds(reads_[shape], op, lockstep_bytes_ / bytes_per_unit, bytes_per_unit);
  return turn;
}

}  // namespace espalier

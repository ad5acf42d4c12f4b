// SPDX-License-Identifier: Apache-2.0
#include "ir/unfold.h"

#include "core/check.h"

namespace espalier {

Fold turned_by_blocks(const Contract& contract, int groups) {
  CHECK(contract.ranks % groups == 0);
  const int each = contract.ranks / groups;
  Fold fold{.groups = groups, .each = each, .adjacent = each};
  if (contract.collective == Collective::sendrecv) return fold;
  CHECK(contract.units % contract.ranks == 0);
  const Fold::Turn turn{contract.units, contract.units / groups};
  for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
    const bool is_whole =
        buffer == Buffer::tmp || buffer_units(contract, 0, buffer) == contract.units;
    if (is_whole) fold.turns[static_cast<std::size_t>(buffer)].most = turn;
  }
  return fold;
}

std::vector<Fold> turned_by_blocks(const Contract& contract) {
  std::vector<Fold> all;
  for (int each = 1; 2 * each <= contract.ranks; ++each) {
    if (contract.ranks % each != 0) continue;
    all.push_back(turned_by_blocks(contract, contract.ranks / each));
  }
  return all;
}

bool may_be_cut(const Program& program) {
  const Fold& fold = program.fold;
  const auto is_whole = [&](const Operand& operand, std::int64_t length) {
    const Fold::Turn& turn = fold.turns[static_cast<std::size_t>(operand.buffer)].most;
    return turn.step % turn.period != 0 &&
           fold.is_whole_periods(operand.buffer, operand.begin, length);
  };
  for (const Op& op : program.ops) {
    if (!fold.is_folded() || op.kind != OpKind::combine) continue;
    bool whole = false;
    for (const Operand& source : program.sources_of(op)) whole |= is_whole(source, op.length);
    for_each_destination(program, op,
                         [&](const Operand& dst) { whole |= is_whole(dst, op.length); });
    if (whole) return false;
  }
  return true;
}

namespace {

/// Without its dependencies.
void add_moved(const Program& program, const Op& op, int group, Program& whole) {
  const Fold& fold = program.fold;
  Op& added = whole.ops.emplace_back(op);
  added.at = fold.rank_moved(op.at, group);
  added.lane = static_cast<std::uint16_t>(fold.lane_moved(op.at, op.lane, group));
  added.dst = op.kind == OpKind::combine ? moved(fold, op.dst, op.length, group)
                                         : Operand{added.at, op.dst.begin, op.dst.buffer};
  added.src_begin = static_cast<std::uint32_t>(whole.sources.size());
  for (std::uint32_t i = 0; i < op.src_count + op.copy_count; ++i) {
    whole.sources.push_back(moved(fold, program.sources[op.src_begin + i], op.length, group));
  }
  added.dep_begin = static_cast<std::uint32_t>(whole.dependencies.size());
  added.dep_count = 0;
}

Program without_ops(const Program& program) {
  Program empty;
  empty.name = program.name;
  empty.contract = program.contract;
  empty.vias = program.vias;
  empty.durations_s = program.durations_s;
  return empty;
}

}  // namespace

Program op_of_group(const Program& program, OpId id, int group) {
  Program one;
  one.contract = program.contract;
  one.durations_s = program.durations_s;
  add_moved(program, program.ops[id], group, one);
  return one;
}

Program unfold(const Program& program) {
  const Fold& fold = program.fold;
  if (!fold.is_folded()) return program;
  Program whole = without_ops(program);
  const auto groups = static_cast<OpId>(fold.groups);
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    for (int group = 0; group < fold.groups; ++group) {
      add_moved(program, op, group, whole);
      whole.ops.back().dep_count = op.dep_count;
      for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
        const int of = fold.wrapped(group + fold.dependency_groups[i]);
        whole.dependencies.push_back(program.dependencies[i] * groups + static_cast<OpId>(of));
      }
      if (!program.lines.empty()) whole.lines.push_back(program.lines[id]);
    }
  }
  return whole;
}

}  // namespace espalier

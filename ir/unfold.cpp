// SPDX-License-Identifier: Apache-2.0
#include "ir/unfold.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace espalier {

Fold turned_by_blocks(const Contract& contract, int groups) {
  CHECK(contract.ranks % groups == 0);
  const int each = contract.ranks / groups;
  Fold fold{.groups = groups, .each = each, .adjacent = each};
  if (contract.collective == Collective::sendrecv) return fold;
  CHECK(contract.units % groups == 0);
  const Fold::Turn turn{contract.units, contract.units / groups};
  for (const Buffer buffer : {Buffer::in, Buffer::out, Buffer::tmp}) {
    const bool is_whole =
        buffer == Buffer::tmp || buffer_units(contract, 0, buffer) == contract.units;
    if (is_whole) fold.turns[static_cast<std::size_t>(buffer)].most = turn;
  }
  return fold;
}

std::vector<Fold> all_turned_by_blocks(const Contract& contract, int groups) {
  std::vector<Fold> all;
  for (int joined = 1; 2 * joined <= groups; ++joined) {
    if (groups % joined == 0) all.push_back(turned_by_blocks(contract, groups / joined));
  }
  return all;
}

namespace {

/// Whether its units are whole periods, of which each takes all groups to come round if it
/// `must_come_round`.
bool fits(const Fold& fold, Buffer buffer, std::int64_t units, bool must_come_round) {
  const Fold::Turns& turns = fold.turns[static_cast<std::size_t>(buffer)];
  const auto is_whole = [&](const Fold::Turn& turn, std::int64_t length) {
    if (turn.period < 1 || turn.step < 0) return false;
    if (must_come_round && turn.step * fold.groups != turn.period) return false;
    return turn.step % turn.period == 0 || length % turn.period == 0;
  };
  if (turns.rest_begin < 1) return false;
  const bool has_rest = turns.rest_begin < units;
  return is_whole(turns.most, std::min(turns.rest_begin, units)) &&
         (!has_rest || is_whole(turns.rest, units - turns.rest_begin));
}

bool is_permutation(std::vector<int> order) {
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return true;
}

}  // namespace

bool is_valid(const Fold& fold, const Contract& contract) {
  if (info(contract.collective).rooted || fold.groups < 1 || fold.lanes < 1) return false;
  if (fold.groups % fold.lanes != 0 || fold.rank_groups() * fold.each != contract.ranks)
    return false;
  if (fold.adjacent < 1 || fold.each % fold.adjacent != 0) return false;
  const bool has_order = !fold.order.empty();
  if (has_order && static_cast<int>(fold.order.size()) != fold.rank_groups()) return false;
  if (!is_permutation(fold.order)) return false;
  return std::ranges::all_of(std::array{Buffer::in, Buffer::out}, [&](Buffer buffer) {
    const std::int64_t units = buffer_units(contract, 0, buffer);
    return units == 0 || fits(fold, buffer, units, fold.shares_ranks());
  });
}

bool keeps_contract(const Fold& fold, const Contract& contract) {
  const std::int64_t block = block_units(contract);
  // Of a rank's results, from one unit on; they are alike as long as they come from one block and
  // move together.
  const auto keeps = [&](int rank, std::int64_t unit, std::int64_t& alike) {
    const int next = fold.rank_moved(rank, 1);
    const Region out = output_region(contract, rank);
    const Origin origin = origin_of(contract, rank, unit);
    const int from = origin.rank < 0 ? rank : origin.rank;
    const int from_next = fold.rank_moved(from, 1);
    const Region in = input_region(contract, from);
    const std::int64_t of_out = out.begin + unit;
    const std::int64_t of_in = in.begin + origin.unit;
    alike = std::min({block - unit % block, fold.move_together(out.buffer, of_out, 1),
                      fold.move_together(in.buffer, of_in, 1)});
    const std::int64_t moved =
        fold.unit_moved(out.buffer, of_out, 1) - output_region(contract, next).begin;
    if (moved < 0 || moved >= out.units) return false;
    const Origin promised = origin_of(contract, next, moved);
    const std::int64_t expected =
        fold.unit_moved(in.buffer, of_in, 1) - input_region(contract, from_next).begin;
    return promised.rank == (origin.rank < 0 ? -1 : from_next) && promised.unit == expected;
  };
  // What a rank is promised is a matter of the rank and of the block, by themselves: all blocks of
  // one rank, and one block of all ranks.
  std::int64_t alike = 0;
  const int first = fold.rank_of(0, 0);
  const std::int64_t units = output_region(contract, first).units;
  for (std::int64_t unit = 0; unit < units; unit += alike) {
    if (!keeps(first, unit, alike)) return false;
  }
  for (int rank = 0; rank < contract.ranks; ++rank) {
    if (!keeps(rank, 0, alike)) return false;
  }
  return true;
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
  if (group % program.fold.groups == 0) {
    one.vias = program.vias;
  } else {
    one.ops.front().via = -1;
  }
  return one;
}

Program unfold(const Program& program) {
  const Fold& fold = program.fold;
  if (!fold.is_folded()) return program;
  CHECK(program.vias.empty());
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

// SPDX-License-Identifier: Apache-2.0
#include "ir/rounds.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "core/interruption.h"

namespace espalier {
namespace {

/// Ops that the first one is like, and that may begin the second round, of which so many are tried.
constexpr int kMaxTries = 8;
/// Fewer rounds are not worth it.
constexpr OpId kMinRounds = 3;

std::span<const Operand> operands_of(const Program& program, const Op& op) {
  return {program.sources.data() + op.src_begin, std::size_t{op.src_count} + op.copy_count};
}

/// The op after a round, so many ops and units further on.
bool is_again(const Program& program, OpId id, OpId ops, std::uint32_t units) {
  const Op& a = program.ops[id];
  const Op& b = program.ops[id + ops];
  const auto goes_on = [&](const Operand& one, const Operand& other) {
    return other.place == one.place && other.buffer == one.buffer &&
           other.begin == one.begin + units;
  };
  const bool is_same = a.at == b.at && a.lane == b.lane && a.via == b.via && a.kind == b.kind &&
                       a.in_switch == b.in_switch && a.length == b.length &&
                       a.src_count == b.src_count && a.copy_count == b.copy_count &&
                       a.dep_count == b.dep_count && goes_on(a.dst, b.dst);
  if (!is_same) return false;
  const auto groups_of = [&](const Op& op) {
    const std::vector<int>& groups = program.fold.dependency_groups;
    return groups.empty() ? std::span<const int>{}
                          : std::span{groups}.subspan(op.dep_begin, op.dep_count);
  };
  return std::ranges::equal(operands_of(program, a), operands_of(program, b), goes_on) &&
         std::ranges::equal(program.dependencies_of(a), program.dependencies_of(b),
                            [&](OpId one, OpId other) { return other == one + ops; }) &&
         std::ranges::equal(groups_of(a), groups_of(b));
}

/// Whether a fold turns each round of a buffer within itself, or with whole blocks. Scratch may be
/// turned in another way than the rest: of it, nothing is known but that of whole blocks.
bool is_turned_alike(const Program& program, const Rounds& rounds, Buffer buffer) {
  const Fold& fold = program.fold;
  const Fold::Turns& turns = fold.turns[static_cast<std::size_t>(buffer)];
  const auto& [period, step] = turns.most;
  const std::int64_t block = block_units(program.contract);
  const bool is_by_blocks = !fold.shares_ranks() && period % block == 0 && step % block == 0 &&
                            turns.rest_begin == Fold::Turns{}.rest_begin;
  const bool is_within =
      buffer != Buffer::tmp && rounds.units % period == 0 && rounds.all_units() <= turns.rest_begin;
  return !fold.is_folded() || is_by_blocks || is_within;
}

/// Whether all units that an op is about are in [begin, end) of blocks.
bool is_within(const Program& program, const Op& op, std::int64_t begin, std::int64_t end) {
  const std::int64_t block = block_units(program.contract);
  const auto within = [&](const Operand& one) {
    const std::int64_t from = one.begin % block;
    return from >= begin && from + op.length <= end;
  };
  return op.kind == OpKind::combine && within(op.dst) &&
         std::ranges::all_of(operands_of(program, op), within);
}

bool has_scratch(const Program& program) {
  return std::ranges::any_of(program.ops, [&](const Op& op) {
    const auto is_scratch = [](const Operand& one) { return one.buffer == Buffer::tmp; };
    return is_scratch(op.dst) || std::ranges::any_of(operands_of(program, op), is_scratch);
  });
}

/// Whether all ops that it waits for are in [begin, id).
bool waits_within(const Program& program, OpId id, OpId begin) {
  return std::ranges::all_of(program.dependencies_of(program.ops[id]),
                             [&](OpId earlier) { return earlier >= begin && earlier < id; });
}

/// Ops that come again and again.
std::optional<Rounds> find_repeated(const Program& program) {
  const auto size = static_cast<OpId>(program.ops.size());
  int tries = 0;
  for (OpId next = 1; next <= size / kMinRounds && tries < kMaxTries; ++next) {
    const std::uint32_t first = program.ops[0].dst.begin;
    const std::uint32_t begin = program.ops[next].dst.begin;
    if (begin <= first || !is_again(program, 0, next, begin - first)) continue;
    ++tries;
    Rounds found{.ops = next, .units = begin - first};
    OpId alike = 0;
    while (alike + next < size && is_again(program, alike, next, found.units)) {
      check_interruption_at(alike++);
    }
    found.count = alike / next + 1;
    if (found.count >= kMinRounds) return found;
  }
  return std::nullopt;
}

/// Whether rounds are by themselves: each with its own units and dependencies, as are the ops that
/// come after all of them.
bool are_apart(const Program& program, const Rounds& rounds) {
  for (OpId id = 0; id < rounds.ops; ++id) {
    if (!is_within(program, program.ops[id], 0, rounds.units)) return false;
    if (!waits_within(program, id, 0)) return false;
  }
  for (OpId id = rounds.end(); id < program.ops.size(); ++id) {
    const bool is_apart =
        is_within(program, program.ops[id], rounds.all_units(), block_units(program.contract)) &&
        waits_within(program, id, rounds.end());
    if (!is_apart) return false;
  }
  return true;
}

/// So that alike ops are about the same groups.
bool are_turned_alike(const Program& program, const Rounds& rounds) {
  const auto is_so = [&](Buffer buffer) { return is_turned_alike(program, rounds, buffer); };
  return is_so(Buffer::in) && is_so(Buffer::out) && (is_so(Buffer::tmp) || !has_scratch(program));
}

/// The fold of the program without all rounds but one.
Fold of_one_round(const Fold& fold, const Rounds& rounds) {
  Fold less = fold;
  less.dependency_groups.clear();
  for (Fold::Turns& turns : less.turns) {
    const bool has_rest = turns.rest_begin != std::numeric_limits<std::int64_t>::max();
    if (has_rest && turns.rest_begin >= rounds.all_units())
      turns.rest_begin -= rounds.all_units() - rounds.units;
  }
  return less;
}

}  // namespace

std::optional<Rounds> find_rounds(const Program& program) {
  if (program.ops.size() < kMinRounds) return std::nullopt;
  auto found = find_repeated(program);
  if (!found) return std::nullopt;
  const bool are_rounds = found->all_units() <= block_units(program.contract) &&
                          are_turned_alike(program, *found) && are_apart(program, *found);
  return are_rounds ? found : std::nullopt;
}

Program op_further_on(const Program& program, OpId id, OpId ops_on, std::uint32_t units_on,
                      std::int64_t units_longer) {
  const Op& op = program.ops[id];
  const std::int64_t block = block_units(program.contract);
  const auto moved = [&](Operand one) {
    one.begin += units_on + static_cast<std::uint32_t>(one.begin / block * units_longer);
    return one;
  };
  Program further;
  further.contract = program.contract;
  further.hosts = program.hosts;
  further.relays = program.relays;
  further.vias = program.vias;
  further.durations_s = program.durations_s;
  Op& alone = further.ops.emplace_back(op);
  alone.dst = moved(op.dst);
  alone.src_begin = alone.dep_begin = 0;
  for (const Operand& one : operands_of(program, op)) further.sources.push_back(moved(one));
  for (const OpId earlier : program.dependencies_of(op)) {
    further.dependencies.push_back(earlier + ops_on);
  }
  return further;
}

std::optional<Program> with_one_round(const Program& program) {
  // What a rank is promised is then the same of every unit.
  const bool is_plain = !info(program.contract.collective).blocked && program.lines.empty();
  const auto rounds = is_plain ? find_rounds(program) : std::nullopt;
  if (!rounds) return std::nullopt;

  Program one;
  one.name = program.name;
  one.contract = program.contract;
  one.contract.units -= rounds->all_units() - rounds->units;
  one.hosts = program.hosts;
  one.relays = program.relays;
  one.vias = program.vias;
  one.fold = of_one_round(program.fold, *rounds);
  const auto add = [&](OpId id, std::uint32_t units_less, OpId ops_less) {
    const Op& op = program.ops[id];
    Op& added = one.ops.emplace_back(op);
    added.dst.begin -= units_less;
    added.src_begin = static_cast<std::uint32_t>(one.sources.size());
    added.dep_begin = static_cast<std::uint32_t>(one.dependencies.size());
    for (Operand operand : operands_of(program, op)) {
      operand.begin -= units_less;
      one.sources.push_back(operand);
    }
    for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
      one.dependencies.push_back(program.dependencies[i] - ops_less);
      if (program.fold.is_folded()) {
        one.fold.dependency_groups.push_back(program.fold.dependency_groups[i]);
      }
    }
  };
  const auto units_less = static_cast<std::uint32_t>(rounds->all_units() - rounds->units);
  for (OpId id = 0; id < rounds->ops; ++id) add(id, 0, 0);
  for (OpId id = rounds->end(); id < program.ops.size(); ++id) {
    add(id, units_less, rounds->end() - rounds->ops);
  }
  return one;
}

}  // namespace espalier

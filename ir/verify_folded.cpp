// SPDX-License-Identifier: Apache-2.0
#include "ir/verify_folded.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/folded_accesses.h"
#include "ir/rounds.h"
#include "ir/unfold.h"

namespace espalier {
namespace {

/// Ranks, counted through one group after the other: [first, end).
struct Run {
  int first = 0;
  int end = 0;
  bool operator==(const Run&) const = default;
};
using Ranks = std::vector<Run>;  ///< in order, apart

/// What a unit holds: a sum of the same unit of some ranks' inputs.
struct Value {
  std::int64_t origin = 0;             ///< counted from the start of the input region
  std::shared_ptr<const Ranks> ranks;  ///< each moved on by `groups_on`
  int groups_on = 0;
  std::uint32_t sum = 0;  ///< how it was added up (Sums), moved on by `sum_groups_on`
  int sum_groups_on = 0;
};

/// Ways to add up, each for all groups at once: a way is named by its number and by how many groups
/// further on it is than the one that has the number. Whose inputs are added up, and in which
/// order, is a matter of ranks: groups that have the same ones are one.
class Sums {
 public:
  using Part = std::pair<std::uint32_t, int>;  ///< a way and groups on

  explicit Sums(const Fold& fold) : fold_(fold) {}

  Part input_of(int number) {
    return {number_of({{static_cast<std::uint32_t>(number), kInput}}), 0};
  }
  Part moved(Part part, int groups_on) const {
    part.second = (part.second + fold_.wrapped(groups_on)) % fold_.rank_groups();
    return part;
  }
  Part of(std::vector<Part> parts) {
    const int groups_on = parts.front().second;
    for (Part& part : parts) part = moved(part, -groups_on);
    return {number_of(std::move(parts)), groups_on};
  }
  /// A switch adds in an order of its own, which no other op does.
  Part of_switch(OpId op, std::vector<Part> parts) {
    const auto [number, groups_on] = of(std::move(parts));
    return {number_of({{number, 0}, {op, kSwitch}}), groups_on};
  }

 private:
  static constexpr int kInput = -1;
  static constexpr int kSwitch = -2;

  std::uint32_t number_of(std::vector<Part> parts) {
    return numbers_.try_emplace(std::move(parts), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }

  const Fold& fold_;
  std::map<std::vector<Part>, std::uint32_t> numbers_;
};

/// Carries out the ops of the first group, and with them those of all groups: what group g writes
/// anywhere is what the first group writes there, moved.
class FoldedRun {
 public:
  FoldedRun(const Program& program, Findings& findings)
      : program_(program),
        fold_(program.fold),
        findings_(findings),
        sums_(fold_),
        cells_(static_cast<std::size_t>(3 * fold_.each)) {}

  DataVerdict run() {
    for (int number = 0; number < fold_.each; ++number) fill_input(number);
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      check_interruption_at(id);
      if (program_.ops[id].kind == OpKind::combine) carry_out(id);
    }
    if (findings_.any_up_to(Rule::undefined) || findings_.any(Rule::result)) return {};
    for (int number = 0; number < fold_.each; ++number) check_result(fold_.rank_of(number, 0));
    if (findings_.any(Rule::result)) return {};
    DataVerdict verdict;
    verdict.order_consistent = is_order_consistent();
    verdict.proof = Proof::exact;
    return verdict;
  }

 private:
  struct Stretch {
    std::int64_t end = 0;
    Value value;  ///< of its first unit
  };
  using Stretches = std::map<std::int64_t, Stretch>;  ///< by first unit, disjoint
  struct Piece {
    std::int64_t begin = 0;  ///< counted from the start of an op's slices
    std::int64_t end = 0;
    Value value;
  };

  Stretches& cells(int rank, Buffer buffer) {
    return cells_[3 * static_cast<std::size_t>(fold_.number_of(rank)) +
                  static_cast<std::size_t>(buffer)];
  }

  void fill_input(int number) {
    const int rank = fold_.rank_of(number, 0);
    const Region region = input_region(program_.contract, rank);
    const auto one = std::make_shared<const Ranks>(Ranks{{number, number + 1}});
    const auto [sum, groups_on] = sums_.input_of(number);
    cells(rank, region.buffer)[region.begin] = {region.begin + region.units,
                                                {0, one, 0, sum, groups_on}};
  }

  /// Value `units` units further on.
  static Value after(Value value, std::int64_t units) {
    value.origin += units;
    return value;
  }

  /// The rank that is number `at`, counted through one group after the other.
  int rank_at(int at) const { return fold_.rank_of(at % fold_.each, at / fold_.each); }
  /// Where a value's run then begins.
  int first_of(const Run& run, const Value& value) const {
    return (run.first + value.groups_on % fold_.rank_groups() * fold_.each) % program_.ranks();
  }
  int first_rank(const Value& value) const {
    return rank_at(first_of(value.ranks->front(), value));
  }

  /// What a unit holds that is to another group what the unit of `value` is to this one.
  Value moved_value(Value value, int groups_on) const {
    const int rank = first_rank(value);
    const Region from = input_region(program_.contract, rank);
    const Region to = input_region(program_.contract, fold_.rank_moved(rank, groups_on));
    value.origin = fold_.unit_moved(from.buffer, from.begin + value.origin, groups_on) - to.begin;
    value.groups_on = fold_.wrapped(value.groups_on + groups_on);
    value.sum_groups_on = sums_.moved({value.sum, value.sum_groups_on}, groups_on).second;
    return value;
  }

  /// Adds a piece, moved. Units of inputs may be turned in other places than those of a buffer.
  void add_moved(OpId id, const Piece& piece, int groups_on, std::vector<Piece>& pieces) {
    Piece moved{piece.begin, piece.end, moved_value(piece.value, groups_on)};
    const std::int64_t last = piece.end - piece.begin - 1;
    const std::int64_t last_origin = moved_value(after(piece.value, last), groups_on).origin;
    if (last_origin != moved.value.origin + last) {
      findings_.add(Rule::limit, id, [] {
        return std::string("moves units that are turned in the middle, which is not verified");
      });
    }
    pieces.push_back(std::move(moved));
  }

  /// Calls `visit(begin, end, at, group)` for parts of the operand's units, each of one group, with
  /// the unit from which on the first group has it.
  template <class Visit>
  void for_each_part(const Operand& operand, std::int64_t length, Visit&& visit) const {
    for (std::int64_t done = 0; done < length;) {
      const std::int64_t unit = operand.begin + done;
      const int group = fold_.group_of_unit(operand.place, operand.buffer, unit);
      const std::int64_t at = fold_.unit_moved(operand.buffer, unit, -group);
      std::int64_t part = length - done;
      if (group != 0 || fold_.shares_ranks()) {
        part = std::min(part, fold_.stay_together(operand.place, operand.buffer, unit));
      }
      visit(done, done + part, at, group);
      done += part;
    }
  }

  /// False where something was never written.
  bool read(OpId id, const Operand& operand, std::int64_t length, std::vector<Piece>& pieces) {
    Stretches& known = cells(operand.place, operand.buffer);
    bool is_there = true;
    for_each_part(operand, length,
                  [&](std::int64_t begin, std::int64_t end, std::int64_t at, int group) {
                    std::int64_t next = at;
                    const std::int64_t last = at + end - begin;
                    auto one = known.upper_bound(at);
                    if (one != known.begin()) --one;
                    for (; one != known.end() && one->first < last && next < last; ++one) {
                      if (one->second.end <= next) continue;
                      if (one->first > next) break;
                      const std::int64_t until = std::min(one->second.end, last);
                      add_moved(id,
                                {begin + next - at, begin + until - at,
                                 after(one->second.value, next - one->first)},
                                group, pieces);
                      next = until;
                    }
                    is_there = is_there && next == last;
                  });
    if (is_there) return true;
    findings_.add(Rule::undefined, id, [&] {
      return fmt::format("rank {} reads units of its {} that nothing has been written to",
                         operand.place, to_string(operand.buffer));
    });
    return false;
  }

  void write(OpId id, const Operand& operand, const std::vector<Piece>& pieces,
             std::int64_t length) {
    Stretches& known = cells(operand.place, operand.buffer);
    for_each_part(
        operand, length, [&](std::int64_t begin, std::int64_t end, std::int64_t at, int group) {
          erase(known, at, at + end - begin);
          for (const Piece& piece : pieces) {
            const std::int64_t from = std::max(piece.begin, begin);
            const std::int64_t to = std::min(piece.end, end);
            if (from >= to) continue;
            std::vector<Piece> moved;
            add_moved(id, {from, to, after(piece.value, from - piece.begin)}, -group, moved);
            known[at + from - begin] = {at + to - begin, moved.front().value};
          }
        });
  }

  static void erase(Stretches& known, std::int64_t begin, std::int64_t end) {
    auto one = known.lower_bound(begin);
    if (one != known.begin() && std::prev(one)->second.end > begin) --one;
    while (one != known.end() && one->first < end) {
      const auto [first, old] = *one;
      one = known.erase(one);
      if (first < begin) known[first] = {begin, old.value};
      if (old.end > end) known[end] = {old.end, after(old.value, end - first)};
    }
  }

  void carry_out(OpId id) {
    const Op& op = program_.ops[id];
    std::vector<std::vector<Piece>> sources;
    for (const Operand& source : program_.sources_of(op)) {
      if (!read(id, source, op.length, sources.emplace_back())) return;
    }
    const std::vector<Piece> result = sources.size() == 1 ? sources.front() : sum(id, sources);
    for_each_destination(program_, op,
                         [&](const Operand& dst) { write(id, dst, result, op.length); });
  }

  std::vector<Piece> sum(OpId id, const std::vector<std::vector<Piece>>& sources) {
    std::vector<Piece> result;
    std::vector<std::size_t> at(sources.size(), 0);
    const std::int64_t length = program_.ops[id].length;
    for (std::int64_t begin = 0; begin < length;) {
      std::int64_t end = length;
      std::vector<Value> values;
      for (std::size_t i = 0; i < sources.size(); ++i) {
        while (sources[i][at[i]].end <= begin) ++at[i];
        const Piece& piece = sources[i][at[i]];
        end = std::min(end, piece.end);
        values.push_back(after(piece.value, begin - piece.begin));
      }
      result.push_back({begin, end, sum_of(id, values)});
      begin = end;
    }
    return result;
  }

  Value sum_of(OpId id, const std::vector<Value>& values) {
    Ranks all;
    std::vector<Sums::Part> parts;
    for (const Value& value : values) {
      if (value.origin != values.front().origin) {
        findings_.add(Rule::result, id, [&] {
          return fmt::format("adds unit {} of an input to unit {} of another", value.origin,
                             values.front().origin);
        });
      }
      parts.emplace_back(value.sum, value.sum_groups_on);
      const int ranks = program_.ranks();
      for (const Run& run : *value.ranks) {
        const int first = first_of(run, value);
        const int end = first + run.end - run.first;
        all.push_back({first, std::min(end, ranks)});
        if (end > ranks) all.push_back({0, end - ranks});
      }
    }
    std::ranges::sort(all, {}, &Run::first);
    Ranks joined;
    for (const Run& run : all) {
      if (!joined.empty() && run.first < joined.back().end) {
        findings_.add(Rule::result, id, [&] {
          return fmt::format("adds what rank {} has twice", rank_at(run.first));
        });
      }
      if (!joined.empty() && run.first <= joined.back().end) {
        joined.back().end = std::max(joined.back().end, run.end);
      } else {
        joined.push_back(run);
      }
    }
    const auto [number, groups_on] = program_.ops[id].in_switch
                                         ? sums_.of_switch(id, std::move(parts))
                                         : sums_.of(std::move(parts));
    return {values.front().origin, std::make_shared<const Ranks>(std::move(joined)), 0, number,
            groups_on};
  }

  bool is_of(const Value& value, int rank) const {
    const int ranks = program_.ranks();
    const Run& only = value.ranks->front();
    if (value.ranks->size() != 1) return false;
    if (rank < 0) return only == Run{0, ranks};
    return only.end - only.first == 1 && first_rank(value) == rank;
  }

  /// What is of other groups they have as the first one has its own.
  void check_result(int rank) {
    const Region region = output_region(program_.contract, rank);
    const Operand all{rank, static_cast<std::uint32_t>(region.begin), region.buffer};
    for_each_part(all, region.units,
                  [&](std::int64_t begin, std::int64_t end, std::int64_t, int group) {
                    if (group == 0) check_result(rank, region, {begin, end});
                  });
  }

  struct Units {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void check_result(int rank, const Region& region, const Units& units) {
    const Stretches& known = cells(rank, region.buffer);
    const std::int64_t block = block_units(program_.contract);
    auto one = known.upper_bound(region.begin + units.begin);
    if (one != known.begin()) --one;
    std::int64_t next = units.begin;
    while (next < units.end) {
      while (one != known.end() && one->second.end <= region.begin + next) ++one;
      if (one == known.end() || one->first > region.begin + next) return wrong_result(rank, next);
      // Within a block units come from where they are counted alike.
      const Origin origin = origin_of(program_.contract, rank, next);
      const Value value = after(one->second.value, region.begin + next - one->first);
      if (!is_of(value, origin.rank) || value.origin != origin.unit)
        return wrong_result(rank, next);
      next = std::min({one->second.end - region.begin, next + block - next % block, units.end});
    }
  }

  void wrong_result(int rank, std::int64_t unit) {
    findings_.add_general(Rule::result, [&] {
      return fmt::format("unit {} of rank {}'s result is not what {} promises", unit, rank,
                         to_string(program_.contract.collective));
    });
  }

  /// Whether what any two ranks have of a unit was added up in one way. For all groups it is enough
  /// that ranks of one group agree, and each with its counterpart in the next group.
  bool is_order_consistent() {
    if (program_.contract.collective != Collective::allreduce) return true;
    const int first = fold_.rank_of(0, 0);
    const std::vector<Piece> expected = results_of(first);
    for (int number = 0; number < fold_.each; ++number) {
      for (int further = 0; further < 2; ++further) {
        if (!alike(expected, results_of(fold_.rank_of(number, further)))) return false;
      }
    }
    return true;
  }

  /// What a rank has of the units that the first group of it has: where groups share ranks, it has
  /// the others as these, moved.
  std::vector<Piece> results_of(int rank) {
    const Buffer buffer = output_region(program_.contract, rank).buffer;
    std::vector<Piece> pieces;
    const Operand all_of_first{fold_.rank_of(0, 0), 0, buffer};
    for_each_part(all_of_first, program_.contract.units,
                  [&](std::int64_t begin, std::int64_t end, std::int64_t, int group) {
                    if (group != 0) return;
                    const Operand part{rank, static_cast<std::uint32_t>(begin), buffer};
                    read(0, part, end - begin, pieces);
                  });
    return pieces;
  }

  /// \pre both cover the same units
  static bool alike(const std::vector<Piece>& a, const std::vector<Piece>& b) {
    std::size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (a[i].value.sum != b[j].value.sum ||
          a[i].value.sum_groups_on != b[j].value.sum_groups_on) {
        return false;
      }
      const std::int64_t end = std::min(a[i].end, b[j].end);
      if (a[i].end == end) ++i;
      if (b[j].end == end) ++j;
    }
    return i == a.size() && j == b.size();
  }

  const Program& program_;
  const Fold& fold_;
  Findings& findings_;
  Sums sums_;
  std::vector<Stretches> cells_;  ///< of the first group, by rank and buffer
};

/// What is different from other programs: only the first group has ops, of no other places than
/// ranks, and they run in the order they are written in.
void check_order(const Program& program, Findings& findings) {
  const Fold& fold = program.fold;
  const bool is_known = program.hosts == 0 && program.relays == 0 &&
                        is_valid(fold, program.contract) && keeps_contract(fold, program.contract);
  if (!is_known) {
    findings.add_general(Rule::structure, [] {
      return std::string(
          "the fold does not map what ranks begin with and are promised onto itself");
    });
    return;
  }
  CHECK(fold.dependency_groups.size() == program.dependencies.size());
  for (OpId id = 0; id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    CHECK(op.at >= 0 && op.at < program.ranks() && fold.group_of_lane(op.at, op.lane) == 0);
    for (const OpId earlier : program.dependencies_of(op)) {
      if (earlier < id) continue;
      findings.add(Rule::order, id,
                   [&] { return fmt::format("waits for op {}, which comes later", earlier); });
    }
  }
}

/// What conflicts is ordered: by a lane, or by a dependency on that op or a later one of its lane.
void check_conflicts(const Program& program, Findings& findings) {
  const Fold& fold = program.fold;
  FoldedAccesses accesses(fold);
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    if (op.kind != OpKind::combine) continue;
    const auto is_ordered = [&](OpId earlier, int group) {
      const Op& before = program.ops[earlier];
      const auto on_lane_of = [&](const Op& other) {
        return other.at == before.at && other.lane == before.lane;
      };
      if (earlier == id) return false;
      if (group == 0 && on_lane_of(op)) return true;
      for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
        const OpId awaited = program.dependencies[i];
        if (fold.dependency_groups[i] == group && awaited >= earlier &&
            on_lane_of(program.ops[awaited])) {
          return true;
        }
      }
      return false;
    };
    const auto check = [&](OpId earlier, int group) {
      if (is_ordered(earlier, group)) return;
      findings.add(Rule::race, id, [&] {
        return fmt::format("may run at the same time as op {} of the group that is {} further on",
                           earlier, group);
      });
    };
    for (const Operand& source : program.sources_of(op)) {
      accesses.read(id, source, op.length, check);
    }
    for_each_destination(program, op,
                         [&](const Operand& dst) { accesses.write(id, dst, op.length, check); });
  }
}

}  // namespace

DataVerdict check_folded(const Program& program, Findings& findings) {
  check_order(program, findings);
  if (findings.any_up_to(Rule::operands)) return {};
  const auto check = [](const Program& checked, Findings& found) {
    check_conflicts(checked, found);
    return FoldedRun(checked, found).run();
  };
  if (const auto one = with_one_round(program)) {
    Findings of_one(*one, 1);
    const DataVerdict verdict = check(*one, of_one);
    if (of_one.take().empty()) return verdict;
    // What is wrong is said of the program's own ops.
  }
  return check(program, findings);
}

}  // namespace espalier

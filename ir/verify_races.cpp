// SPDX-License-Identifier: Apache-2.0
#include "ir/verify_races.h"

#include <fmt/format.h>

#include "core/interruption.h"
#include "ir/access_tracker.h"
#include "ir/print.h"
#include "ir/races.h"

namespace espalier {
namespace {

/// "reads r1.tmp[0:2] while op 3 may still write r1.tmp[1]".
std::string describe_race(const Program& program, OpId earlier, OpId later) {
  const Op& a = program.ops[earlier];
  const Op& b = program.ops[later];
  const auto sentence = [&](const char* does, const Operand& mine, const char* other_does,
                            const Operand& other) {
    return fmt::format("{} {}, which op {} {}{}, and nothing orders the two", does,
                       to_string(program, slice(mine, b.length)), earlier, other_does,
                       mine == other && a.length == b.length
                           ? std::string()
                           : " as " + to_string(program, slice(other, a.length)));
  };
  const auto meet = [&](const Operand& of_a, const Operand& of_b) {
    return overlap(slice(of_a, a.length), slice(of_b, b.length));
  };
  const auto destinations = [&](const Op& op) {
    std::vector<Operand> all;
    for_each_destination(program, op, [&](const Operand& dst) { all.push_back(dst); });
    return all;
  };
  for (const Operand& written : destinations(a)) {
    for (const Operand& dst : destinations(b)) {
      if (meet(written, dst)) return sentence("writes", dst, "writes", written);
    }
    for (const Operand& source : program.sources_of(b)) {
      if (meet(written, source)) return sentence("reads", source, "writes", written);
    }
  }
  for (const Operand& source : program.sources_of(a)) {
    for (const Operand& dst : destinations(b)) {
      if (meet(source, dst)) return sentence("writes", dst, "reads", source);
    }
  }
  return "races with op " + std::to_string(earlier);
}

}  // namespace

void check_races(const Program& program, const LaneChains& lanes, const std::vector<OpId>& order,
                 Findings& findings) {
  AccessTracker accesses;
  RaceChecker races(program, lanes, order, accesses);
  for (std::size_t turn = 0; turn < order.size(); ++turn) {
    check_interruption_at(turn);
    const OpId id = order[turn];
    const Op& op = program.ops[id];
    races.visit(id);
    if (op.kind != OpKind::combine) continue;
    // Asking for consecutive accesses of a unit is enough. If each write is ordered after the write
    // before it and the reads in between, and each read after the write before it, then by
    // induction all of a unit's conflicting accesses are, since "happens before" is transitive; and
    // a pair that is not ordered is a race by itself.
    // For the same reason it is enough to remember the last one of readers that are in order.
    const auto conflict = [&](const auto& earlier) { races.require(earlier, id); };
    const auto follows = [&](OpId reader) { return races.surely_before(reader, id); };
    for (const Operand& source : program.sources_of(op)) {
      accesses.read(id, source, op.length, conflict, follows);
    }
    for_each_destination(program, op,
                         [&](const Operand& dst) { accesses.write(id, dst, op.length, conflict); });
  }
  races.unordered([&](OpId earlier, OpId later) {
    findings.add(
        Rule::race, later, [&] { return describe_race(program, earlier, later); },
        [&] { return fmt::format("let op {} wait for op {}", later, earlier); });
  });
}

}  // namespace espalier

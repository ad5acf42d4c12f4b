// SPDX-License-Identifier: Apache-2.0
// Runs a program on hashes of contributions: R5 (undefined data) and R6 (races).
#include <fmt/format.h>

#include <algorithm>

#include "ir/access_tracker.h"
#include "ir/hash.h"
#include "ir/races.h"
#include "ir/verify_steps.h"

namespace espalier {
namespace {

/// The smallest hash that is no special value of CellValue::expression.
constexpr std::uint64_t kFirstHash = 2;

/// As many bits as CellValue keeps.
std::uint64_t expression_hash(std::uint64_t value) {
  const std::uint64_t hash = mix64(value) >> CellValue::kCountBits;
  return hash < kFirstHash ? hash + kFirstHash : hash;
}

/// a (+) b. The hash of a + b is symmetric and, as mix64 is not linear, not associative.
CellValue combined(const CellValue& a, const CellValue& b) {
  const bool defined = a.expression >= kFirstHash && b.expression >= kFirstHash;
  const std::uint64_t count = std::uint64_t{a.count} + b.count;
  return {
      a.inputs + b.inputs, std::min(count, CellValue::kManyInputs),
      defined ? expression_hash(std::uint64_t{a.expression} + b.expression) : CellValue::kTainted};
}

/// Walks the run order once.
class HashedRun {
 public:
  HashedRun(const Program& program, const CellMap& cells, Findings& findings)
      : program_(program), cells_(cells), findings_(findings), values_(cells.count()) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const Region input = input_region(program.contract, rank);
      if (input.units == 0) continue;
      const std::uint64_t first =
          cells.first({rank, static_cast<std::uint32_t>(input.begin), input.buffer});
      const std::uint64_t count = cells.cells_of(input.units);
      for (std::uint64_t i = 0; i < count; ++i) values_[first + i] = input_value(rank, i);
    }
  }

  void run(OpId id) {
    const Op& op = program_.ops[id];
    const std::uint64_t length = cells_.length(op);
    const std::uint64_t dst = cells_.first(op.dst);
    const auto sources = program_.sources_of(op);
    bool undefined = false;
    firsts_.clear();
    for (const Operand& source : sources) firsts_.push_back(cells_.first(source));
    for (std::uint64_t i = 0; i < length; ++i) {
      CellValue value = values_[firsts_[0] + i];
      undefined = undefined || value.expression == CellValue::kUndefined;
      if (value.expression == CellValue::kUndefined) value.expression = CellValue::kTainted;
      for (std::size_t s = 1; s < firsts_.size(); ++s) {
        const CellValue& next = values_[firsts_[s] + i];
        undefined = undefined || next.expression == CellValue::kUndefined;
        value = combined(value, next);
      }
      if (undefined && !reported_) report_undefined(id, op, i);
      values_[dst + i] = value;
    }
    reported_ = false;
  }

  std::vector<CellValue> take() { return std::move(values_); }

 private:
  /// Names the first undefined stretch of the sources. \pre cells before `cell` were defined;
  /// nothing from `cell` on has been written yet.
  void report_undefined(OpId id, const Op& op, std::uint64_t cell) {
    reported_ = true;
    const auto undefined = [&](std::size_t s, std::uint64_t i) {
      return values_[firsts_[s] + i].expression == CellValue::kUndefined;
    };
    std::size_t source = 0;
    while (!undefined(source, cell)) ++source;
    std::uint64_t end = cell + 1;
    while (end < cells_.length(op) && undefined(source, end)) ++end;
    findings_.add(Rule::undefined, id, [&] {
      const Operand& operand = program_.sources_of(op)[source];
      const std::uint64_t first = cells_.cells_of(operand.begin);
      const std::int64_t begin = cells_.unit_of(first + cell);
      const Slice part{operand.place, operand.buffer, begin, cells_.unit_of(first + end) - begin};
      return fmt::format("reads {}, which nothing has written", to_string(program_, part));
    });
  }

  const Program& program_;
  const CellMap& cells_;
  Findings& findings_;
  std::vector<CellValue> values_;
  std::vector<std::uint64_t> firsts_;  ///< first cell of every source of the op
  bool reported_ = false;              ///< undefined data of this op
};

bool overlap(const Operand& a, std::uint32_t a_length, const Operand& b, std::uint32_t b_length) {
  return a.place == b.place && a.buffer == b.buffer &&
         std::uint64_t{a.begin} < std::uint64_t{b.begin} + b_length &&
         std::uint64_t{b.begin} < std::uint64_t{a.begin} + a_length;
}

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
  if (overlap(a.dst, a.length, b.dst, b.length)) return sentence("writes", b.dst, "writes", a.dst);
  for (const Operand& source : program.sources_of(b)) {
    if (overlap(a.dst, a.length, source, b.length)) {
      return sentence("reads", source, "writes", a.dst);
    }
  }
  for (const Operand& source : program.sources_of(a)) {
    if (overlap(source, a.length, b.dst, b.length))
      return sentence("writes", b.dst, "reads", source);
  }
  return "races with op " + std::to_string(earlier);
}

}  // namespace

CellValue input_value(int rank, std::uint64_t cell) {
  // Cells of one rank are fewer than 2^32, so every input cell gets a weight of its own.
  const std::uint64_t weight = mix64((static_cast<std::uint64_t>(rank) << 32) + cell);
  return {weight, 1, expression_hash(weight)};
}

std::vector<CellValue> run_hashed(const Program& program, const CellMap& cells,
                                  const LaneChains& lanes, const std::vector<OpId>& order,
                                  Findings& findings) {
  HashedRun run(program, cells, findings);
  AccessTracker accesses;
  RaceChecker races(program, lanes, order);
  for (const OpId id : order) {
    const Op& op = program.ops[id];
    races.visit(id);
    if (op.kind != OpKind::combine) continue;
    // Asking for consecutive accesses of a unit is enough. If each write is ordered after the write
    // before it and the reads in between, and each read after the write before it, then by
    // induction all of a unit's conflicting accesses are, since "happens before" is transitive; and
    // a pair that is not ordered is a race by itself.
    const auto conflict = [&](OpId earlier) { races.require(earlier, id); };
    for (const Operand& source : program.sources_of(op)) {
      accesses.read(id, source, op.length, conflict);
    }
    accesses.write(id, op.dst, op.length, conflict);
    run.run(id);
  }
  for (const auto& [earlier, later] : races.unordered()) {
    findings.add(
        Rule::race, later, [&, a = earlier, b = later] { return describe_race(program, a, b); },
        fmt::format("let op {} wait for op {}", later, earlier));
  }
  return run.take();
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What every cell holds in the end, by walking the ops once in an order that can run: R5 (undefined
// data), R7 (results) and R9 (one order of combining). ExactValues or HashedValues say what a cell
// holds.
#include "ir/verify_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/interruption.h"
#include "ir/exact_values.h"
#include "ir/explain_results.h"
#include "ir/hashed_values.h"
#include "ir/print.h"

namespace espalier {
namespace {

/// The first undefined stretch of an op's sources: cells [begin, end) of the source.
struct UndefinedRead {
  OpId op;
  std::uint32_t source;
  std::uint64_t begin;
  std::uint64_t end;
};

/// Walks the run order once.
template <class Values>
class Flow {
 public:
  using Value = typename Values::Value;

  Flow(const Program& program, const CellMap& cells, Values& values)
      : program_(program), cells_(cells), values_(values), held_(cells.count()) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const Region input = input_region(program.contract, rank);
      if (input.units == 0) continue;
      const std::uint64_t first =
          cells.first({rank, static_cast<std::uint32_t>(input.begin), input.buffer});
      const std::uint64_t count = cells.cells_of(input.units);
      for (std::uint64_t i = 0; i < count; ++i) held_[first + i] = values.input(rank, i);
    }
  }

  void run(OpId id) {
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::combine) return;
    const std::uint64_t length = cells_.length(op);
    firsts_.clear();
    for (const Operand& source : program_.sources_of(op)) firsts_.push_back(cells_.first(source));
    written_.clear();
    for_each_destination(program_, op,
                         [&](const Operand& dst) { written_.push_back(cells_.first(dst)); });
    if (firsts_.size() == 1 && written_.size() == 1) return copy(id, length);
    bool reported = false;
    for (std::uint64_t i = 0; i < length; ++i) {
      Value value = held_[firsts_[0] + i];
      bool undefined = Values::is_undefined(value);
      bool tainted = undefined || Values::is_tainted(value);
      for (std::size_t s = 1; s < firsts_.size(); ++s) {
        const Value& next = held_[firsts_[s] + i];
        undefined = undefined || Values::is_undefined(next);
        tainted = tainted || undefined || Values::is_tainted(next);
        if (!tainted) value = values_.combined(value, next);
      }
      if (undefined && !reported) {
        undefined_.push_back(undefined_read(id, i));
        reported = true;
      }
      if (op.in_switch && op.src_count > 1 && !tainted)
        value = values_.combined_in_switch(value, id);
      for (const std::uint64_t dst : written_) {
        held_[dst + i] = tainted ? Values::tainted() : value;
      }
    }
  }

  const Value& held(std::uint64_t cell) const { return held_[cell]; }
  const std::vector<UndefinedRead>& undefined_reads() const { return undefined_; }

 private:
  /// Most ops, and the longest.
  void copy(OpId id, std::uint64_t length) {
    const Value* const source = held_.data() + firsts_[0];
    Value* const target = held_.data() + written_[0];
    bool reported = false;
    for (std::uint64_t i = 0; i < length; ++i) {
      const bool undefined = Values::is_undefined(source[i]);
      if (undefined && !reported) {
        undefined_.push_back(undefined_read(id, i));
        reported = true;
      }
      target[i] = undefined ? Values::tainted() : source[i];
    }
  }

  /// \pre cells before `cell` were defined; nothing from `cell` on has been written yet.
  UndefinedRead undefined_read(OpId id, std::uint64_t cell) const {
    const auto undefined = [&](std::uint32_t s, std::uint64_t i) {
      return Values::is_undefined(held_[firsts_[s] + i]);
    };
    std::uint32_t source = 0;
    while (!undefined(source, cell)) ++source;
    std::uint64_t end = cell + 1;
    while (end < cells_.length(program_.ops[id]) && undefined(source, end)) ++end;
    return {id, source, cell, end};
  }

  const Program& program_;
  const CellMap& cells_;
  Values& values_;
  std::vector<Value> held_;             ///< by cell
  std::vector<std::uint64_t> firsts_;   ///< first cell of every source of the op
  std::vector<std::uint64_t> written_;  ///< and of every destination
  std::vector<UndefinedRead> undefined_;
};

/// Compares all results with what they should be. Data made from undefined units has been reported
/// where it was read.
template <class Values>
std::vector<WrongResult> find_wrong(const Program& program, const CellMap& cells,
                                    const Flow<Values>& flow, Values& values) {
  std::vector<WrongResult> all;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    check_interruption();
    const Region region = output_region(program.contract, rank);
    if (region.units == 0) continue;
    const std::uint64_t first =
        cells.first({rank, static_cast<std::uint32_t>(region.begin), region.buffer});
    for (std::uint64_t i = 0; i < cells.cells_of(region.units); ++i) {
      const auto& value = flow.held(first + i);
      if (Values::is_tainted(value)) continue;
      const Origin origin = origin_of(program.contract, rank, cells.unit_of(i));
      const std::uint64_t origin_cell = cells.cells_of(origin.unit);
      const bool written = !Values::is_undefined(value);
      if (written && values.holds(value, origin.rank, origin_cell)) continue;
      all.push_back({rank, first + i, i, origin.rank, origin_cell, written});
    }
  }
  return all;
}

/// R9. Only an allreduce gives the same reduced unit to several ranks by computing it; copies of
/// one result have its expression.
template <class Values>
bool same_order_everywhere(const Program& program, const CellMap& cells, const Flow<Values>& flow) {
  if (program.contract.collective != Collective::allreduce) return true;
  const auto first = [&](int rank) {
    const Region region = output_region(program.contract, rank);
    return cells.first({rank, static_cast<std::uint32_t>(region.begin), region.buffer});
  };
  const std::uint64_t count = cells.cells_of(program.contract.units);
  for (int rank = 1; rank < program.ranks(); ++rank) {
    check_interruption();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!Values::same_expression(flow.held(first(0) + i), flow.held(first(rank) + i))) {
        return false;
      }
    }
  }
  return true;
}

void report(const Program& program, const CellMap& cells, const UndefinedRead& read,
            Findings& findings) {
  findings.add(Rule::undefined, read.op, [&] {
    const Operand& operand = program.sources_of(program.ops[read.op])[read.source];
    const std::uint64_t first = cells.cells_of(operand.begin);
    const std::int64_t begin = cells.unit_of(first + read.begin);
    const Slice part{operand.place, operand.buffer, begin, cells.unit_of(first + read.end) - begin};
    return fmt::format("reads {}, which nothing has written", to_string(program, part));
  });
}

/// Whether results agree in order (R9); nothing, and no finding, when there are too many values.
template <class Values>
std::optional<bool> check_with(Values values, const Program& program, const CellMap& cells,
                               const std::vector<OpId>& order, Findings& findings) {
  Flow<Values> flow(program, cells, values);
  for (std::size_t turn = 0; turn < order.size(); ++turn) {
    check_interruption_at(turn);
    flow.run(order[turn]);
    if (values.exhausted()) return std::nullopt;
  }
  const std::vector<WrongResult> wrong = find_wrong(program, cells, flow, values);
  if (values.exhausted()) return std::nullopt;
  for (const UndefinedRead& read : flow.undefined_reads()) report(program, cells, read, findings);
  explain_results(program, cells, order, wrong, findings);
  return !wrong.empty() || same_order_everywhere(program, cells, flow);
}

}  // namespace

DataVerdict check_data(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
                       const VerifyOptions& options, Findings& findings,
                       const ExactLimits& exact_limits) {
  if (options.comparison != ResultComparison::random) {
    const bool asked_for = options.comparison == ResultComparison::exact;
    const ExactValues::Limits& limits = asked_for ? exact_limits.largest : exact_limits.moderate;
    const std::optional<bool> consistent =
        check_with(ExactValues(program, limits), program, cells, order, findings);
    if (consistent) return {*consistent, Proof::exact};
    if (asked_for) {
      findings.add_general(
          Rule::limit,
          [&] {
            return fmt::format(
                "the program is too large to be verified exactly: its results are made in more "
                "than {} different combinations, or looking through them takes more than {} steps",
                limits.combinations, limits.inputs_looked_at);
          },
          "unless asked for exactness, results of large programs are compared by random sums");
      return {};
    }
  }
  const std::uint64_t seed = options.seed ? *options.seed : process_seed();
  HashedValues values(program, cells, seed);
  return {check_with(std::move(values), program, cells, order, findings).value_or(true),
          Proof::probabilistic};
}

}  // namespace espalier

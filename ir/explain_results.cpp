// SPDX-License-Identifier: Apache-2.0
// A wrong result is explained from the exact contributions of the unit, walked back from the op
// that wrote it.
#include "ir/explain_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/interruption.h"
#include "ir/op_order.h"
#include "ir/print.h"

namespace espalier {
namespace {

constexpr OpId kNoOp = LaneChains::kNone;

/// A cell of a rank's input and how often it went into a value.
struct Contribution {
  int rank = 0;
  std::uint64_t cell = 0;  ///< counted from the start of the input region
  std::uint32_t times = 1;

  bool same_input(const Contribution& other) const {
    return rank == other.rank && cell == other.cell;
  }
  bool before(const Contribution& other) const {
    return rank != other.rank ? rank < other.rank : cell < other.cell;
  }
};
using Contributions = std::vector<Contribution>;  // sorted

/// Counting stops here.
constexpr std::uint32_t kManyTimes = ~std::uint32_t{0};

std::uint32_t saturating_sum(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sum = a + b;
  return sum < a ? kManyTimes : sum;
}

Contributions merged(const Contributions& a, const Contributions& b) {
  Contributions result;
  result.reserve(a.size() + b.size());
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    if (y == b.end() || (x != a.end() && x->before(*y))) {
      result.push_back(*x++);
    } else if (x == a.end() || y->before(*x)) {
      result.push_back(*y++);
    } else {
      result.push_back({x->rank, x->cell, saturating_sum(x->times, y->times)});
      ++x, ++y;
    }
  }
  return result;
}

/// Where the final values of a few cells came from.
class Provenance {
 public:
  Provenance(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
             const std::vector<std::uint64_t>& wanted)
      : program_(program), cells_(cells) {
    find_steps(order, wanted);
    replay();
  }

  /// Nothing when finding out would take too long.
  std::optional<Contributions> of(std::uint64_t cell) {
    if (given_up_) return std::nullopt;
    return values_[cell];
  }
  /// The op that wrote the cell last, or kNoOp.
  OpId last_writer(std::uint64_t cell) const {
    const auto found = last_writer_.find(cell);
    return found == last_writer_.end() ? kNoOp : found->second;
  }

 private:
  /// Contributions that may be copied before giving up: some seconds and 1 GiB.
  static constexpr std::uint64_t kBudget = std::uint64_t{1} << 26;

  struct Step {
    OpId op;
    std::uint64_t offset;  ///< cells from the start of the operands
  };

  /// The writes of single cells that the wanted ones depend on, latest first; the inputs among the
  /// cells that are needed before any write.
  void find_steps(const std::vector<OpId>& order, const std::vector<std::uint64_t>& wanted) {
    std::vector<bool> needed(cells_.count(), false);
    for (const std::uint64_t cell : wanted) needed[cell] = true;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      check_interruption_at(*id);
      const Op& op = program_.ops[*id];
      if (op.kind != OpKind::combine) continue;
      std::vector<std::uint64_t> firsts;
      for_each_destination(program_, op,
                           [&](const Operand& dst) { firsts.push_back(cells_.first(dst)); });
      const std::uint64_t length = cells_.length(op);
      for (std::uint64_t i = 0; i < length; ++i) {
        bool is_needed = false;
        for (const std::uint64_t dst : firsts) {
          if (!needed[dst + i]) continue;
          last_writer_.try_emplace(dst + i, *id);
          needed[dst + i] = false;
          is_needed = true;
        }
        if (!is_needed) continue;
        for (const Operand& source : program_.sources_of(op)) {
          needed[cells_.first(source) + i] = true;
        }
        steps_.push_back({*id, i});
      }
    }
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      const Region input = input_region(program_.contract, rank);
      if (input.units == 0) continue;
      const std::uint64_t first =
          cells_.first({rank, static_cast<std::uint32_t>(input.begin), input.buffer});
      for (std::uint64_t i = 0; i < cells_.cells_of(input.units); ++i) {
        if (needed[first + i]) values_[first + i] = {{rank, i}};
      }
    }
  }

  void replay() {
    std::uint64_t copied = 0;
    for (auto step = steps_.rbegin(); step != steps_.rend() && !given_up_; ++step) {
      const Op& op = program_.ops[step->op];
      Contributions value;
      for (const Operand& source : program_.sources_of(op)) {
        value = merged(value, values_[cells_.first(source) + step->offset]);
        copied += value.size();
      }
      for_each_destination(program_, op, [&](const Operand& dst) {
        values_[cells_.first(dst) + step->offset] = value;
      });
      check_interruption();
      given_up_ = copied > kBudget;
    }
  }

  const Program& program_;
  const CellMap& cells_;
  std::vector<Step> steps_;
  std::unordered_map<std::uint64_t, OpId> last_writer_;
  std::unordered_map<std::uint64_t, Contributions> values_;
  bool given_up_ = false;
};

/// Makes the sentences.
class Explainer {
 public:
  Explainer(const Program& program, const CellMap& cells, Provenance& provenance)
      : program_(program), cells_(cells), provenance_(provenance) {}

  /// Located at the op that last wrote the unit.
  Diagnostic explain(const WrongResult& wrong) {
    const Region region = output_region(program_.contract, wrong.rank);
    const std::int64_t begin = cells_.unit_of(wrong.result_cell);
    const std::int64_t length = cells_.unit_of(wrong.result_cell + 1) - begin;
    const Slice slice{wrong.rank, region.buffer, region.begin + begin, length};
    const OpId op = provenance_.last_writer(wrong.cell);
    std::string writer;
    if (wrong.written) {
      writer = op != kNoOp ? fmt::format(", last written by op {}", op) : ", which no op writes";
    }
    const int line = op < program_.lines.size() ? program_.lines[op] : 0;
    return {{},
            fmt::format("rank {}'s result {} ({}{}) {}", wrong.rank, units(wrong.result_cell),
                        to_string(program_, slice), writer, complaint(wrong)),
            {},
            {{}, line, 0}};
  }

 private:
  static constexpr std::size_t kMaxNamed = 4;

  /// "unit 3" or "units 3 to 5".
  std::string units(std::uint64_t cell) const {
    const std::int64_t first = cells_.unit_of(cell);
    const std::int64_t last = cells_.unit_of(cell + 1) - 1;
    return first == last ? fmt::format("unit {}", first)
                         : fmt::format("units {} to {}", first, last);
  }

  std::string input(const Contribution& contribution) const {
    return fmt::format("{} of rank {}", units(contribution.cell), contribution.rank);
  }

  std::string complaint(const WrongResult& wrong) {
    const bool many = cells_.unit_of(wrong.result_cell + 1) - cells_.unit_of(wrong.result_cell) > 1;
    if (!wrong.written) return many ? "are never written" : "is never written";
    const std::optional<Contributions> found = provenance_.of(wrong.cell);
    if (!found) return many ? "are not the inputs they should be" : "is not the input it should be";

    const Contribution expected{wrong.origin_rank, wrong.origin_cell};
    std::vector<int> missing;
    Contributions repeated;
    Contributions foreign;
    sort_out(*found, expected, missing, repeated, foreign);
    const bool reduced = expected.rank < 0;
    if (!reduced && found->size() == 1 && foreign.size() == 1 && foreign[0].times == 1) {
      return fmt::format("{} {} instead of {}", many ? "hold" : "holds", input(foreign[0]),
                         input(expected));
    }
    const char* contains = many ? "contain" : "contains";
    std::vector<std::string> parts;
    if (!missing.empty()) {
      parts.push_back((many ? "lack " : "lacks ") +
                      (reduced ? "the input of " + ranks(missing) : input(expected)));
    }
    for (const Contribution& one : repeated) {
      parts.push_back(fmt::format(
          "{} {} {}", contains,
          reduced ? fmt::format("the input of rank {}", one.rank) : input(one), times(one.times)));
    }
    for (const Contribution& one : foreign) {
      parts.push_back(fmt::format("{} {}, which does not belong there", contains, input(one)));
    }
    return joined(parts);
  }

  static std::string times(std::uint32_t count) {
    if (count == 2) return "twice";
    return fmt::format("{} times{}", count, count == kManyTimes ? " or more" : "");
  }

  void sort_out(const Contributions& found, const Contribution& expected, std::vector<int>& missing,
                Contributions& repeated, Contributions& foreign) const {
    const bool reduced = expected.rank < 0;
    const int first = reduced ? 0 : expected.rank;
    const int last = reduced ? program_.ranks() - 1 : expected.rank;
    for (const Contribution& one : found) {
      const bool belongs = one.cell == expected.cell && one.rank >= first && one.rank <= last;
      if (!belongs) foreign.push_back(one);
      if (belongs && one.times > 1) repeated.push_back(one);
    }
    for (int rank = first; rank <= last; ++rank) {
      const Contribution wanted{rank, expected.cell};
      const auto at = std::lower_bound(
          found.begin(), found.end(), wanted,
          [](const Contribution& a, const Contribution& b) { return a.before(b); });
      if (at == found.end() || !at->same_input(wanted)) missing.push_back(rank);
    }
  }

  /// "rank 1" or "ranks 1, 2, 3, 4 and 7 more".
  static std::string ranks(const std::vector<int>& all) {
    if (all.size() == 1) return fmt::format("rank {}", all[0]);
    const std::size_t named = all.size() > kMaxNamed + 1 ? kMaxNamed : all.size() - 1;
    std::string text = fmt::format("ranks {}", all[0]);
    for (std::size_t i = 1; i < named; ++i) text += fmt::format(", {}", all[i]);
    return text + (named + 1 == all.size() ? fmt::format(" and {}", all.back())
                                           : fmt::format(" and {} more", all.size() - named));
  }

  static std::string joined(const std::vector<std::string>& parts) {
    std::string text;
    for (std::size_t i = 0; i < parts.size() && i < kMaxNamed; ++i) {
      text += (i == 0 ? "" : " and ") + parts[i];
    }
    if (parts.size() > kMaxNamed) text += ", among other faults";
    return text;
  }

  const Program& program_;
  const CellMap& cells_;
  Provenance& provenance_;
};

}  // namespace

void explain_results(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
                     const std::vector<WrongResult>& wrong, Findings& findings) {
  if (wrong.empty()) return;
  std::vector<std::uint64_t> explained;
  for (const WrongResult& one : wrong) {
    if (explained.size() < findings.max_per_rule()) explained.push_back(one.cell);
  }
  Provenance provenance(program, cells, order, explained);
  Explainer explainer(program, cells, provenance);
  for (const WrongResult& one : wrong) {
    findings.add_diagnostic(Rule::result, [&] { return explainer.explain(one); });
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/format.h>

#include "ir/op_order.h"
#include "ir/verify_steps.h"

namespace espalier {
namespace {

/// 1 GiB of cell values.
constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 26;

/// Each step needs the rules of the steps before it. Returns whether results agree in order (R9).
bool check_all(const Program& program, Findings& findings) {
  if (!check_contract(program, findings)) return true;
  check_ops(program, findings);
  if (findings.any(Rule::structure) || findings.any(Rule::order)) return true;

  const LaneChains lanes = lane_chains(program);
  const std::vector<OpId> order = run_order(program, lanes);
  const std::vector<OpId> cycle = find_cycle(program, lanes, order);
  if (!cycle.empty()) {
    findings.add(
        Rule::order, cycle.front(),
        [&] { return "can never run: " + describe_cycle(program, lanes, cycle); },
        "drop one of these dependencies, or use another lane");
  }
  if (findings.any_up_to(Rule::operands)) return true;

  const CellMap cells(program);
  if (cells.count() > kMaxCells) {
    findings.add_general(
        Rule::limit,
        [&] {
          return fmt::format(
              "the program is too large to verify: its buffers have {} separate parts, "
              "and {} are the limit",
              cells.count(), kMaxCells);
        },
        "fewer units, or scratch that begins at tmp[0]");
    return true;
  }
  const std::vector<CellValue> values = run_hashed(program, cells, lanes, order, findings);
  return check_results(program, cells, order, values, findings);
}

}  // namespace

bool Findings::any_up_to(Rule last) const {
  for (std::size_t rule = 1; rule <= static_cast<std::size_t>(last); ++rule) {
    if (kinds_[rule].count > 0) return true;
  }
  return false;
}

std::vector<Diagnostic> Findings::take() {
  std::vector<Diagnostic> all;
  for (std::size_t rule = 0; rule < kinds_.size(); ++rule) {
    Kind& kind = kinds_[rule];
    const bool is_limit = rule == static_cast<std::size_t>(Rule::limit);
    for (Kept& kept : kind.kept) {
      all.push_back(std::move(kept.diagnostic));
      all.back().rule = is_limit ? "limit" : fmt::format("R{}", rule);
    }
    if (kind.count > kind.kept.size()) {
      all.back().message += fmt::format(" (and {} more)", kind.count - kind.kept.size());
    }
    kind = {};
  }
  return all;
}

Verification verify(const Program& program, const VerifyOptions& options) {
  Findings findings(program, options.max_per_rule);
  Verification verification;
  verification.order_consistent = check_all(program, findings);
  verification.problems = findings.take();
  return verification;
}

}  // namespace espalier

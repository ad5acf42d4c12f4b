// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <fmt/format.h>

#include "ir/cell_map.h"
#include "ir/findings.h"
#include "ir/op_order.h"
#include "ir/verify_data.h"
#include "ir/verify_folded.h"
#include "ir/verify_races.h"
#include "ir/verify_structure.h"

namespace espalier {
namespace {

/// 1 GiB of cell values (HashedValues::Value).
constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 26;

/// Each step needs the rules of the steps before it.
DataVerdict check_all(const Program& program, const VerifyOptions& options, Findings& findings) {
  if (!check_contract(program, findings)) return {};
  const std::int64_t block = options.equal_units ? 1 : block_units(program.contract);
  check_ops(program, block, findings);
  if (findings.any(Rule::structure) || findings.any(Rule::order)) return {};
  if (program.fold.is_folded()) return check_folded(program, findings);

  const LaneChains lanes = lane_chains(program);
  const std::vector<OpId> order = run_order(program, lanes);
  const std::vector<OpId> cycle = find_cycle(program, lanes, order);
  if (!cycle.empty()) {
    findings.add(
        Rule::order, cycle.front(),
        [&] { return "can never run: " + describe_cycle(program, lanes, cycle); },
        "remove one of these dependencies, or use another lane");
  }
  if (findings.any_up_to(Rule::operands)) return {};

  const CellMap cells(program, block);
  if (cells.count() > kMaxCells) {
    findings.add_general(
        Rule::limit,
        [&] {
          return fmt::format(
              "the program is too large to verify: its buffers have {} separate parts, "
              "and the limit is {}",
              cells.count(), kMaxCells);
        },
        "use fewer units, or scratch that begins at tmp[0]");
    return {};
  }
  check_races(program, lanes, order, findings);
  return check_data(program, cells, order, options, findings);
}

}  // namespace

Verification verify(const Program& program, const VerifyOptions& options) {
  Findings findings(program, options.max_per_rule);
  const DataVerdict data = check_all(program, options, findings);
  const bool in_switch = std::ranges::any_of(
      program.ops, [](const Op& op) { return op.in_switch && op.src_count > 1; });
  return {findings.take(), data.order_consistent, in_switch, data.proof};
}

}  // namespace espalier

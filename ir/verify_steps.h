// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/cell_map.h"
#include "ir/findings.h"
#include "ir/op_order.h"
#include "ir/program.h"

// The steps of `verify`, in the order they are taken. Private to this room.
namespace espalier {

/// R1 for the contract and the places. The other steps need it to hold.
bool check_contract(const Program& program, Findings& findings);

/// R1, R2, R4, R8 and the names of dependencies (R3), op by op.
void check_ops(const Program& program, Findings& findings);

/// What a cell holds. 16 bytes, since there may be millions.
///
/// `inputs` is the sum, modulo 2^64, of a random weight per input cell that went into it: linear,
/// so the order of combining does not matter. `count` says how many went into it, those that went
/// in several times as often as they did; without it an input that went in 2^64 times would be
/// invisible. Two different multisets of n inputs have equal sums with probability of at most about
/// n 2^-64: their multiplicities differ by at most n, and a difference that is an odd multiple of
/// 2^k, 2^k <= n, leaves 64 - k random bits.
///
/// `expression` hashes how the cell was combined: symmetric in the two sides of (+), which is
/// commutative in every type, but not associative.
struct CellValue {
  static constexpr int kCountBits = 24;
  /// Counts stop here; no contract asks for as many (kMaxPlaces).
  static constexpr std::uint64_t kManyInputs = (std::uint64_t{1} << kCountBits) - 1;
  /// Values of `expression` with a meaning of their own; hashes avoid them.
  static constexpr std::uint64_t kUndefined = 0;
  static constexpr std::uint64_t kTainted = 1;  ///< made from undefined data; reported there

  std::uint64_t inputs = 0;
  std::uint64_t count : kCountBits = 0;
  std::uint64_t expression : 64 - kCountBits = kUndefined;
};
static_assert(sizeof(CellValue) == 16 && kMaxPlaces < CellValue::kManyInputs);

/// The value of cell `cell` of `rank`'s input region.
CellValue input_value(int rank, std::uint64_t cell);

/// Runs the program on hashes in the order given: R5 and R6. Returns the final cells.
std::vector<CellValue> run_hashed(const Program& program, const CellMap& cells,
                                  const LaneChains& lanes, const std::vector<OpId>& order,
                                  Findings& findings);

/// R7. Returns whether every rank's result was combined in the same order (R9).
bool check_results(const Program& program, const CellMap& cells, const std::vector<OpId>& order,
                   const std::vector<CellValue>& values, Findings& findings);

}  // namespace espalier

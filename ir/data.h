// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/words.h"
#include "ir/collective.h"
#include "ir/data_type.h"

namespace espalier {

/// nccl-tests names: float, double, half, bfloat16, int32, int64, uint8; sum, prod, min, max.
std::string_view to_string(DataType type);
std::string_view to_string(ReduceOp op);
std::optional<DataType> parse_data_type(std::string_view name);
std::optional<ReduceOp> parse_reduce_op(std::string_view name);
std::span<const DataType> all_data_types();
std::span<const ReduceOp> all_reduce_ops();
/// What other programs call the types and operators: "fp16", "product".
const Synonyms& data_type_synonyms();
const Synonyms& reduce_op_synonyms();
std::size_t size_of(DataType type);

/// dst = dst (+) src on one element, rounded to the type after the operation; integers wrap.
void combine_element(DataType type, ReduceOp op, std::byte* dst, const std::byte* src);

/// Inputs whose combination over `ranks` ranks is exact in `type` in any order (idea: nccl-tests
/// verifiable/): small integers, for prod mostly ones and a few twos, so that neither rounding
/// nor overflow can hide or fake an error. Writes `count` elements from element `first` of rank's
/// input.
void fill_input(DataType type, ReduceOp op, int ranks, int rank, std::int64_t first,
                std::span<std::byte> out);

/// What every element of `rank`'s result must be, from the contract and fill_input alone. Fills the
/// units [unit_begin, unit_begin + units) of the output region.
void expected_output(DataType type, ReduceOp op, const Contract& contract,
                     const ElementLayout& layout, int rank, std::int64_t unit_begin,
                     std::int64_t units, std::span<std::byte> out);

/// The same elements as tables, for code that makes and compares them on a device.
///
/// Element `e` of an input is the entry pattern_position(e) (ir/pattern.h) of its rank's table, and
/// of the combination of all inputs, of the table for `rank` -1. kPatternPeriod elements of `type`.
std::vector<std::byte> pattern_table(DataType type, ReduceOp op, int ranks, int rank);

/// A stretch of a result that continues in one input, or in the combination of all of them.
struct ResultRun {
  std::int64_t first = 0;  ///< element, counted from the start of the output region
  std::int64_t count = 0;
  int origin = -1;           ///< rank, or -1: all combined
  std::int64_t element = 0;  ///< that `first` is of the input
};

/// The output region of a rank as few runs, in order.
std::vector<ResultRun> result_runs(const Contract& contract, const ElementLayout& layout, int rank);

}  // namespace espalier

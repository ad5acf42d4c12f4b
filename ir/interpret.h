// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/data.h"
#include "ir/program.h"

namespace espalier {

/// The memory of a run: bytes of every place's three buffers, index [place][buffer].
struct Memory {
  std::vector<std::array<std::vector<std::byte>, 3>> places;
};

/// Buffers of the program's sizes for `elements` elements, inputs written by fill_input, everything
/// else 0xA5 bytes.
Memory initial_memory(const Program& program, DataType type, ReduceOp op, std::int64_t elements);

/// Runs the ops in an order that dependencies and lanes allow (the lowest op number that can run),
/// one element after the other: slow and obvious, the oracle for every back end.
/// Throws Error{input} when the program can't finish. \pre rules R1..R4 hold.
void interpret(const Program& program, DataType type, ReduceOp op, std::int64_t elements,
               Memory& memory);

/// Elements of results that differ from expected_output, over all ranks.
std::int64_t count_wrong(const Program& program, DataType type, ReduceOp op, std::int64_t elements,
                         const Memory& memory);

}  // namespace espalier

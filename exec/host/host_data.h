// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/damage.h"
#include "exec/host/host_memory.h"
#include "exec/host/lane_runner.h"
#include "exec/lanes/lowering.h"
#include "ir/data.h"
#include "ir/program.h"

namespace espalier {

/// What a run works on: which program on which elements.
struct HostData {
  const Program& program;
  ElementLayout layout;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  int threads = 1;                    ///< that fill and check at a time
  std::optional<int> only_rank = {};  ///< the one whose buffers are here, where not all ranks' are

  int first_rank() const { return only_rank.value_or(0); }
  int end_rank() const { return only_rank ? *only_rank + 1 : program.ranks(); }
};

/// Buffers as `initial_memory` of ir/interpret.h makes them: inputs filled, everything else
/// unwritten.
void fill_memory(const HostData& data, HostMemory& memory);

/// Inputs filled again, everything else left as it is.
void fill_inputs(const HostData& data, HostMemory& memory);

/// How LaneRunner carries out the ops of the program on this memory. The arguments must outlive it.
LaneRunner::Combine combine_on(const HostData& data, const LanePrograms& lowered,
                               const HostMemory& memory);

/// Bytes that `check_memory` allocates at a time.
double check_scratch_bytes(const HostData& data);

/// Compares every element of the result of every rank that is here with expected_output, inputs of
/// out-of-place runs with what they were, and guards.
Damage check_memory(const HostData& data, const HostMemory& memory);

}  // namespace espalier

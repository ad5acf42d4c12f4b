// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "formats/mscclpp_plan.h"

namespace espalier {

/// Units [begin, begin + length of the move) of a buffer of a rank.
struct MscclppOperand {
  int rank = 0;
  MscclppPlan::Buffer buffer = MscclppPlan::Buffer::input;
  std::int64_t begin = 0;
};

/// One data movement of a plan: a combine of sources into a target, or in a switch into several.
struct MscclppMove {
  MscclppOpPlace place;  ///< the op that does it; its thread block is the lane
  int line = 0;          ///< of that op in the file
  std::vector<MscclppOperand> sources;
  std::vector<MscclppOperand> targets;
  std::int64_t length = 0;
  bool in_switch = false;
  std::vector<std::uint32_t> after;  ///< moves of other thread blocks that happen before
};

/// An op that uses another GPU's input or output before anything has come from that GPU.
struct MscclppEarlyAccess {
  MscclppOpPlace place;
  int rank = 0;  ///< whose buffer it is
  MscclppPlan::Buffer buffer = MscclppPlan::Buffer::input;
  bool writes = false;
};

/// What a plan does when it is carried out: its data movements in an order that its signals,
/// semaphores, barriers and packets allow, each with what certainly happened before it, whatever
/// the order of everything else.
struct MscclppRun {
  std::int64_t split = 1;  ///< units of a chunk: more than 1 where ops are sliced (tbg_info)
  std::vector<MscclppMove> moves;
  std::vector<Diagnostic> stuck;       ///< thread blocks that never end, and what they wait for
  std::vector<Diagnostic> early_ends;  ///< GPUs that may end before their results have come
  std::vector<MscclppEarlyAccess> early_accesses;
  std::int64_t lost_signals = 0;  ///< that nobody waits for
};

/// Whether relaxed signals and waits order data as the others do.
enum class RelaxedSignals : std::uint8_t { order_data, order_nothing };

/// \pre `plan` was read without problems. Moves are the same, in the same order, whatever relaxed
/// signals do: only `after` and `early_ends` depend on that. Throws Error{input} where slices are
/// too fine for a program's units.
MscclppRun run_mscclpp_plan(const MscclppPlan& plan,
                            RelaxedSignals relaxed = RelaxedSignals::order_data);

}  // namespace espalier

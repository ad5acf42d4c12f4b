// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/msccl_algo.h"
#include "ir/program.h"

namespace espalier {

/// The collective that a label of MSCCL's stands for ("reduce_scatter", "reducescatter"), or
/// nothing: "custom".
std::optional<Collective> msccl_collective(std::string_view label);

/// Where the buffers of an MSCCL algorithm are in a program of ours that serves a contract. In
/// place, input and output are one. What the contract has no buffer for, such as the output of a
/// rank that a reduction does not leave a result on, is memory all the same: scratch. Private to
/// the room.
class MscclBuffers {
 public:
  MscclBuffers(const MscclAlgo& algo, const Contract& contract);

  Operand operand(int gpu, const MscclAlgo::Reference& reference) const;
  /// Whether NCCL's call gives every caller the buffer. What a reduction does not leave a result
  /// on has no output, and what a broadcast does not come from no input, unless it is in place.
  bool is_given(int gpu, char buffer) const;
  /// "s[1] of gpu 2": a slice as the file calls it.
  std::string name(const Slice& slice) const;
  /// Units of scratch that the buffers take; behind them is room for more.
  std::int64_t scratch(int gpu) const;

 private:
  Region region(int gpu, char buffer) const;

  const MscclAlgo& algo_;
  Contract contract_;
};

}  // namespace espalier

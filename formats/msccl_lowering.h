// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// What MSCCL's steps can say of a program.
struct MscclLowering {
  /// The same data movement with copies pushed by their source, sums of two operands or of what
  /// lies at their destination, at most one transfer an op, and lanes that send to one peer and
  /// receive from one: what a thread block does. Slices are no longer than a step takes.
  Program program;
  std::vector<std::string> changes;  ///< what differs from the program given, for its author
};

/// `one_way`: lanes send or receive, not both. Throws Error{unsupported} with everything that MSCCL
/// can't say: host memories, relays, computation, ops in switches, collectives it has no name for.
/// Private to the room. \pre the program passed `verify`
MscclLowering lower_to_msccl(const Program& program, bool one_way);

}  // namespace espalier

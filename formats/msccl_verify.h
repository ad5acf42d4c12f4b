// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "formats/msccl_run.h"
#include "ir/verify.h"

namespace espalier {

/// What there is to say of an MSCCL algorithm as its runtime carries it out.
struct MscclVerdict {
  Verification verification;
  /// What it does, or, where it is wrong, what it says it does; nothing where that is no collective
  /// of ours.
  std::optional<Contract> contract;
};

/// Verifies an algorithm in place or out of place: as a program in which every message lies in a
/// slot of its own from the step that sends to the step that receives it. Chunks are equal, as the
/// runtime demands. Messages name GPU, thread block and step. Where results are wrong, it looks for
/// another collective that the steps do. Private to the room.
MscclVerdict verify_msccl(const MscclSteps& steps, bool in_place);

}  // namespace espalier

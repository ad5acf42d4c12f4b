// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ir/program.h"
#include "run/options.h"
#include "sim/known_kinds.h"
#include "sim/text_findings.h"

namespace espalier {

/// What simulations of a program keep for the next ones (RunOptions::found).
struct FoundOut {
  std::shared_ptr<TextFindings> text;
  KindsOfProgram kinds;
};

/// Null where nobody lets them, or it would be much.
FoundOut* found_out(const Program& program, const RunOptions& options);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/error.h"
#include "ir/program.h"
#include "sim/op_graph.h"
#include "sim/op_history.h"

namespace espalier {

/// One diagnostic per blocked op (at most 8, and a first one that counts them): rank, op and what
/// it waits for. \pre some op never ended.
std::vector<Diagnostic> explain_stuck(const Program& program, const OpGraph& graph,
                                      const OpHistory& history);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/backend.h"
#include "sim/dispatcher.h"

namespace espalier {

/// A longer path keeps its latest steps only; its first step then still names the op it waited for.
inline constexpr std::size_t kMostCriticalSteps = 4096;

/// The chain of ops that decided the time, in time order: the op that ended last, the one whose end
/// let it start, and so on back to one that waited for nothing. Steps follow each other without
/// gaps.
std::vector<CriticalStep> critical_path(const Program& program, const OpHistory& history);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "exec/lanes/message_plan.h"
#include "exec/mpi/transport.h"

namespace espalier {

/// What all processes do together outside of programs, each calling the same functions in the same
/// order. They wait as long as it takes and let other threads and processes have the processor
/// meanwhile; who watches the processes ends them where somebody never comes.

/// The tag of these messages; programs have those below it.
inline constexpr int kExchangeTag = kMessageTags;

/// How often a process looks without effect before it lets others have the processor: hardly ever
/// where processes of this run wait for it, far longer than a message takes where each has its own,
/// as it would not get it back soon.
inline constexpr int kCrowdedPatience = 8;
inline constexpr int kAlonePatience = 20'000;

/// Returns when all processes have come, about at the same time: a message to the process 1, 2,
/// 4, ... further on (the dissemination barrier of Hensgen, Finkel and Manber, 1988).
void meet(Transport& transport, int patience = kCrowdedPatience);

/// What every process gave, by process; of any lengths.
std::vector<std::vector<std::byte>> gather_from_all(Transport& transport,
                                                    std::span<const std::byte> mine);

/// Calls `advance` until `is_over`, and gives the processor away where nothing moves.
void drive(const std::function<bool()>& advance, const std::function<bool()>& is_over,
           int patience = kCrowdedPatience);

}  // namespace espalier

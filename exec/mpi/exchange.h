// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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

/// How long a process looks without effect before it lets others have the processor: hardly at all
/// where processes of this run wait for it, longer than a message takes where each has its own, as
/// it would not get it back soon.
using Patience = std::chrono::microseconds;
inline constexpr Patience kCrowdedPatience{2};
inline constexpr Patience kAlonePatience{150};

/// Returns when all processes have come, about at the same time: a message to the process 1, 2,
/// 4, ... further on (the dissemination barrier of Hensgen, Finkel and Manber, 1988).
void meet(Transport& transport, Patience patience = kCrowdedPatience);

/// What every process gave, by process; of any lengths.
std::vector<std::vector<std::byte>> gather_from_all(Transport& transport,
                                                    std::span<const std::byte> mine);

/// Calls `advance` until `is_over`, and `give_way` in between where nothing moves.
void drive(const std::function<bool()>& advance, const std::function<bool()>& is_over,
           const std::function<void()>& give_way, Patience patience = kCrowdedPatience);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/collective.h"

// Private to the room.

namespace espalier {

inline constexpr int kEveryRank = -1;
struct Demand {
  int from = 0;  ///< rank
  int to = 0;    ///< rank, or kEveryRank
};

/// What has to move between ranks, a reduction turned round: a block for every demand, the whole
/// message for sendrecv, broadcast and reduce. Empty for allreduce, and where everything stays
/// where it is.
std::vector<Demand> demands_of(Collective collective, int root, int ranks);

}  // namespace espalier

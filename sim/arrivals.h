// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/program.h"
#include "topologies/topology.h"

namespace espalier {

/// How what an op moves between places comes there, in a program that runs again and again.
struct OpArrivals {
  Arrival operands = Arrival::fresh;
  Arrival result = Arrival::fresh;  ///< where it belongs elsewhere
  bool operator==(const OpArrivals&) const = default;
};

/// By op. What is read at the memory of a place by others makes what arrives there passed on; of
/// inputs, also in place, what nobody writes is unchanged, where all that arrives is of such.
std::vector<OpArrivals> arrivals_of(const Program& program);

}  // namespace espalier

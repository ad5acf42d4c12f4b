// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "topologies/topology.h"

namespace espalier {
namespace {

/// A rate between two others: times of a byte in proportion. A rate that is not modelled takes no
/// time.
double between(double smaller_gbps, double larger_gbps, double share) {
  const auto time = [](double gbps) { return gbps > 0 ? 1 / gbps : 0; };
  const double mixed = time(smaller_gbps) * (1 - share) + time(larger_gbps) * share;
  return mixed > 0 ? 1 / mixed : 0;
}

}  // namespace

std::optional<WorkingSet> SharedMemory::speeds_for(double bytes) const {
  const auto larger = std::ranges::lower_bound(working_sets, bytes, {}, &WorkingSet::bytes);
  if (larger == working_sets.end()) return std::nullopt;
  if (larger == working_sets.begin()) return *larger;
  const WorkingSet& smaller = *std::prev(larger);
  const double share = std::log(bytes / smaller.bytes) / std::log(larger->bytes / smaller.bytes);
  WorkingSet mixed;
  mixed.bytes = bytes;
  constexpr std::array<double WorkingSet::*, 6> kFigures{&WorkingSet::gbps,
                                                         &WorkingSet::reduce_gbps,
                                                         &WorkingSet::exchange_gbps,
                                                         &WorkingSet::node_exchange_gbps,
                                                         &WorkingSet::node_access_gbps,
                                                         &WorkingSet::node_reduce_gbps};
  for (const auto figure : kFigures) {
    mixed.*figure = between(smaller.*figure, (*larger).*figure, share);
  }
  return mixed;
}

}  // namespace espalier

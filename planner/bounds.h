// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/collective.h"
#include "topologies/placement.h"

namespace espalier {

/// A provable limit: no schedule on these links moves the message faster.
struct Bound {
  double algbw_gbps = 0;    ///< infinity when nothing has to cross a link (one rank)
  std::string exact;        ///< the same as a fraction, "600/7"; "unlimited" when infinite
  std::string kind;         ///< "cut", "partition" or "lp"; empty when infinite
  std::string certificate;  ///< the cut, partition or prices and their arithmetic, with node names
};

struct BoundOptions {
  /// Host memories (or other nodes that compute) take part in the reduction: only cuts are bounds
  /// then.
  bool helpers = false;
  /// Schedules may add up and multicast in the switches that can (Node::combines), where the
  /// profile has such ops.
  bool in_switches = true;
};

/// Bound on algbw under the router's profile and link scope, whatever the placement's
/// relays do, and the switches that combine. It counts bandwidth only, since latency never makes a
/// schedule faster. docs/bounds.md states the inequalities and when each is tight.
Bound bandwidth_bound(Collective collective, int root, const Router& router,
                      const Placement& placement, const BoundOptions& options = {});

}  // namespace espalier

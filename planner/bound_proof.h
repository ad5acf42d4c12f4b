// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "planner/bounds.h"

namespace espalier {

/// What crossing a link costs in a proof by prices, per byte: in whole numbers, of all prices of
/// the proof the smallest that there are.
struct LinkPrice {
  LinkId link = 0;  ///< of a medium, its first
  bool forward = true;
  bool both = false;  ///< crossing it either way costs that
  double price = 0;
};

/// A link that a cut or a partition counts.
struct CountedLink {
  LinkId link = 0;  ///< of a medium, its first that crosses
  bool forward = true;
  bool both = false;  ///< both directions share what counts
  double gbps = 0;    ///< all of these add up to what the certificate says that links carry
};

/// A bound, and what its certificate says in words, for whoever draws it.
struct BoundProof {
  Bound bound;
  /// The GPUs (and other nodes that take part) inside of a cut, or those of every part of a
  /// partition; empty for a proof by prices.
  std::vector<std::vector<NodeId>> parts;
  std::vector<LinkPrice> prices;     ///< of links that cost anything; empty for other proofs
  std::vector<CountedLink> counted;  ///< each direction once; empty for a proof by prices
};

/// As `bandwidth_bound`.
BoundProof proven_bound(Collective collective, int root, const Router& router,
                        const Placement& placement, const BoundOptions& options = {});

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "run/target.h"

namespace espalier {

struct Staged {
  Program program;
  int pairs = 0;  ///< of GPUs, between which data goes through host memory now
};

/// Where a GPU exchanges data with more peers than it can map (Node::peer_limit): the program with
/// each GPU's nearest peers kept, those that it exchanges most with among equally near ones, and
/// the transfers of other pairs by way of a CPU's memory, as an executor makes them that maps as
/// many peers as it can. Ops that read from peers of both kinds become two or more, which fold in
/// the same order. Nothing when no GPU has too many peers, or when an op does not allow it: its
/// result goes elsewhere by another way than its operands come; nor when a transfer has no route.
/// \pre there is a router, and `program` is right
std::optional<Staged> stage_beyond_peer_limits(const Program& program, const Target& target);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "ir/program.h"
#include "run/target.h"

namespace espalier {

/// By place: how many of its lanes move data, and so need blocks of its GPU (Profile::blocks).
std::vector<int> moving_lanes(const Program& program);

/// The GPU with most lanes, if these are more than it has blocks under the target's profile; with
/// the line of the first op that has no block of its own, where the program is from a file.
std::optional<Diagnostic> too_many_lanes(const Program& program, const Target& target);

/// A GPU of the placement that cannot use a protocol (Protocol::not_on), or nothing.
std::optional<NodeId> lacking_gpu(const Protocol& protocol, const Topology& topology,
                                  const Placement& placement);

}  // namespace espalier

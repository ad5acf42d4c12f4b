// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "algorithms/algorithm.h"

namespace espalier {

/// The program of `chain` and `pipelined_chain`, which differ in how it is cut only: each rank of
/// root, root + 1, ... passes the whole message on to the next (broadcast), adds its own to what
/// the next has (reduce), or both one after the other (allreduce, rank 0 at the head).
Program build_chain(const BuildRequest& request, const std::string& name);

}  // namespace espalier

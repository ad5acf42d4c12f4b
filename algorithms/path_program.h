// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "algorithms/forest_program.h"

namespace espalier {

/// Gather, scatter, alltoall or sendrecv along the paths of a forest for it. Ranks and relays on
/// the way keep what they pass on in scratch. In place, senders first save what others write over.
/// Private to this room.
Program path_program(std::string name, const BuildRequest& request, const Forest& forest,
                     const Strips& strips);

}  // namespace espalier

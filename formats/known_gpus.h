// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topologies/topology.h"

namespace espalier {

/// Completes a GPU's model ("h100" becomes "h100-sxm5") and takes memory and peer limit from the
/// first machine of the catalogue with such GPUs; nothing where there is none. Private to the room.
void fill_from_catalogue(Node& gpu);

}  // namespace espalier

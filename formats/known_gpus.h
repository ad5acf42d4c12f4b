// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "topologies/topology.h"

namespace espalier {

/// Completes a GPU's model ("h100" becomes "h100-sxm5") and takes memory and peer limit from the
/// first machine of the catalogue with such GPUs; nothing where there is none. Private to the room.
void fill_from_catalogue(Node& gpu);

/// NVLinks of a generation of GPUs.
struct NvlinkGeneration {
  int links;          ///< that a GPU has at most
  const char* model;  ///< "a100"
  const char* kind;   ///< "nvlink3"
  double gbps;        ///< of one link and direction
};
/// Of the first GPUs, from V100 on, that can have so many; of H100 where none can.
const NvlinkGeneration& nvlinks_by_number(int links);
/// Of a model; null where it has none, or is not known.
const NvlinkGeneration* nvlinks_of_model(std::string_view model);
/// What no GPU has more of.
inline constexpr int kMostNvlinks = 18;

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// A GPU of each model, in the order of the catalogue.
const std::vector<Node>& catalogue_gpus();

/// "a100" for "NVIDIA A100-SXM4-80GB", as the catalogue's models begin; "a100-pcie" for cards,
/// which have other links; "titan-rtx" for what the catalogue does not have, as parts of a GPU
/// (MIG). Empty for an empty name.
std::string model_of_device(std::string_view name);

}  // namespace espalier

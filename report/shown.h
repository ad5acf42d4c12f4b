// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topologies/topology.h"
#include "training/model.h"

// Machines and models as `show` writes them: JSON of `espalier.machine/1` and `espalier.model/1`.

namespace espalier {

std::string machine_json(const Topology& machine);
/// A row for each link.
std::string machine_csv(const Topology& machine);

std::string model_json(const Model& model);
/// A row for each tensor.
std::string model_csv(const Model& model);

}  // namespace espalier

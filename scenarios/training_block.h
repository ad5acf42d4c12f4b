// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/yaml.h"
#include "scenarios/block_reader.h"
#include "scenarios/scenario.h"

// Private to the room.

namespace espalier {

/// Reads a block whose `training` is given: everything but its title, note and expectations.
TrainingStudy read_training(YamlMap& map, const YamlValue& training, BlockReader& reader);

}  // namespace espalier

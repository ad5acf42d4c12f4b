// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/survey.h"
#include "topologies/topology.h"

namespace espalier {

/// Whether `espalier probe` has measured it.
bool was_probed(const Topology& machine);

/// Known differences between the machine of a prediction and the one that is measured, in
/// sentences: the topology was not probed, describes GPUs while something else is measured, or
/// share a device where those measured do not, or the other way round. `devices`: of each rank that
/// is measured; empty: nobody said. `in_place_of_gpus`: "threads of this computer"; empty where
/// GPUs are measured.
std::vector<std::string> doubts_about(const Topology& machine, std::string_view in_place_of_gpus,
                                      const std::vector<int>& devices);

/// Hosts and sockets that are reached more slowly than others, and hosts whose ranks are on other
/// sockets, in sentences: the machine that is made of a survey has hosts and sockets that are all
/// alike, and does not show them.
std::vector<std::string> doubts_about(const Survey& survey);

}  // namespace espalier

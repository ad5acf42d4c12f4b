// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "topologies/topology.h"

namespace espalier {

enum class CpuMaker : std::uint8_t { intel, amd, power, other };

/// Of a machine's CPUs: by the links between its sockets, and their model. Intel where neither
/// says.
CpuMaker cpu_maker(const Topology& machine);

/// "intel", "amd", "power", "other": as figures by makers of CPUs name them
/// (Profile::message_more_s).
std::string_view to_string(CpuMaker maker);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "topologies/topology.h"

namespace espalier {

/// Whether a profile is named by the file that holds it, with or without a protocol:
/// "./fitted.yaml", "./fitted.yaml:ll". `Topology::profile` and `Topology::open_profiles` take
/// such names.
bool names_profile_file(std::string_view spec);

/// The one profile that YAML text of schema `espalier.profiles/1` has, as `machine` would have it:
/// `like` may name the machine's own profiles. Its name is `file`. Throws Error{input} with every
/// problem and its line (docs/topologies.md).
Profile parse_profile(std::string_view yaml, const std::string& file, const Topology& machine);

/// Where a profile differs from another one, as YAML: lines for an entry of `profiles` that is like
/// that one, indented by four.
std::string print_profile(const Profile& profile, const Profile& base);

/// The same as `parse_profile` for a file. Throws Error{input} also when it can't be read.
Profile read_profile_file(const std::string& path, const Topology& machine);

}  // namespace espalier

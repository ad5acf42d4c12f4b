// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/yaml.h"
#include "topologies/topology.h"

namespace espalier {

/// A constant of a profile, and how well it is known.
struct GradedFigure {
  std::string name;   ///< its keys in a file of profiles: "protocols.ll.hop_us.host"
  double value = 0;   ///< in the unit of files
  std::string unit;   ///< "us", "GB/s", "KiB"; empty: a share, or a number
  std::string grade;  ///< "source", "fitted", "estimate"; "its file" where a file says no more
  std::string from;   ///< what it was taken from or fitted on; the profile's or machine's file
};

/// What a profile costs on a machine, but for its links: constants above 0 of the protocols, GPUs,
/// kinds of routes and switches that the machine has. Grades are those of topologies/profiles.yaml;
/// figures that a file's profile shares with the built-in one that it is like have its grades, and
/// for the others the file is read for what it says (`grades`, as `espalier fit` writes it).
std::vector<GradedFigure> graded_figures(const Profile& profile, const Topology& machine);

/// What a profile of a file makes of a kind of links: the share of its rate that it reaches.
/// Nothing where it says nothing of its own.
std::optional<GradedFigure> graded_link(const Profile& profile, const Topology& machine,
                                        const std::string& kind);

/// Notes what is wrong with the grades of a file, by profile.
void check_grades(const YamlValue& grades);

}  // namespace espalier

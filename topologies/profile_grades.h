// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace espalier {

/// A constant of a profile, and how well it is known.
struct GradedFigure {
  std::string name;   ///< its keys in a file of profiles: "protocols.ll.hop_us.host"
  double value = 0;   ///< in the unit of files
  std::string unit;   ///< "us", "GB/s", "KiB"; empty: a share, or a number
  std::string grade;  ///< "source", "fitted", "estimate"; "its file" where a file changes it
  std::string from;   ///< what it was taken from or fitted on; the profile's or machine's file
};

/// What a profile costs on a machine, but for its links: constants above 0 of the protocols, GPUs,
/// kinds of routes and switches that the machine has. Grades are those of topologies/profiles.yaml;
/// figures that a file's profile shares with the built-in one that it is like have its grades.
std::vector<GradedFigure> graded_figures(const Profile& profile, const Topology& machine);

}  // namespace espalier

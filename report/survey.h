// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/survey.h"

namespace espalier {

/// A path that was measured.
struct MeasuredPath {
  std::string_view method;  ///< "kernel", "copy_engine", "socket" or "network"
  std::string from;
  std::string to;
  PathFigures figures;
  double both_ways_gbps = 0;  ///< of both directions together; 0: on the line of the other one
};
/// Within a GPU, between GPUs, and to and from host memory. \pre the survey is about this method
std::vector<MeasuredPath> measured_paths(const Survey& survey, CopyMethod method);

/// Between a rank of the first socket and one of another, and between all of two sockets.
std::vector<MeasuredPath> socket_paths(const Survey& survey);
/// Between a rank of the first host and one of another, and between all of two hosts.
std::vector<MeasuredPath> network_paths(const Survey& survey);

/// How fast a memory is, reads and writes together.
struct MeasuredMemory {
  std::string name;
  double copy_gbps = 0;
  std::vector<double> combine_gbps;  ///< by ArithmeticFigures::kOperands
};
std::vector<MeasuredMemory> measured_memories(const Survey& survey);

/// What `probe --json` writes, as `espalier.probe/1`. `machine`: its title.
std::string survey_json(const Survey& survey, const std::string& machine);
/// A row for each path.
std::string survey_csv(const Survey& survey);

}  // namespace espalier

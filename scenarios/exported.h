// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/format.h"
#include "ir/program.h"
#include "scenarios/study.h"

// Programs and machines of ours in the formats of others.

namespace espalier {

/// Copies of a program that --instances writes side by side.
inline constexpr int kMostInstances = 64;

/// What is written.
enum class Exported { machine, program };

/// A file to write, and in which format: by its ending, or by --to.
struct ExportTarget {
  std::string path;                ///< empty: none was asked for
  const Format* format = nullptr;  ///< null: our own (.esp, .yaml)
  int instances = 0;               ///< of a program; 0: as many as its machine has blocks for
};

/// The format that is called `name`, or else the one that `path` ends like: of several, the one
/// that is meant most often. Null: our own. Throws Error{usage} with those that can hold such a
/// thing.
const Format* format_to_write(const std::string& path, const std::string& name, Exported what);

/// What writers want to know of the GPUs that ranks are on: which can read each other, being on one
/// computer or joined by the GPU fabric, and whose they are.
void describe_gpus(const Topology& machine, const std::vector<NodeId>& gpus,
                   WritingOptions& options);
/// For a program on this machine.
WritingOptions writing_options(const Machine& machine);

/// Writes a program side by side as often as is asked for, or so often that every block of a GPU
/// has a lane, if the format has room: other runtimes give a lane one thread block. In our own form
/// it is written once, as lanes are spread over blocks here.
Written write_for_machine(const Program& program, const ExportTarget& target,
                          const Machine& machine, const WritingOptions& options);

/// The program of an answer, whole, as it is before it is cut for a message.
std::shared_ptr<const Program> whole_program(Study& study, const Outcome& outcome);

}  // namespace espalier

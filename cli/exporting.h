// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "formats/format.h"
#include "ir/program.h"
#include "scenarios/study.h"

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

/// Notes a problem where the format is not known, or can't hold such a thing. `path`: given on the
/// command line.
ExportTarget export_target(Arguments& arguments, const std::string& path, Exported what);

/// Reads --instances.
void read_instances(Arguments& arguments, ExportTarget& target);
/// Reads --export, --to and --instances.
ExportTarget read_export(Arguments& arguments);

/// What writers want to know of the GPUs that ranks are on: which can read each other, being on one
/// computer or joined by the GPU fabric, and whose they are.
void describe_gpus(const Topology& machine, const std::vector<NodeId>& gpus,
                   WritingOptions& options);
/// For a program on this machine.
WritingOptions writing_options(const Machine& machine);

/// Write a file, say what its reader should know, and where it is. Throw what the format's writer
/// throws.
Written export_program(const Console& console, const ExportTarget& target, const Program& program,
                       const WritingOptions& options);
/// Writes a program side by side as often as is asked for, or so often that every block of a GPU
/// has a lane, if the format has room: other runtimes give a lane one thread block. In our own form
/// it is written once, as lanes are spread over blocks here.
Written write_for_machine(const Program& program, const ExportTarget& target,
                          const Machine& machine, const WritingOptions& options);
Written export_for_machine(const Console& console, const ExportTarget& target,
                           const Program& program, const Machine& machine,
                           const WritingOptions& options);
void export_machine(const Console& console, const ExportTarget& target, const Topology& machine);

/// How long a program takes in the simulator, before and after it was written.
struct TimesOfWritten {
  std::int64_t size_bytes = 0;
  double before_s = 0;
  double after_s = 0;
  std::string why_not;  ///< there is no `after_s`, or none at all, and why
  /// The profile of `before_s` and that of `after_s`, where these differ: of a library its own.
  std::string before_profile = {}, after_profile = {};
};
/// A name for a written program, as of a file: a study takes one name for one program.
std::string word_of_written(const Written& written);
/// Simulates what was written in place of the query's algorithm, chunk size open. \pre it is in
/// another program's format; the study simulates
TimesOfWritten time_written(Study& study, const Query& query, const Written& written,
                            double before_s);
/// "simulated with 1MiB: 45.2 us as it is written, 40.1 us before".
std::string describe(const TimesOfWritten& times);
/// Says how long a program and what was written of it take. Nothing for our own format, which holds
/// the program as it is.
void say_times(const Console& console, const ExportTarget& target, Study& study, Query query,
               const Program& program, const Written& written);

/// The program of an answer, whole, as it is before it is cut for a message.
std::shared_ptr<const Program> whole_program(Study& study, const Outcome& outcome);
/// That program as a file.
void export_outcome(const Console& console, const ExportTarget& target, Study& study,
                    const Outcome& outcome);

}  // namespace espalier

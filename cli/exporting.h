// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "formats/format.h"
#include "ir/program.h"
#include "scenarios/exported.h"
#include "scenarios/study.h"

namespace espalier {

/// Notes a problem where the format is not known, or can't hold such a thing. `path`: given on the
/// command line.
ExportTarget export_target(Arguments& arguments, const std::string& path, Exported what);

/// Reads --instances.
void read_instances(Arguments& arguments, ExportTarget& target);
/// Reads --export, --to and --instances.
ExportTarget read_export(Arguments& arguments);

/// Write a file, say what its reader should know, and where it is. Throw what the format's writer
/// throws; `export_for_machine` writes as `write_for_machine` does.
Written export_program(const Console& console, const ExportTarget& target, const Program& program,
                       const WritingOptions& options);
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

/// That program as a file.
void export_outcome(const Console& console, const ExportTarget& target, Study& study,
                    const Outcome& outcome);

}  // namespace espalier

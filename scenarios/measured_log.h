// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/measured_tables.h"
#include "scenarios/study.h"

namespace espalier {

/// What the clock of a measurement may be off by before a bound is said to be beaten.
inline constexpr double kClockShare = 0.02;

/// Told what a reader should know of how a log was taken, a sentence each.
using SayNote = std::function<void(const std::string& note)>;

/// Output of nccl-tests or rccl-tests. Throws Error{input} for a file that can't be read, or is
/// something else, or is wrong.
MeasuredTables read_measured(const std::string& file);

/// Whether the ranks that a log lists were on more hosts than the machine has, unless that is a
/// rack, whose file may call all its trays one host.
bool too_many_hosts(const MeasuredTable& table, const Topology& machine);

/// Puts the ranks of a table on the machine: `ranks` of them, 0 where that is not known. Says what
/// had to be guessed. Throws Error{input} where they are too many.
void place_ranks_of(const SayNote& say, const MeasuredTable& table, int ranks,
                    const Topology& machine, const std::string& file, Query& question);

using MeasuredTimes = std::map<std::int64_t, MeasuredTime>;

/// Of one half of a table, by size; of the sizes in `only`, or of all where it is empty. Says what
/// is left out: rows that move no bytes, and all but the first of a size, as in logs with several
/// types.
MeasuredTimes times_of(const SayNote& say, const MeasuredTable& table, bool in_place,
                       const std::vector<std::int64_t>& only);

/// "FILE:LINE, all_reduce_perf, NCCL 2.27.7, mean of 20 runs".
std::string who_measured(const MeasuredTables& log, const MeasuredTable& table);

/// Says so where the rules of such a version of NCCL (see `library_version`) are not known.
void say_version(const SayNote& say, int version);

/// Whether an algorithm names the version of its library, as "nccl:version=2.10" does, so that it
/// is that one whatever a log says. What is no algorithm does not.
bool names_library_version(const std::string& algorithm);

/// What the question about a log says by itself.
struct SaidOfLaunch {
  bool mode = false;     ///< an option says how calls were launched
  bool version = false;  ///< all algorithms name the version of their library
};

/// How the log's calls were launched on the machine, how many were timed together, and by which
/// version of the library, unless the question has one, as far as the log tells and nothing else is
/// `said`. Says what had to be guessed. Returns whether the launch was.
bool read_launch(const SayNote& say, const MeasuredTable& table, const SaidOfLaunch& said,
                 const Topology& machine, Query& question);

}  // namespace espalier

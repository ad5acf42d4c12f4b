// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "scenarios/measured_log.h"
#include "scenarios/profile_fit.h"

namespace espalier {

/// What to look for in logs.
struct FitLogsRequest {
  /// Names of logs, each with the collective of its tables before it if that is another one than
  /// `collective`: "allgather=FILE".
  std::vector<std::string> files;
  Query question;  ///< topology, GPUs, profile and algorithm; the logs say the rest
  std::optional<Collective> collective;  ///< of the tables that count; nothing: all
  bool in_place = false;                 ///< the half of the tables that counts
  bool has_launch = false;  ///< the question says how calls are launched, whatever logs say
};

/// The times of one table among all.
struct FitTable {
  std::string title;  ///< "FILE:LINE, all_reduce_perf, NCCL 2.21.5"
  Location where;
  Collective collective = Collective::allreduce;
  int ranks = 0;
  std::size_t first = 0;  ///< index of its first time
  std::size_t count = 0;
  std::string library;          ///< "RCCL" on AMD's GPUs, else "NCCL"
  bool names_version = false;   ///< log, option or algorithm say which version of the library
  bool launch_assumed = false;  ///< neither says how calls were launched

  /// Its times among those of the fit.
  std::span<const FittedTime> times_of(const ProfileFit& fit) const {
    return std::span(fit.times).subspan(first, count);
  }
};

struct FitLogs {
  std::vector<MeasuredTimeOf> times;  ///< by table, by size
  std::vector<FitTable> tables;
};

/// Reads all logs. Says what is left out. `problems` gets everything because of which they cannot
/// be used: files that are no logs, other collectives, other machines, too few times.
FitLogs read_fit_logs(const SayNote& say, const FitLogsRequest& request, const Topology& machine,
                      DiagnosticList& problems);

/// Notes the problems of an algorithm that does not serve what the logs have.
void check_algorithm(const FitLogs& logs, const std::string& algorithm, DiagnosticList& problems);

/// Throws Error{input} for a fit that meets the times by constants that no machine has, or not at
/// all (why_not_met).
void require_met(const ProfileFit& fit, const FitLogs& logs);

/// Throws Error{input} where no constant was fitted, so that a profile would say nothing new.
void require_changed(const ProfileFit& fit);

/// For print_fitted_profile: each table and how its calls were simulated: ", NCCL 2.30 (assumed),
/// launch single".
std::vector<std::string> sources_of(const ProfileFit& fit, const FitLogs& logs);

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace espalier {

struct Query;
struct Outcome;

/// What answers to a question are compared with, whatever algorithm they name: the library's own
/// collective, of the version that the question is about.
struct Baseline {
  double time_s = 0;          ///< of one call by itself
  std::string algorithm;      ///< as asked for, or as chosen
  int version = 0;            ///< of the library: see `library_version`
  double relative_error = 0;  ///< expected of its time
  std::string library = {};   ///< its name: "NCCL", "RCCL"
  /// How many times as fast as under the library's profile bulk data moves over the links between
  /// GPUs under the query's: how much of a speed-up is the runtime's, whatever the schedule.
  double runtime_gain = 1;
  double benchmark_s = 0;  ///< of calls back to back, launched as the question says
};

/// The question about the library: the same message on the same GPUs. Nothing where there is
/// nothing to compare with: no machine, threads of a host, a collective that the library lacks.
std::optional<Query> baseline_query(const Query& query);

/// How many times as fast as the library an answer is; nothing where that is not known.
std::optional<double> speedup_of(const Outcome& outcome);

/// Whether two times cannot be told apart: they differ by less than their expected relative errors
/// combined, the root of the sum of their squares.
bool is_open(double a_s, double a_error, double b_s, double b_error);

/// Whether the library had better be kept for a message: the answer is not faster by more than the
/// expected error. False where the library's time is not known.
bool keeps_library(const Outcome& outcome);

}  // namespace espalier

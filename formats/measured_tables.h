// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"

namespace espalier {

/// A rank as its table lists it.
struct MeasuredRank {
  int rank = 0;
  std::int64_t process = -1;  ///< its number on that host; -1: not said
  int group = 0;              ///< of a run whose ranks were split into groups
  std::string host;           ///< empty: not said
  int device = 0;             ///< its number on that host
  std::string bus = {};       ///< "0000:14:00", or "0x0f" in older tables
  std::string model = {};
};

/// What one half of a row says, out of place or in place.
struct MeasuredTime {
  double time_s = 0;
  double algbw_gbps = 0;
  double busbw_gbps = 0;
  /// Values that are wrong; nothing where they were not counted ("N/A").
  std::optional<double> wrong;
  /// The largest difference from the right result, which tables before 2.13 have in place of a
  /// count.
  std::optional<double> difference = {};
  // What the table may have rounded away: half of the last digit of each.
  double time_rounding_s = 0;
  double algbw_rounding_gbps = 0;
  double busbw_rounding_gbps = 0;
};

struct MeasuredRow {
  std::int64_t bytes = 0;  ///< the size as nccl-tests counts it (Contract)
  std::int64_t count = 0;  ///< elements; 0: not said
  std::string type;        ///< "float"
  std::string redop;       ///< "sum", "none"; empty: not said
  std::optional<int> root;
  std::optional<MeasuredTime> out_of_place;
  std::optional<MeasuredTime> in_place;
  int line = 0;  ///< 0: not known
};

/// A collective that a table's figures fit.
struct CollectiveFit {
  Collective collective = Collective::allreduce;
  int ranks = 0;  ///< that it would be of; 0: not known
};

/// One run of a test.
struct MeasuredTable {
  std::string test;  ///< "all_reduce_perf"; empty: not said
  /// What the test is, or, where nothing names it, the only collective that the figures fit.
  std::optional<Collective> collective;
  std::vector<CollectiveFit> fits;  ///< those that the figures fit
  int ranks = 0;                    ///< of one group; 0: not known
  std::vector<MeasuredRank> listed;
  std::string library;  ///< "NCCL 2.27.7+cuda13.0"; empty: not said
  std::string tests;    ///< "nccl-tests 2.18.3"; empty: not said
  // How it was launched; -1: not said.
  int threads = -1;
  int gpus_per_thread = -1;
  std::int64_t min_bytes = -1;
  std::int64_t max_bytes = -1;
  std::string step;  ///< "2(factor)"
  int warmup = -1;
  int iterations = -1;
  int aggregated = -1;  ///< calls that are timed as one
  int graph = -1;       ///< replays of a CUDA graph; 0: launched one by one
  std::vector<MeasuredRow> rows;
  std::optional<double> average_busbw_gbps;  ///< as the table says
  std::optional<std::int64_t> out_of_bounds;
  int line = 0;  ///< where it begins
  /// Guesses, rows that were torn by other output, and figures that do not agree with each other,
  /// with their lines.
  std::vector<std::string> notes;

  /// Hosts of the ranks that are listed.
  int hosts() const;
  /// Ranks of the process that has most: 1 where every rank has its own; 0: not known.
  int ranks_per_process() const;
  /// All wrong values of all rows; nothing where none were counted.
  std::optional<double> wrong() const;
};

/// Tables of measured times in other programs' output, in the order of the file.
struct MeasuredTables {
  std::string file;
  std::vector<MeasuredTable> tables;
};

/// What a file of nccl-tests says beside its table.
struct NcclTestsRun {
  std::vector<std::string> arguments;  ///< of the command, without the name of the test
  std::string experiment;              ///< a name for all rows, such as the algorithm's
  std::string start_time;              ///< "2026-01-31 12:00:00", local
  std::string end_time;
  int process = 0;  ///< its id
  bool validates = false;
};
/// A table as nccl-tests writes it with -J: figures have six decimals, times in microseconds. What
/// is not said of the launch gets nccl-tests' own default. \pre its collective is known
std::string nccl_tests_json(const MeasuredTable& table, const NcclTestsRun& run);

/// All of it as plain text: for every table the test, the machine, sizes with time and bus
/// bandwidth, and the notes.
std::string describe(const MeasuredTables& measured);

}  // namespace espalier

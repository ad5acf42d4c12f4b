// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/collective.h"
#include "topologies/route.h"

namespace espalier {

/// What to use for messages of up to `up_to_bytes`.
struct TuningRow {
  std::int64_t up_to_bytes = 0;
  std::string algorithm;         ///< as `parse_algorithm` takes it
  std::int64_t chunk_bytes = 0;  ///< 0: do not cut
  double time_s = 0;             ///< simulated, at `up_to_bytes`
  bool operator==(const TuningRow&) const = default;
};

/// The fastest algorithm by message size, as a file: `espalier.tuning/1`. docs/tuning.md.
struct TuningTable {
  std::string machine;      ///< as `load_topology` takes it
  std::vector<int> gpus;    ///< empty: all
  std::vector<int> relays;  ///< GPUs beside these that may relay
  int ranks = 1;
  Collective collective = Collective::allreduce;
  int root = 0;
  std::string profile = "kernel";
  LinkScope links = LinkScope::all;
  bool in_place = false;
  std::vector<TuningRow> rows;  ///< ascending, never empty

  /// The row for a message: the first one that is large enough, or the last one.
  const TuningRow& row_for(std::int64_t size_bytes) const;
};

/// The table as YAML. `parse_tuning` reads it back; times keep six digits. `remarks`: what is said
/// of each row in a comment, empty for nothing; none at all, or one for each row.
std::string print_tuning(const TuningTable& table, const std::vector<std::string>& remarks = {});

/// Reads a table. Throws Error{input} with every problem. The machine is only named: it need not
/// exist here. Program files have to; their paths count from the folder of `file`.
TuningTable parse_tuning(std::string_view yaml, const std::string& file);

}  // namespace espalier

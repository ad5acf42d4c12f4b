// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/measured_tables.h"
#include "formats/text_words.h"

namespace espalier {

// Parts of the reader of nccl-tests' output. Private to the room.

/// What stands above a table's columns.
struct NcclTestsColumns {
  int of_group = 0;  ///< columns of either half; 0: there is no heading
  /// The last column of a half is the largest difference ("error", "res", "delta"), not a count.
  bool has_difference = false;
  double time_unit_s = 0;  ///< 0: not said
};
/// Of a heading's words: "size count type redop root time algbw busbw #wrong ...". Nothing for any
/// other line.
std::optional<NcclTestsColumns> parse_columns(const std::vector<std::string_view>& words);

/// A line that has a size, a number of elements and a type. Times are in the unit of the table.
struct NcclTestsRow {
  MeasuredRow row;
  std::string torn;  ///< why the rest of it cannot be read; empty: it can
};
std::optional<NcclTestsRow> parse_row(const std::vector<std::string_view>& words,
                                      const NcclTestsColumns& columns);

/// "#  Rank  0 Group  0 Pid 4711 on node1 device  0 [0x14] NVIDIA A100": from "Rank" on.
std::optional<MeasuredRank> parse_rank(const std::vector<std::string_view>& words);

/// "nThread 1 nGpus 8 minBytes 8 ...": fills in what the table says of its launch.
void parse_launch(const std::vector<std::string_view>& words, MeasuredTable& table);

/// "all_reduce_perf" -> allreduce; nothing for tests that are no collective of ours.
std::optional<Collective> collective_of_test(std::string_view test);

/// Its test of nccl-tests: allreduce -> "all_reduce_perf".
std::string test_of_collective(Collective collective);

/// "NCCL 2.19.3" of 21903, which is how the library counts its versions since 2.9; 2708 was 2.7.8.
std::string library_of_number(int number);

/// Bytes of an element, or 0 for a type that is not known.
int bytes_of_type(std::string_view type);

/// Brings times to seconds (`unit_s`: what the heading says, or 0), and compares everything that a
/// table says twice. What does not agree becomes a note. Finds ranks and collective where they are
/// not said.
void check_table(MeasuredTable& table, double unit_s);

/// What `nccl-tests -J`, rccl-tests and `espalier sim --json` write.
MeasuredTables read_json_tables(std::string_view text, const std::string& file);

}  // namespace espalier

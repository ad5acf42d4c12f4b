// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "run/backend.h"
#include "tests/exec/test_programs.h"

namespace espalier {

/// What every executing back end must do: `run(program, options)` runs on it.
template <class Run>
void expect_every_type_and_operator(const Run& run) {
  for (const bool in_place : {false, true}) {
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        SCOPED_TRACE(std::string(to_string(type)) + " " + std::string(to_string(op)) +
                     (in_place ? " in place" : ""));
        RunOptions options;
        options.size_bytes = 4099 * static_cast<std::int64_t>(size_of(type));
        options.type = type;
        options.op = op;
        options.iterations = 3;
        options.warmup = 1;
        const RunReport report = run(tree_program(4, in_place), options);
        EXPECT_EQ(report.executed->wrong, 0);
        EXPECT_TRUE(report.executed->damage.empty());
        EXPECT_GT(report.executed->min_time_s, 0);
        EXPECT_LE(report.executed->min_time_s, report.executed->median_time_s);
        EXPECT_LE(report.executed->median_time_s, report.executed->max_time_s);
        EXPECT_LE(report.executed->min_time_s, report.time_s);
        EXPECT_LE(report.time_s, report.executed->max_time_s);
        EXPECT_GE(report.wall_s, 3 * report.executed->min_time_s);
        EXPECT_EQ(report.message_bytes, options.size_bytes);
        EXPECT_TRUE(report.timeline.empty());
      }
    }
  }
}

}  // namespace espalier

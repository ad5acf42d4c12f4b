// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "ir/print.h"
#include "ir/program.h"
#include "run/report.h"

namespace espalier {

/// Whether an op waits for another one's data: it says so, or reads or overwrites them.
inline bool uses_result(const Program& program, const Op& op, OpId other) {
  bool uses = std::ranges::count(program.dependencies_of(op), other) > 0;
  const Op& writer = program.ops[other];
  for_each_destination(program, writer, [&](const Operand& result) {
    const auto touches = [&](const Operand& one) {
      uses = uses || overlap(slice(result, writer.length), slice(one, op.length));
    };
    std::ranges::for_each(program.sources_of(op), touches);
    for_each_destination(program, op, touches);
  });
  return uses;
}

/// The critical path of one simulation is one of another, which kept the timeline of all ops of
/// `program`: every step begins when the op before it ends, when its result is there or, where it
/// waits for steps of a FIFO, in between, and the last one ends with the run. Of paths that take
/// equally long, each is as good.
inline void expect_is_critical(const RunReport& found, const Program& program,
                               const RunReport& all) {
  ASSERT_EQ(all.timeline.size(), program.ops.size());
  const auto is_same = [&](double a_s, double b_s) {
    return std::abs(a_s - b_s) <= 1e-9 * all.time_s;
  };
  const std::vector<CriticalStep>& steps = found.simulated->critical_path;
  ASSERT_FALSE(steps.empty());
  const bool is_whole = found.simulated->critical_steps == static_cast<std::int64_t>(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CriticalStep& step = steps[i];
    SCOPED_TRACE(testing::Message() << "step " << i << ", op " << step.op << " " << step.what);
    ASSERT_LT(step.op, program.ops.size());
    EXPECT_EQ(step.what, to_string(program, step.op));
    EXPECT_TRUE(is_same(step.start_s, all.timeline[step.op].start_s));
    const bool is_data = step.waited_for.starts_with("data of op ");
    if (i == 0) {
      EXPECT_EQ(is_whole, step.waited_for == "start");
      const double first_s = std::ranges::min(all.timeline, {}, &OpTiming::start_s).start_s;
      EXPECT_TRUE(!is_whole || is_same(step.start_s, first_s));
    } else {
      const OpTiming& before = all.timeline[steps[i - 1].op];
      const double seen_s = before.end_s + before.landing_s;
      EXPECT_EQ(step.start_s, steps[i - 1].end_s);
      EXPECT_TRUE(is_same(step.start_s, std::clamp(step.start_s, before.end_s, seen_s)));
      if (is_data) {
        EXPECT_EQ(step.waited_for, "data of op " + std::to_string(steps[i - 1].op));
        EXPECT_TRUE(uses_result(program, program.ops[step.op], steps[i - 1].op));
      }
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE(is_same(steps.back().end_s, all.time_s));
}

}  // namespace espalier

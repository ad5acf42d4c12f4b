// SPDX-License-Identifier: Apache-2.0
// What a report explains: links, critical path, timeline, and why a program is stuck.
#include <gtest/gtest.h>

#include "ir/print.h"
#include "sim/critical_path.h"
#include "tests/sim/machine.h"

namespace espalier {
namespace {

TEST(Report, NamesTheBusiestLinkFirst) {
  Topology topology = ring_machine(3, 10, 0);
  topology.links[1].count = 2;
  Builder builder("uneven", allreduce_contract(3, 4));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(2, 0, 4), builder.input(1, 0, 4));
  const RunReport report = TestMachine(topology).run(builder.finish(), 4'000'000);
  ASSERT_EQ(report.simulated->links.size(), 2u);
  // 4 MB over two links of 10 GB/s: 0.2 ms, the whole run. 1 MB over one: 0.1 ms.
  EXPECT_EQ(report.simulated->links[0].name, "gpu1->gpu2 nvlink2 x2");
  EXPECT_DOUBLE_EQ(report.simulated->links[0].bytes, 4e6);
  EXPECT_DOUBLE_EQ(report.simulated->links[0].busy_s, 2e-4);
  EXPECT_NEAR(report.simulated->links[0].utilization, 1, 1e-9);
  EXPECT_EQ(report.simulated->links[1].name, "gpu0->gpu1 nvlink2");
  EXPECT_NEAR(report.simulated->links[1].utilization, 0.5, 1e-9);
}

TEST(Report, CriticalPathFollowsWhatReleasedEachOp) {
  const TestMachine machine(ring_machine(3, 10, 0));
  Builder builder("path", allreduce_contract(3, 4));
  builder.copy(builder.output(1, 0, 2), builder.input(0, 0, 2));               // 0: 0.2 ms
  builder.copy(builder.output(1, 2, 1), builder.input(0, 2, 1));               // 1: lane 0 of r0
  builder.copy(builder.output(2, 2, 1), builder.output(1, 2, 1));              // 2: data of 1
  builder.copy(builder.output(0, 3, 1), builder.input(2, 3, 1), {.lane = 1});  // 3: short
  const RunReport report = machine.run(builder.finish(), 4'000'000);
  ASSERT_EQ(report.simulated->critical_path.size(), 3u);
  const std::vector<std::string> waited = {"start", "lane 0 of r0", "data of op 1"};
  const std::vector<double> ends_s = {2e-4, 3e-4, 4e-4};
  for (OpId i = 0; i < 3; ++i) {
    const CriticalStep& step = report.simulated->critical_path[i];
    EXPECT_EQ(step.op, i);
    EXPECT_EQ(step.waited_for, waited[i]);
    EXPECT_NEAR(step.end_s, ends_s[i], 1e-9 * ends_s[i]);
    EXPECT_EQ(step.start_s, i == 0 ? 0 : report.simulated->critical_path[i - 1].end_s);
  }
  EXPECT_EQ(report.simulated->critical_path[0].what.substr(0, 9), "r1.out[0:");
  EXPECT_EQ(report.simulated->critical_path.back().end_s, report.time_s);
}

TEST(Report, ALongCriticalPathKeepsItsEnd) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  Builder builder("long", allreduce_contract(2));
  for (int i = 0; i < 5000; ++i) builder.compute(0, 1e-6);
  const RunReport report = machine.run(builder.finish(), 0);
  ASSERT_EQ(report.simulated->critical_path.size(), kMaxCriticalSteps);
  EXPECT_EQ(report.simulated->critical_steps, 5000);
  EXPECT_EQ(report.simulated->critical_path.back().op, 4999u);
  EXPECT_EQ(report.simulated->critical_path.front().waited_for, "lane 0 of r0");
}

TEST(Report, TimelineIsKeptOnRequest) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  Builder builder("two", allreduce_contract(2));
  builder.compute(0, 2e-6);
  builder.compute(0, 3e-6);
  const Program program = builder.finish();
  EXPECT_TRUE(machine.run(program, 0).timeline.empty());
  const RunReport report = machine.run(program, 0, true);
  ASSERT_EQ(report.timeline.size(), 2u);
  EXPECT_EQ(report.timeline[1].op, 1u);
  EXPECT_NEAR(report.timeline[1].start_s, 2e-6, 1e-15);
  EXPECT_NEAR(report.timeline[1].end_s, 5e-6, 1e-15);
}

/// r0 sends its two halves; the first is made to wait for the second, which follows it on the lane.
Program stuck_program() {
  Builder builder("stuck", allreduce_contract(2, 2));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1), {.lane = 1});
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(1, 1, 1), builder.input(0, 1, 1));
  Program program = builder.finish();
  program.ops[1].dep_begin = static_cast<std::uint32_t>(program.dependencies.size());
  program.ops[1].dep_count = 1;
  program.dependencies.push_back(2);
  return program;
}

TEST(Report, AStuckProgramNamesWhatItsOpsWaitFor) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  try {
    machine.run(stuck_program(), 1000);
    FAIL() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::runtime);
    ASSERT_EQ(error.diagnostics().size(), 3u);
    EXPECT_EQ(error.diagnostics()[0].message, "the program is stuck: 2 of 3 ops never start");
    EXPECT_EQ(error.diagnostics()[1].message,
              "r0 never starts op 1 '" + to_string(stuck_program(), 1) + "', which waits for op 2");
    EXPECT_EQ(error.diagnostics()[2].message, "r0 never starts op 2 '" +
                                                  to_string(stuck_program(), 2) +
                                                  "', which waits for lane 0 of r0 (op 1)");
  }
  // The engine is not left in a bad state.
  EXPECT_NEAR(machine.run(ring_allreduce(2), 0).time_s, 2e-6, 1e-15);
}

TEST(Report, AStuckProgramShowsEightOps) {
  const TestMachine machine(ring_machine(2, 10, 1e-6));
  Program program = stuck_program();
  for (int i = 0; i < 20; ++i) program.ops.push_back(program.ops[2]);
  program.lines.assign(program.ops.size(), 7);
  try {
    machine.run(program, 1000);
    FAIL() << "it ran";
  } catch (const Error& error) {
    ASSERT_EQ(error.diagnostics().size(), 9u);
    EXPECT_EQ(error.diagnostics()[0].message, "the program is stuck: 22 of 23 ops never start");
    EXPECT_EQ(error.diagnostics()[8].where.line, 7);
  }
}

}  // namespace
}  // namespace espalier

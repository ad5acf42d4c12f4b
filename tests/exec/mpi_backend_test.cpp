// SPDX-License-Identifier: Apache-2.0
// Several processes played by threads that exchange messages in memory.
#include "exec/mpi/mpi_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "exec/mpi/exchange.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/processes.h"
#include "ir/chunk.h"
#include "tests/error_of.h"
#include "tests/exec/every_type.h"
#include "tests/exec/in_processes.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// The report of every process.
std::vector<RunReport> run_everywhere(const Program& program, const RunOptions& options) {
  std::vector<RunReport> reports(static_cast<std::size_t>(program.ranks()));
  in_processes(program.ranks(), [&](const Processes& processes) {
    MpiBackend backend(processes);
    reports[static_cast<std::size_t>(processes.transport.process())] =
        backend.run(program, {}, options);
  });
  return reports;
}

TEST(MpiBackend, EveryTypeAndOperator) {
  expect_every_type_and_operator([](const Program& program, const RunOptions& options) {
    return run_everywhere(program, options).front();
  });
}

TEST(MpiBackend, AllProcessesGetTheSameReport) {
  RunOptions options;
  options.size_bytes = 1 << 16;
  options.iterations = 4;
  const std::vector<RunReport> reports = run_everywhere(ring_program(5, true), options);
  for (const RunReport& report : reports) {
    EXPECT_EQ(report.executed->wrong, 0);
    EXPECT_EQ(report.time_s, reports.front().time_s);
    EXPECT_EQ(report.executed->rank_times_s, reports.front().executed->rank_times_s);
    EXPECT_THAT(report.executed->rank_times_s, SizeIs(5));
    // The slowest of each run, on average.
    for (const double time_s : report.executed->rank_times_s) EXPECT_LE(time_s, report.time_s);
    EXPECT_THAT(report.executed->notes, ElementsAre("ranks 0-4: node7"));
    EXPECT_EQ(report.transfers, count_transfers(ring_program(5, true)));
  }
}

TEST(MpiBackend, WrongElementsOfAllRanksAreCounted) {
  Builder builder("forgetful", test_contract(Collective::allgather, 3, 3));
  for (int to = 0; to < 3; ++to) {
    for (int from = 0; from < 2; ++from) {
      builder.copy(builder.output(to, from, 1), builder.input(from, 0, 1));
    }
  }
  RunOptions options;
  options.size_bytes = 3 * 100 * 4;
  for (const RunReport& report : run_everywhere(builder.finish(), options)) {
    EXPECT_EQ(report.executed->wrong, 2 * 3 * 100);  // in both checks
  }
}

TEST(MpiBackend, OverwrittenInputsAreTold) {
  Builder builder("careless", test_contract(Collective::broadcast, 2, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.output(1, 0, 1), builder.input(0, 0, 1));
  Program program = builder.finish();
  // A copy that writes the root's input from what nobody has written.
  Op op = program.ops.back();
  op.dst = {0, 0, Buffer::in};
  op.at = 1;
  op.src_begin = static_cast<std::uint32_t>(program.sources.size());
  program.sources.push_back({1, 0, Buffer::tmp});
  op.dep_count = 0;
  program.ops.push_back(op);
  RunOptions options;
  options.size_bytes = 400;
  const RunReport report = run_everywhere(program, options).front();
  EXPECT_GT(*report.executed->wrong, 0);
  EXPECT_THAT(report.executed->damage.front(), HasSubstr("r0.in"));
}

TEST(MpiBackend, ATimelineIsThatOfAllProcesses) {
  const Program program = chunk(ring_program(4, false), {3, 1});
  RunOptions options;
  options.size_bytes = 1 << 16;
  options.timeline = true;
  const RunReport report = run_everywhere(program, options).back();
  ASSERT_THAT(report.timeline, SizeIs(program.ops.size()));
  for (OpId op = 0; op < program.ops.size(); ++op) {
    EXPECT_EQ(report.timeline[op].op, op);
    EXPECT_GE(report.timeline[op].start_s, 0);
    EXPECT_LE(report.timeline[op].start_s, report.timeline[op].end_s);
  }
}

TEST(MpiBackend, RefusesWhatProcessesCannotDo) {
  in_processes(3, [&](const Processes& processes) {
    const MpiBackend backend(processes);
    EXPECT_EQ(backend.unsupported(ring_program(3, false), {}), std::nullopt);
    EXPECT_EQ(backend.unsupported(ring_program(4, false), {}),
              "the program has 4 ranks, but there are 3 processes");
    Program computing = ring_program(3, false);
    add_marker(computing, 0, {});
    EXPECT_EQ(backend.unsupported(computing, {}),
              "the program computes or waits, and processes only exchange data");
  });
}

TEST(MpiBackend, RanksThatWereAskedSomethingElseAreNamed) {
  in_processes(4, [&](const Processes& processes) {
    MpiBackend backend(processes);
    const int rank = processes.transport.process();
    RunOptions options;
    options.size_bytes = rank == 2 ? 4096 : 1024;
    const Program program = rank % 2 == 1 ? tree_program(4, false) : ring_program(4, false);
    if (rank == 0) {
      EXPECT_EQ(error_of([&] { backend.run(program, {}, options); }, ErrorKind::usage),
                "error: the processes were not asked the same: rank 2 has another size, type, "
                "operator or number of runs than rank 0; ranks 1, 3 have another program than rank "
                "0\n  help: start the same espalier with the same arguments everywhere");
    } else {
      EXPECT_THROW(backend.run(program, {}, options), ToldElsewhere);
    }
  });
}

TEST(MpiBackend, WhatOneProcessCannotDoEndsTheRunInAll) {
  in_processes(3, [&](const Processes& processes) {
    MpiBackend backend(processes);
    RunOptions options;
    options.size_bytes = std::int64_t{1} << 50;
    const std::function<void()> run = [&] {
      backend.require_room(ring_program(3, false), {}, options);
    };
    if (processes.transport.process() == 0) {
      EXPECT_THROW(run(), OutOfMemory);
    } else {
      EXPECT_THROW(run(), ToldElsewhere);
    }
  });
}

TEST(Exchange, EveryProcessGetsWhatEveryoneGave) {
  for (const int count : {1, 2, 5, 8}) {
    in_processes(count, [&](const Processes& processes) {
      const int mine = processes.transport.process();
      const std::vector<std::byte> given(static_cast<std::size_t>(mine) * 3, std::byte(mine));
      const auto all = gather_from_all(processes.transport, given);
      ASSERT_THAT(all, SizeIs(count));
      for (int process = 0; process < count; ++process) {
        EXPECT_EQ(
            all[static_cast<std::size_t>(process)],
            std::vector<std::byte>(static_cast<std::size_t>(process) * 3, std::byte(process)));
      }
    });
  }
}

TEST(Exchange, NobodyLeavesAMeetingBeforeAllHaveCome) {
  for (const int count : {1, 2, 3, 8}) {
    std::atomic<int> come{0};
    in_processes(count, [&](const Processes& processes) {
      for (int round = 1; round <= 3; ++round) {
        ++come;
        meet(processes.transport);
        EXPECT_GE(come, round * count);
        meet(processes.transport);
      }
    });
  }
}

TEST(Exchange, GivesWayOnceItHasNoPatienceLeft) {
  for (const Patience patience : {Patience(0), Patience(std::chrono::hours(1))}) {
    int looks = 0;
    int ways = 0;
    const auto advance = [&] {
      ++looks;
      return looks % 10 == 0;
    };
    drive(
        advance, [&] { return looks == 100; }, [&] { ++ways; }, patience);
    EXPECT_EQ(ways, patience == Patience(0) ? 90 : 0);
  }
}

TEST(Processes, AreCrowdedWhereTheyShareProcessors) {
  EXPECT_TRUE(is_crowded({{0}, {0}}, 1));
  EXPECT_FALSE(is_crowded({{0}, {1}}, 0));
  EXPECT_FALSE(is_crowded({{0, 1}, {0, 1}}, 0));
  EXPECT_TRUE(is_crowded({{0, 1}, {0, 1}, {0, 1}}, 2));
  // Only who shares its own with another.
  EXPECT_TRUE(is_crowded({{0}, {0}, {1}, {2, 3}}, 0));
  EXPECT_FALSE(is_crowded({{0}, {0}, {1}, {2, 3}}, 2));
  EXPECT_FALSE(is_crowded({{}, {}}, 0));
}

TEST(Fingerprint, DependsOnProgramQuestionMemoryAndBuild) {
  const RunOptions options{.size_bytes = 1024};
  const Fingerprint print = fingerprint(ring_program(4, false), {}, options, 1, "host");
  EXPECT_EQ(print, fingerprint(ring_program(4, false), {}, options, 1, "host"));
  EXPECT_NE(print.program, fingerprint(ring_program(4, true), {}, options, 1, "host").program);
  Program program = ring_program(4, false);
  program.ops.back().lane = 1;
  EXPECT_NE(print.program, fingerprint(program, {}, options, 1, "host").program);
  EXPECT_NE(print.question, fingerprint(program, {}, {.size_bytes = 1025}, 1, "host").question);
  EXPECT_NE(print.build, fingerprint(program, {}, options, 2, "host").build);
  EXPECT_NE(print.memory, fingerprint(program, {}, options, 1, "cuda").memory);
  EXPECT_NE(hash_of_build(), 0u);
}

TEST(Fingerprint, NobodyIsNamedWhereAllAgree) {
  EXPECT_THAT(disagreements({{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}), IsEmpty());
  EXPECT_THAT(disagreements({{1, 2, 3, 4, 5}, {1, 2, 3, 5, 5}, {1, 9, 3, 5, 6}}),
              ElementsAre("ranks 1, 2 have another build of espalier than rank 0",
                          "rank 2 has another topology than rank 0",
                          "rank 2 has another memory or transport than rank 0"));
}

}  // namespace
}  // namespace espalier

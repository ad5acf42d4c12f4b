// SPDX-License-Identifier: Apache-2.0
// Machines of several NUMA nodes, made up in files; the processors are those of this computer.
#include "exec/host/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "exec/host/host_backend.h"
#include "exec/host/host_data.h"
#include "tests/exec/test_programs.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// A folder as /sys/devices/system/node is, with these processors by node.
std::filesystem::path node_folder(const std::string& name,
                                  const std::map<int, std::string>& nodes) {
  const std::filesystem::path folder = temp_file(name);
  std::filesystem::remove_all(folder);
  for (const auto& [number, list] : nodes) {
    const auto node = folder / ("node" + std::to_string(number));
    std::filesystem::create_directories(node);
    std::ofstream(node / "cpulist") << list << '\n';
  }
  std::filesystem::create_directories(folder / "power");
  std::ofstream(folder / "online") << "0-1\n";
  return folder;
}

/// Two nodes that have a processor of this process each; the same one when there is no other.
std::vector<NumaNode> two_nodes() {
  const std::vector<int> allowed = allowed_processors();
  return {{0, {allowed.front()}}, {3, {allowed.back()}}};
}

TEST(NumaNodes, AreThoseWithProcessorsOfThisProcess) {
  const auto folder =
      node_folder("nodes", {{10, "12-15,28"}, {0, "0-3,16-19"}, {1, "4-7"}, {2, ""}, {4, "x-9"}});
  const auto nodes = numa_nodes({1, 2, 3, 17, 12, 28}, folder);
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[0].number, 0);
  EXPECT_THAT(nodes[0].processors, ElementsAre(1, 2, 3, 17));
  EXPECT_EQ(nodes[1].number, 10);
  EXPECT_THAT(nodes[1].processors, ElementsAre(12, 28));
  EXPECT_THAT(numa_nodes({1}, folder / "nowhere"), IsEmpty());
  EXPECT_THAT(numa_nodes({}, folder), IsEmpty());
}

TEST(NumaPlan, DividesRanksHostsAndThreadsByProcessors) {
  Builder builder("places", test_contract(Collective::allreduce, 6, 1));
  builder.add_host();
  builder.add_host();
  const Program program = builder.finish();
  const NumaPlan plan = spread_over_nodes(program, {{0, {0, 1}}, {1, {2}}}, 8);
  EXPECT_THAT(plan.node_of_place, ElementsAre(0, 0, 0, 0, 1, 1, 0, 1));
  EXPECT_THAT(plan.threads, ElementsAre(5, 3));  // one each, and 6 as 4 and 2
  EXPECT_THAT(
      describe(program, plan, plan.threads),
      ElementsAre("NUMA node 0: r0-r3, h0; 5 threads", "NUMA node 1: r4-r5, h1; 3 threads"));
}

TEST(NumaPlan, UsesNoMoreNodesThanThereAreThreadsOrRanks) {
  const Program program = ring_program(3, false);
  const std::vector<NumaNode> four{{0, {0}}, {1, {1}}, {2, {2}}, {3, {3}}};
  EXPECT_THAT(spread_over_nodes(program, four, 8).nodes, SizeIs(3));
  EXPECT_THAT(spread_over_nodes(program, four, 2).threads, ElementsAre(1, 1));
  EXPECT_THAT(spread_over_nodes(program, four, 1).nodes, IsEmpty());
  EXPECT_THAT(spread_over_nodes(program, {{0, {0, 1}}}, 8).nodes, IsEmpty());
  EXPECT_THAT(spread_over_nodes(program, {}, 8).nodes, IsEmpty());
}

TEST(PinnedThread, StaysOnItsProcessorsUntilItsEnd) {
  const std::vector<int> before = allowed_processors();
  ASSERT_FALSE(before.empty());
  {
    const PinnedThread pinned({before.back()});
    if (!pinned.is_as_wanted()) GTEST_SKIP() << "this system does not let threads be pinned";
    EXPECT_THAT(allowed_processors(), ElementsAre(before.back()));
  }
  EXPECT_EQ(allowed_processors(), before);
}

TEST(PinnedThread, GoesOnWhereTheSystemRefuses) {
  const std::vector<int> before = allowed_processors();
  const PinnedThread pinned({8000});  // there is no such processor
  EXPECT_FALSE(pinned.is_as_wanted());
  EXPECT_EQ(allowed_processors(), before);
}

TEST(PreferNode, RefusalsAreAnAnswer) {
  std::byte* const nothing = nullptr;
  EXPECT_FALSE(prefer_node(nothing + 1, 4096, 0));  // not at the beginning of a page
}

// The lanes of a place run on the processors of its node, and on the threads of it only.
TEST(Numa, LanesRunOnTheNodeOfTheirPlace) {
  const Program program = ring_program(7, false);
  const LanePrograms lowered = lower(program, 7, 4);
  const NumaPlan plan = spread_over_nodes(program, two_nodes(), 4);
  ASSERT_THAT(plan.nodes, SizeIs(2));
  std::atomic<int> elsewhere{0};
  std::atomic<std::size_t> calls{0};
  LaneRunner runner(
      program, lowered,
      [&](OpId id) {
        const auto place = static_cast<std::size_t>(program.ops[id].at);
        const auto node = static_cast<std::size_t>(plan.node_of_place[place]);
        if (allowed_processors() != plan.nodes[node].processors) ++elsewhere;
        ++calls;
      },
      4, plan);
  for (int run = 0; run < 20; ++run) runner.run(60);
  EXPECT_EQ(calls, 20 * program.ops.size());
  EXPECT_THAT(runner.threads_by_node(), ElementsAre(2, 2));
  if (runner.is_pinned()) {
    EXPECT_EQ(elsewhere, 0);
  }
}

TEST(Numa, ADeadlockAcrossNodesIsNoticedAtOnce) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 2, 1);
  add_marker(program, 0, {1});
  add_marker(program, 1, {0});
  const LanePrograms lowered = lower(program, 1, 4);
  LaneRunner runner(
      program, lowered, [](OpId) {}, 2, spread_over_nodes(program, two_nodes(), 2));
  for (int run = 0; run < 2; ++run) EXPECT_THROW(runner.run(3600), Error);
}

TEST(Numa, LanesThatComputeGoOnOnTheirNode) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 2, 1);
  add_marker(program, 0, {}, 0.05);
  add_marker(program, 1, {0}, 0.05);
  add_marker(program, 0, {1}, 0.05);
  const LanePrograms lowered = lower(program, 1, 4);
  LaneRunner runner(
      program, lowered, [](OpId) {}, 2, spread_over_nodes(program, two_nodes(), 2));
  EXPECT_GE(runner.run(60), 0.15);
}

// Small buffers and such as have pages of their own, up to huge ones.
TEST(Numa, MemoryOnNodesHoldsWhatItShould) {
  for (const std::int64_t elements : {7, 5000, 2 << 20}) {
    const Program program = flat_program(3, false);
    const HostData data{program, ElementLayout(program.contract, elements), DataType::int32,
                        ReduceOp::sum, 2};
    const LanePrograms lowered = lower(program, elements, 4);
    const NumaPlan plan = spread_over_nodes(program, two_nodes(), 2);
    HostMemory memory(lowered, plan);
    fill_memory(data, memory);
    LaneRunner(program, lowered, combine_on(data, lowered, memory), 2, plan).run(60);
    EXPECT_EQ(check_memory(data, memory).wrong, 0) << elements;
  }
}

TEST(Numa, ReportsSayWhatIsWhere) {
  const std::vector<int> allowed = allowed_processors();
  const auto folder = node_folder(
      "report", {{0, std::to_string(allowed.front())}, {1, std::to_string(allowed.back())}});
  HostBackend backend(3, folder);
  for (const bool in_place : {false, true}) {
    const RunReport report =
        backend.run(ring_program(4, in_place), {}, {.size_bytes = 1 << 16, .iterations = 3});
    EXPECT_EQ(report.executed->wrong, 0);
    // What the system refuses, if anything, is told after these.
    ASSERT_GE(report.executed->notes.size(), 2U);
    EXPECT_EQ(report.executed->notes[0], "NUMA node 0: r0-r1; 2 threads");
    EXPECT_EQ(report.executed->notes[1], "NUMA node 1: r2-r3; 1 thread");
  }
  const auto one = node_folder("one", {{0, "0-4095"}});
  EXPECT_THAT(
      HostBackend(3, one).run(ring_program(4, false), {}, {.size_bytes = 4}).executed->notes,
      IsEmpty());
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What is wrong with a scenario: tests/bad/scenarios. Here: what a right one means.
#include "scenarios/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Scenario parse(const std::string& block) {
  return parse_scenario(
      "schema: espalier.scenario/1\nname: n\ntitle: t\nnote: why\nblocks:\n  - title: b\n" + block,
      "test.yaml");
}

TEST(Scenario, KeepsItsNames) {
  const Scenario scenario = parse(
      "    topology: full:n=2\n    collective: allreduce\n    sizes: 1MiB\n    note: because\n");
  EXPECT_EQ(scenario.name, "n");
  EXPECT_EQ(scenario.title, "t");
  EXPECT_EQ(scenario.note, "why");
  ASSERT_EQ(scenario.blocks.size(), 1u);
  EXPECT_EQ(scenario.blocks[0].title, "b");
  EXPECT_EQ(scenario.blocks[0].note, "because");
  EXPECT_FALSE(scenario.blocks[0].execute.has_value());
}

TEST(Scenario, DefaultsAreThoseOfTheCommandLine) {
  const Scenario scenario =
      parse("    topology: full:n=2\n    collective: gather\n    sizes: 1MiB\n");
  ASSERT_EQ(scenario.blocks[0].tables.size(), 1u);
  const std::vector<Query>& table = scenario.blocks[0].tables[0];
  std::vector<std::string> algorithms;
  for (const Query& query : table) algorithms.push_back(query.algorithm);
  EXPECT_EQ(algorithms, Study::applicable(Collective::gather));
  EXPECT_EQ(table[0].profile, "kernel");
  EXPECT_EQ(table[0].links, LinkScope::all);
  EXPECT_EQ(table[0].root, 0);
  EXPECT_FALSE(table[0].in_place);
  EXPECT_FALSE(table[0].chunk_bytes.has_value());
  EXPECT_THAT(table[0].gpus, IsEmpty());
}

TEST(Scenario, ReadsEveryField) {
  const Scenario scenario = parse(
      "    topology: 'ring:n=4,host_gbps=8'\n    gpus: 1-3\n    collective: broadcast\n    root: "
      "2\n"
      "    sizes: 4KiB\n    algorithms: chain\n    profile: copy_engine\n    links: fabric\n"
      "    chunk: 1KiB\n    in_place: true\n    execute: {size: 1MiB, algorithm: direct}\n");
  const Query& query = scenario.blocks[0].tables.at(0).at(0);
  EXPECT_EQ(query.topology, "ring:n=4,host_gbps=8");
  EXPECT_THAT(query.gpus, ElementsAre(1, 2, 3));
  EXPECT_EQ(query.collective, Collective::broadcast);
  EXPECT_EQ(query.root, 2);
  EXPECT_EQ(query.size_bytes, 4096);
  EXPECT_EQ(query.algorithm, "chain");
  EXPECT_EQ(query.profile, "copy_engine");
  EXPECT_EQ(query.links, LinkScope::fabric);
  EXPECT_EQ(query.chunk_bytes, 1024);
  EXPECT_TRUE(query.in_place);
  ASSERT_TRUE(scenario.blocks[0].execute.has_value());
  EXPECT_EQ(scenario.blocks[0].execute->backend, "host");
  EXPECT_EQ(scenario.blocks[0].execute->size_bytes, 1 << 20);
  EXPECT_EQ(scenario.blocks[0].execute->algorithm, "direct");
}

TEST(Scenario, BestAlgorithmIsChosenLater) {
  const Scenario scenario = parse(
      "    topology: full:n=2\n    collective: allreduce\n    sizes: 1MiB\n"
      "    execute: {size: 1MiB, algorithm: best}\n");
  EXPECT_EQ(scenario.blocks[0].execute->algorithm, "");
}

TEST(Scenario, ChunkZeroMeansWholeMessages) {
  const Scenario scenario =
      parse("    topology: full:n=2\n    collective: allreduce\n    sizes: 1MiB\n    chunk: 0\n");
  EXPECT_EQ(scenario.blocks[0].tables[0][0].chunk_bytes, 0);
}

TEST(Scenario, EveryCombinationIsAsked) {
  const Scenario scenario = parse(
      "    topology: [full:n=4, ring:n=4]\n    gpus: ['0-1', [2, 3], all]\n    collective: "
      "allreduce\n"
      "    sizes: [1KiB..4KiB, 1MB]\n    algorithms: [ring, chain]\n");
  // 2 machines x 3 sets; in each 4 sizes x 2 algorithms.
  const auto& tables = scenario.blocks[0].tables;
  ASSERT_EQ(tables.size(), 6u);
  EXPECT_THAT(tables[0][0].gpus, ElementsAre(0, 1));
  EXPECT_THAT(tables[1][0].gpus, ElementsAre(2, 3));
  EXPECT_THAT(tables[2][0].gpus, IsEmpty());
  EXPECT_EQ(tables[2][0].topology, "full:n=4");
  EXPECT_EQ(tables[3][0].topology, "ring:n=4");
  std::vector<std::int64_t> sizes;
  std::vector<std::string> algorithms;
  for (const Query& query : tables[5]) {
    sizes.push_back(query.size_bytes);
    algorithms.push_back(query.algorithm);
  }
  EXPECT_THAT(sizes, ElementsAre(1024, 1024, 2048, 2048, 4096, 4096, 1000000, 1000000));
  EXPECT_THAT(algorithms,
              ElementsAre("ring", "chain", "ring", "chain", "ring", "chain", "ring", "chain"));
}

TEST(Scenario, NumbersAreOneSet) {
  const Scenario scenario = parse(
      "    topology: full:n=4\n    gpus: [3, 0]\n    collective: allreduce\n    sizes: 1MiB\n");
  ASSERT_EQ(scenario.blocks[0].tables.size(), 1u);
  EXPECT_THAT(scenario.blocks[0].tables[0][0].gpus, ElementsAre(3, 0));
}

TEST(Scenario, PathsCountFromTheScenario) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "espalier_scenario_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mine.yaml")
      << "schema: espalier.topology/1\nname: mine\ntitle: two\nnodes:\n"
         "  - {name: 'gpu[0-1]', kind: gpu}\nlinks:\n  - {a: gpu0, b: gpu1, kind: nvlink2, gbps: "
         "25}\n";
  const Scenario scenario = parse_scenario(
      "schema: espalier.scenario/1\nname: n\ntitle: t\nblocks:\n"
      "  - {title: b, topology: ./mine.yaml, collective: allreduce, sizes: 1MiB}\n",
      (folder / "study.yaml").string());
  EXPECT_EQ(scenario.blocks[0].tables[0][0].topology, (folder / "mine.yaml").string());
  std::filesystem::remove_all(folder);
}

TEST(Scenario, BuiltInOnesAreWhole) {
  std::set<std::string> names;
  for (const ScenarioEntry& entry : builtin_scenarios()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second) << "two of one name";
    EXPECT_FALSE(entry.title.empty());
    EXPECT_EQ(parse_scenario(entry.yaml, entry.name).name, entry.name);
  }
  EXPECT_TRUE(names.contains("quickstart"));
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What is wrong with a scenario: tests/bad/scenarios. Here: what a right one means.
#include "scenarios/scenario.h"
#include "tests/temp_file.h"

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

/// Of the first block.
const CollectiveStudy& collectives(const Scenario& scenario) {
  return std::get<CollectiveStudy>(scenario.blocks[0].study);
}
const TrainingStudy& training(const Scenario& scenario) {
  return std::get<TrainingStudy>(scenario.blocks[0].study);
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
  EXPECT_FALSE(collectives(scenario).execute.has_value());
}

TEST(Scenario, DefaultsAreThoseOfTheCommandLine) {
  const Scenario scenario =
      parse("    topology: full:n=2\n    collective: gather\n    sizes: 1MiB\n");
  ASSERT_EQ(collectives(scenario).tables.size(), 1u);
  const std::vector<Query>& table = collectives(scenario).tables[0];
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

TEST(Scenario, ExpectingASpeedUpAsksForNccl) {
  const std::string block =
      "    topology: dgx-a100\n    collective: allreduce\n    sizes: 1KiB\n    algorithms: ring\n";
  const auto first = [](const Scenario& scenario) { return collectives(scenario).tables[0][0]; };
  EXPECT_FALSE(first(parse(block)).against_nccl);
  EXPECT_EQ(first(parse(block)).launch, LaunchMode::per_gpu);
  EXPECT_TRUE(first(parse(block + "    vs_nccl: true\n")).against_nccl);
  EXPECT_EQ(first(parse(block + "    launch: single\n")).launch, LaunchMode::single);
  const Scenario scenario = parse(
      block + "    expect: {title: t, measure: speedup, of: {algorithm: ring}, at_least: 1.2}\n");
  EXPECT_TRUE(first(scenario).against_nccl);
  EXPECT_EQ(scenario.blocks[0].expectations[0].measure, Measure::speedup);
}

TEST(Scenario, ReadsEveryField) {
  const Scenario scenario = parse(
      "    topology: 'ring:n=4,host_gbps=8'\n    gpus: 1-3\n    collective: broadcast\n    root: "
      "2\n"
      "    sizes: 4KiB\n    algorithms: chain\n    profile: copy_engine\n    links: fabric\n"
      "    chunk: 1KiB\n    in_place: true\n    execute: {size: 1MiB, algorithm: direct}\n");
  const Query& query = collectives(scenario).tables.at(0).at(0);
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
  ASSERT_TRUE(collectives(scenario).execute.has_value());
  EXPECT_EQ(collectives(scenario).execute->backend, "host");
  EXPECT_EQ(collectives(scenario).execute->size_bytes, 1 << 20);
  EXPECT_EQ(collectives(scenario).execute->algorithm, "direct");
}

TEST(Scenario, BestAlgorithmIsChosenLater) {
  const Scenario scenario = parse(
      "    topology: full:n=2\n    collective: allreduce\n    sizes: 1MiB\n"
      "    execute: {size: 1MiB, algorithm: best}\n");
  EXPECT_EQ(collectives(scenario).execute->algorithm, "");
}

TEST(Scenario, ChunkZeroMeansWholeMessages) {
  const Scenario scenario =
      parse("    topology: full:n=2\n    collective: allreduce\n    sizes: 1MiB\n    chunk: 0\n");
  EXPECT_EQ(collectives(scenario).tables[0][0].chunk_bytes, 0);
}

TEST(Scenario, EveryCombinationIsAsked) {
  const Scenario scenario = parse(
      "    topology: [full:n=4, ring:n=4]\n    gpus: ['0-1', [2, 3], all]\n    collective: "
      "allreduce\n"
      "    sizes: [1KiB..4KiB, 1MB]\n    algorithms: [ring, chain]\n");
  // 2 machines x 3 sets; in each 4 sizes x 2 algorithms.
  const auto& tables = collectives(scenario).tables;
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

TEST(Scenario, WhatIsListedTwiceIsAskedOnce) {
  const Scenario collectives = parse(
      "    topology: ['ring:n=4', 'ring:n=4']\n    gpus: [\"0-1\", \"0,1\", \"0-2\"]\n"
      "    collective: allreduce\n    sizes: [1KiB, 1KiB]\n    algorithms: [ring, ring]\n    "
      "profile: [ideal, ideal]\n");
  const auto& tables = std::get<CollectiveStudy>(collectives.blocks.at(0).study).tables;
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].size(), 1U);
  const Scenario trained = parse(
      "    topology: 'ring:n=4'\n    training:\n      models: [lenet, lenet]\n      batch: 5\n"
      "      compute_ms: 2.5\n      gpu_counts: [2, 2, 4]\n      overlap: [true, true]\n");
  ASSERT_EQ(training(trained).tables.size(), 1U);
  EXPECT_EQ(training(trained).tables[0].gpu_sets.size(), 2U);
}

TEST(Scenario, NumbersAreOneSet) {
  const Scenario scenario = parse(
      "    topology: full:n=4\n    gpus: [3, 0]\n    collective: allreduce\n    sizes: 1MiB\n");
  ASSERT_EQ(collectives(scenario).tables.size(), 1u);
  EXPECT_THAT(collectives(scenario).tables[0][0].gpus, ElementsAre(3, 0));
}

TEST(Scenario, PathsCountFromTheScenario) {
  const auto folder = std::filesystem::path(temp_file("scenario_test"));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "mine.yaml")
      << "schema: espalier.topology/1\nname: mine\ntitle: two\nnodes:\n"
         "  - {name: 'gpu[0-1]', kind: gpu}\nlinks:\n  - {a: gpu0, b: gpu1, kind: nvlink2, gbps: "
         "25}\n";
  const Scenario scenario = parse_scenario(
      "schema: espalier.scenario/1\nname: n\ntitle: t\nblocks:\n"
      "  - {title: b, topology: ./mine.yaml, collective: allreduce, sizes: 1MiB}\n",
      (folder / "study.yaml").string());
  EXPECT_EQ(collectives(scenario).tables[0][0].topology, (folder / "mine.yaml").string());
  std::filesystem::remove_all(folder);
}

TEST(Scenario, EveryProfileIsATable) {
  const Scenario scenario = parse(
      "    topology: [full:n=4, ring:n=4]\n    gpus: ['0-1', all]\n    collective: allreduce\n"
      "    sizes: 1MiB\n    algorithms: ring\n    profile: [copy_engine, ideal]\n"
      "    expect: {title: t, of: {topology: ring:n=4, gpus: all, profile: ideal}, at_least: 0}\n");
  std::vector<std::string> asked;
  for (const auto& table : collectives(scenario).tables) {
    asked.push_back(table[0].topology + " " + std::to_string(table[0].gpus.size()) + " " +
                    table[0].profile);
  }
  EXPECT_THAT(asked,
              ElementsAre("full:n=4 2 copy_engine", "full:n=4 2 ideal", "full:n=4 0 copy_engine",
                          "full:n=4 0 ideal", "ring:n=4 2 copy_engine", "ring:n=4 2 ideal",
                          "ring:n=4 0 copy_engine", "ring:n=4 0 ideal"));
  ASSERT_EQ(scenario.blocks[0].expectations.size(), 1u);
  const auto& expected = std::get<ExpectedFigure>(scenario.blocks[0].expectations[0].result);
  EXPECT_EQ(expected.of.table, 7u);
}

TEST(Scenario, TrainingDefaultsAreThoseOfTheCommandLine) {
  const Scenario scenario = parse("    topology: dgx1-v100\n    training: {models: resnet50}\n");
  ASSERT_EQ(training(scenario).tables.size(), 1u);
  const std::vector<TrainingQuery> queries = training(scenario).tables[0].queries();
  ASSERT_EQ(queries.size(), 1u);
  const TrainingQuery& query = queries[0];
  EXPECT_EQ(query.model->name, "resnet50");
  EXPECT_EQ(query.exchange.algorithm, "ring");
  EXPECT_EQ(query.exchange.profile, "kernel");
  EXPECT_EQ(query.exchange.links, LinkScope::all);
  EXPECT_FALSE(query.exchange.chunk_bytes.has_value());
  EXPECT_THAT(query.exchange.gpus, IsEmpty());
  EXPECT_EQ(query.fusion_bytes, 64 << 20);
  EXPECT_EQ(query.type, DataType::float32);
  EXPECT_TRUE(query.overlap);
  const StepTime& step = find_step(*query.model, "v100-sxm2", std::nullopt);
  EXPECT_EQ(query.batch, step.batch);
  EXPECT_EQ(query.step_s, step.step_s);
  EXPECT_EQ(query.step_source, step.source);
}

TEST(Scenario, TrainingReadsEveryField) {
  const Scenario scenario = parse(
      "    topology: 'ring:n=4'\n    gpus: [3, 1, 0]\n    relay: all\n    links: fabric\n"
      "    chunk: 1KiB\n    profile: ideal\n    algorithms: knomial+chain\n"
      "    training:\n      models: lenet\n      batch: 5\n      compute_ms: 2.5\n"
      "      gpu_counts: 2\n      fusion: 3KiB\n      overlap: false\n      dtype: half\n");
  const TrainingSweep& sweep = training(scenario).tables.at(0);
  EXPECT_EQ(sweep.ranks, 3);
  const TrainingQuery query = sweep.queries().at(0);
  EXPECT_THAT(query.exchange.gpus, ElementsAre(3, 1));
  EXPECT_THAT(query.exchange.relays, ElementsAre(2));
  EXPECT_EQ(query.exchange.links, LinkScope::fabric);
  EXPECT_EQ(query.exchange.chunk_bytes, 1024);
  EXPECT_EQ(query.exchange.profile, "ideal");
  EXPECT_EQ(query.exchange.algorithm, "knomial+chain");
  EXPECT_EQ(query.batch, 5);
  EXPECT_DOUBLE_EQ(query.step_s, 2.5e-3);
  EXPECT_EQ(query.step_source, "as given");
  EXPECT_EQ(query.fusion_bytes, 3072);
  EXPECT_FALSE(query.overlap);
  EXPECT_EQ(query.type, DataType::float16);
}

TEST(Scenario, TrainingTakesTheStepTimeOfAnotherGpu) {
  const Scenario scenario = parse(
      "    topology: dgx1-p100\n    training: {models: resnet50, gpu_type: gk210, batch: 32}\n");
  const TrainingQuery& query = training(scenario).tables.at(0).question;
  EXPECT_EQ(query.step_s, find_step(*query.model, "gk210", 32).step_s);
}

TEST(Scenario, EveryCombinationIsTrained) {
  const Scenario scenario = parse(
      "    topology: [dgx1-v100, dgx1-p100]\n    profile: [kernel, ideal]\n"
      "    algorithms: [ring, optimal]\n"
      "    training:\n      models: [resnet50, vgg16]\n      gpu_counts: [2, 4]\n"
      "      fusion: [0, 64MiB]\n      overlap: [true, false]\n"
      "    expect:\n      title: t\n      at_least: 0\n"
      "      of: {topology: dgx1-p100, profile: ideal, model: vgg16, overlap: false,\n"
      "           gpu_count: 4, fusion: 64MiB, algorithm: optimal}\n");
  const auto& tables = training(scenario).tables;
  ASSERT_EQ(tables.size(), 16u) << "2 machines x 2 profiles x 2 models x with and without overlap";
  const auto describe = [](const TrainingQuery& query) {
    return query.exchange.topology + " " + query.exchange.profile + " " + query.model->name +
           (query.overlap ? " overlapped" : "");
  };
  EXPECT_EQ(describe(tables[0].question), "dgx1-v100 kernel resnet50 overlapped");
  EXPECT_EQ(describe(tables[1].question), "dgx1-v100 kernel resnet50");
  EXPECT_EQ(describe(tables[2].question), "dgx1-v100 kernel vgg16 overlapped");
  EXPECT_EQ(describe(tables[4].question), "dgx1-v100 ideal resnet50 overlapped");
  EXPECT_EQ(describe(tables[15].question), "dgx1-p100 ideal vgg16");
  EXPECT_EQ(tables[15].queries().size(), 8u) << "2 sets of GPUs x 2 buffers x 2 algorithms";
  const ExpectedResult& expectation = scenario.blocks[0].expectations.at(0);
  EXPECT_EQ(expectation.measure, Measure::samples_per_s);
  const Figure& figure = std::get<ExpectedFigure>(expectation.result).of;
  EXPECT_EQ(figure.table, 15u);
  EXPECT_EQ(figure.query, 7u);
}

TEST(Scenario, FiguresOfTrainingNameTheSetOfGpusAndHowManyOfIt) {
  const Scenario scenario = parse(
      "    topology: dgx1-v100\n    gpus: ['0-3', '4-7']\n"
      "    training: {models: resnet50, gpu_counts: [2, 4]}\n"
      "    expect: {title: t, at_least: 0, of: {gpus: '4-7', gpu_count: 2}}\n");
  const Figure& figure = std::get<ExpectedFigure>(scenario.blocks[0].expectations.at(0).result).of;
  EXPECT_EQ(figure.table, 1u);
  EXPECT_EQ(figure.query, 0u);
  EXPECT_THAT(training(scenario).tables[1].queries()[0].exchange.gpus, ElementsAre(4, 5));
}

TEST(Scenario, ReadsIntervalsAndOrders) {
  const Scenario scenario = parse(
      "    topology: full:n=4\n    collective: allreduce\n    sizes: [1MiB, 2MiB, 4MiB]\n"
      "    algorithms: ring\n    expect:\n"
      "      - {title: a, measure: time_s, of: {size: 1MiB}, paper: [1, 2.5], tolerance: 10%}\n"
      "      - {title: b, measure: time_s, order: [{size: 4MiB}, {size: 1MiB}], factor: 1.5}\n");
  const auto& expectations = scenario.blocks[0].expectations;
  ASSERT_EQ(expectations.size(), 2u);
  const PaperFigure paper = std::get<ExpectedFigure>(expectations[0].result).paper.value();
  EXPECT_EQ(paper.minimum, 1);
  EXPECT_EQ(paper.maximum, 2.5);
  EXPECT_DOUBLE_EQ(paper.tolerance, 0.1);
  const auto& order = std::get<ExpectedOrder>(expectations[1].result);
  ASSERT_EQ(order.figures.size(), 2u);
  EXPECT_EQ(order.figures[0].query, 2u);
  EXPECT_EQ(order.figures[1].query, 0u);
  EXPECT_EQ(order.factor, 1.5);
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

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;

Scenario scenario(const std::string& execute) {
  return parse_scenario(R"(schema: espalier.scenario/1
name: mine
title: Two GPUs
blocks:
  - title: A block
    topology: "ring:n=2,gbps=10"
    profile: ideal
    collective: allreduce
    sizes: [1KB, 1MB]
    algorithms: [ring, halving_doubling]
    execute: )" + execute + R"(
    expect:
      - {title: busbw, measure: busbw_gbps, of: {algorithm: ring, size: 1MB}, at_least: 9.9}
)",
                        "mine.yaml");
}

TEST(ScenarioRunner, TellsWhatHappensInOrder) {
  std::vector<std::string> events;
  ScenarioObserver observer;
  observer.begins = [&](std::size_t questions, std::size_t known) {
    events.push_back("begins " + std::to_string(questions) + " " + std::to_string(known));
  };
  observer.scenario_begins = [&](const Scenario& one) { events.push_back(one.name); };
  observer.block_begins = [&](const ScenarioBlock& block) { events.push_back(block.title); };
  observer.table_begins = [&](const TableHead& head) {
    events.push_back("table of " + std::to_string(head.queries.size()));
  };
  observer.answered = [&](const Outcome& one) { events.push_back(one.query.algorithm); };
  observer.table_ends = [&](const Answers& answers) {
    events.push_back("best " + answers.best()->query.algorithm);
  };
  observer.executed = [&](const Outcome& apart, const Outcome& in_place) {
    events.push_back("executed " + std::to_string(apart.report.wrong_elements()) + " " +
                     std::to_string(in_place.report.wrong_elements()));
  };
  observer.block_ends = [&](const ScenarioBlock&, const std::vector<Judged>& judged) {
    events.push_back("judged " + std::to_string(judged.size()));
  };
  observer.scenario_ends = [&](const Scenario&, const ScenarioResults&) {
    events.emplace_back("end");
  };
  const ScenarioResults results = run_scenarios({scenario("{size: 4KiB}")}, scenario_backends(),
                                                {.sweep = {.jobs = 1}}, observer);
  EXPECT_THAT(events, ElementsAre("begins 4 0", "mine", "A block", "table of 4", "ring",
                                  "halving_doubling", "ring", "halving_doubling", "best ring",
                                  "executed 0 0", "judged 1", "end"));
  EXPECT_TRUE(results.all_right());
  EXPECT_EQ(results.answers.outcomes.size(), 6U);
}

TEST(ScenarioRunner, AnUnknownBackEndIsWrongInput) {
  const auto said = [](const std::string& execute) {
    return error_of([&] { run_scenarios({scenario(execute)}, scenario_backends()); },
                    ErrorKind::input);
  };
  EXPECT_EQ(said("{size: 4KiB, backend: hots}"),
            "mine.yaml:11:36: error: unknown backend 'hots'\n  help: did you mean 'host'?");
  EXPECT_EQ(said("{size: 4KiB, backend: sim}"),
            "mine.yaml:11:36: error: back end 'sim' predicts, and 'execute' needs real data\n"
            "  help: a back end that executes, such as host");
}

TEST(ScenarioRunner, ABackEndThatIsNotHereIsAnAnswer) {
  ScenarioBackends backends = scenario_backends();
  backends.make_executor = [](const std::string&) -> std::unique_ptr<Backend> {
    throw Error(ErrorKind::unsupported, "no threads today");
  };
  const ScenarioResults results =
      run_scenarios({scenario("{size: 4KiB}")}, backends, {.sweep = {.jobs = 1}});
  EXPECT_EQ(results.answers.outcomes.size(), 4U);
  ASSERT_EQ(results.answers.skipped.size(), 1U);
  EXPECT_EQ(results.answers.skipped[0].reason, "no threads today");
  EXPECT_TRUE(results.all_right());
}

}  // namespace
}  // namespace espalier

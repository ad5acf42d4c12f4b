// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "backends.h"
#include "core/file.h"
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
  const ScenarioResults results =
      run_scenarios({scenario("{size: 4KiB}")}, scenario_backends(), {.jobs = 1}, observer);
  EXPECT_THAT(events, ElementsAre("begins 4 0", "mine", "A block", "table of 4", "ring",
                                  "halving_doubling", "ring", "halving_doubling", "best ring",
                                  "executed 0 0", "judged 1", "end"));
  EXPECT_TRUE(results.all_right());
  EXPECT_EQ(results.answers.outcomes.size(), 6U);
}

/// Who looks at no details gets the same answers, those of the largest messages with their links,
/// and of blocks that expect something of links all of them.
TEST(ScenarioRunner, LeavesOutDetailsThatNobodyLooksAt) {
  const Scenario asked = parse_scenario(R"(schema: espalier.scenario/1
name: details
title: Details
blocks:
  - title: Times
    topology: dgx1-v100
    collective: allreduce
    sizes: [64KiB, 64MiB]
    algorithms: [ring, double_binary_tree]
  - title: Links
    topology: dgx1-v100
    collective: allreduce
    sizes: [64KiB, 64MiB]
    algorithms: [ring, double_binary_tree]
    expect:
      - {title: links, measure: used_links, of: {algorithm: ring, size: 64KiB}, at_least: 9}
)",
                                        "details.yaml");
  struct Seen {
    std::vector<double> times_s;
    std::vector<std::size_t> links;
    std::vector<std::size_t> steps;
    bool as_expected = false;
  };
  const auto run = [&](const SweepOptions& options) {
    Seen seen;
    ScenarioObserver observer;
    observer.answered = [&](const Outcome& one) {
      seen.times_s.push_back(one.report.time_s);
      seen.links.push_back(one.report.simulated->links.size());
      seen.steps.push_back(one.report.simulated->critical_path.size());
    };
    seen.as_expected =
        run_scenarios({asked}, scenario_backends(), options, observer).judged.at(0).as_expected();
    return seen;
  };
  const Seen all = run({.jobs = 1});
  const Seen some = run({.jobs = 1, .keep_details = false});
  ASSERT_EQ(all.times_s.size(), 8U);
  ASSERT_EQ(some.times_s.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(some.times_s[i], all.times_s[i], 1e-9 * all.times_s[i]) << i;
    EXPECT_GT(all.steps[i], 0U) << i;
    if (i < 2) continue;  // of small messages, about times alone
    EXPECT_EQ(some.steps[i], all.steps[i]) << i;
    EXPECT_EQ(some.links[i], all.links[i]) << i;
  }
  EXPECT_EQ(some.steps[0], 0U);  // of lanes around a ring one is simulated
  EXPECT_TRUE(all.as_expected);
  EXPECT_TRUE(some.as_expected);
  const std::string journal = testing::TempDir() + "details.journal";
  std::remove(journal.c_str());
  EXPECT_EQ(run({.jobs = 1, .journal = journal, .keep_details = false}).steps, all.steps);
}

/// The fastest of a table may be of another size than the largest: here, larger messages than FIFOs
/// hold get stuck, as rank 1 does not take anything out before all has been sent.
TEST(ScenarioRunner, DrawsAllLinksOfTheFastestWhereLargerMessagesHaveNoAnswer) {
  std::string program = "program stuck\ncollective broadcast\nranks 8\nunits 6\n";
  int id = 0;
  for (int unit = 0; unit < 6; ++unit) {
    program += fmt::format("{}: r1.tmp[{}] <- r0.in[{}] lane 0\n", id++, unit, unit);
  }
  for (int unit = 5; unit >= 0; --unit) {
    program +=
        fmt::format("{}: r1.out[{}] <- r1.tmp[{}] lane 0 after {}\n", id++, unit, unit, unit);
  }
  for (int rank = 2; rank < 8; ++rank) {
    program += fmt::format("{}: r{}.out[0:6] <- r0.in[0:6] lane {}\n", id++, rank, rank + 1);
  }
  program += fmt::format("{}: r0.out[0:6] <- r0.in[0:6] lane 1\n", id++);
  const std::string file = testing::TempDir() + "stuck.esp";
  write_file(file, program);
  const Scenario asked = parse_scenario(R"(schema: espalier.scenario/1
name: stuck
title: Stuck
blocks:
  - title: A block
    topology: "switch:n=8"
    profile: nccl
    collective: broadcast
    sizes: [1KiB, 64MiB]
    chunk: 0
    algorithms: [")" + file + "\"]\n",
                                        "stuck.yaml");
  const auto links = [&](bool keep_details) {
    std::vector<std::string> names;
    ScenarioObserver observer;
    observer.table_ends = [&](const Answers& answers) {
      ASSERT_EQ(answers.outcomes.size(), 1U);
      EXPECT_EQ(answers.best()->query.size_bytes, 1024);
      for (const LinkUse& link : answers.best()->report.simulated->links) {
        names.push_back(link.name);
      }
    };
    run_scenarios({asked}, scenario_backends(), {.jobs = 1, .keep_details = keep_details},
                  observer);
    return names;
  };
  EXPECT_GT(links(true).size(), 8U);
  EXPECT_EQ(links(false), links(true));
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
  const ScenarioResults results = run_scenarios({scenario("{size: 4KiB}")}, backends, {.jobs = 1});
  EXPECT_EQ(results.answers.outcomes.size(), 4U);
  ASSERT_EQ(results.answers.skipped.size(), 1U);
  EXPECT_EQ(results.answers.skipped[0].reason, "no threads today");
  EXPECT_TRUE(results.all_right());
}

}  // namespace
}  // namespace espalier

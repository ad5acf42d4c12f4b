// SPDX-License-Identifier: Apache-2.0
// Worker processes, and the journal of what they found out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "cli/journal.h"
#include "cli/records.h"
#include "cli/report.h"
#include "cli/workers.h"
#include "core/file.h"
#include "sim/simulator.h"
#include "tests/cli/spoken.h"
#include "tests/error_of.h"

namespace espalier {
namespace {

class Workers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, Workers, ::testing::Values(1, 2, 7));

/// What a pool answers to tasks 0 to count - 1.
std::map<std::size_t, std::string> answers_of(int workers, std::size_t count,
                                              const WorkerPool::Work& work) {
  std::map<std::size_t, std::string> answers;
  WorkerPool pool(workers, work);
  std::vector<std::size_t> tasks(count);
  for (std::size_t i = 0; i < count; ++i) tasks[i] = count - 1 - i;
  pool.begin(tasks, [&](std::size_t task, const std::string& answer) {
    EXPECT_TRUE(answers.emplace(task, answer).second) << task << " answered twice";
  });
  for (std::size_t task = 0; task < count; ++task) {
    while (!answers.contains(task)) pool.wait(task);
  }
  return answers;
}

TEST_P(Workers, AnswerEveryTask) {
  const auto answers = answers_of(GetParam(), 40, [](std::size_t task) {
    return std::to_string(task) + std::string(task * 10'000, 'x');  // more than a socket holds
  });
  ASSERT_EQ(answers.size(), 40u);
  for (const auto& [task, answer] : answers) {
    EXPECT_EQ(answer, std::to_string(task) + std::string(task * 10'000, 'x'));
  }
}

TEST_P(Workers, KnowWhatWasThereWhenTheyWereMade) {
  const std::vector<int> numbers = {3, 4};
  const auto answers =
      answers_of(GetParam(), 2, [&](std::size_t task) { return std::to_string(numbers[task]); });
  EXPECT_EQ(answers.at(0), "3");
  EXPECT_EQ(answers.at(1), "4");
}

TEST_P(Workers, MayHaveNothingToDo) {
  EXPECT_TRUE(answers_of(GetParam(), 0, [](std::size_t) { return std::string(); }).empty());
}

TEST(WorkerPool, WorksInOtherProcesses) {
  for (const auto& [task, answer] :
       answers_of(2, 3, [](std::size_t) { return std::to_string(getpid()); })) {
    EXPECT_NE(answer, std::to_string(getpid()));
  }
}

TEST(WorkerPool, SaysThatAWorkerDied) {
  const auto error_after = [](void (*end)()) {
    return error_of(
        [&] {
          answers_of(2, 3, [&](std::size_t task) {
            if (task == 1) end();
            return std::string("fine");
          });
        },
        ErrorKind::runtime);
  };
  EXPECT_EQ(error_after([] { raise(SIGKILL); }),
            "error: a worker process ended (signal 9) before it had answered\n"
            "  help: --jobs 1 runs without workers");
  EXPECT_EQ(error_after([] { _exit(7); }),
            "error: a worker process ended (exit code 7) before it had answered\n"
            "  help: --jobs 1 runs without workers");
}

/// Without an end put to them they would sleep on, and so would this test.
TEST(WorkerPool, EndsWorkersThatAreAtWork) {
  std::string process;
  {
    WorkerPool pool(2, [](std::size_t task) {
      if (task > 0) sleep(1000);
      return std::to_string(getpid());
    });
    pool.begin({0, 1, 2}, [&](std::size_t, const std::string& answer) { process = answer; });
    while (process.empty()) pool.wait(0);
  }
  EXPECT_NE(kill(std::stoi(process), 0), 0);
}

// ---- journals

class JournalFile : public WithFiles {
 protected:
  std::string path() const { return file("journal"); }
  std::string refusal() const {
    return error_of([&] { const Journal journal(path()); }, ErrorKind::input);
  }
};

TEST_F(JournalFile, KeepsRecordsByKey) {
  {
    Journal journal(path());
    EXPECT_EQ(journal.size(), 0u);
    journal.note({{"size", 1}}, {{"time", 0.1}});
    journal.note({{"size", 2}}, {{"time", 0.2}});
    journal.note({{"size", 1}}, {{"time", 0.3}});  // the last one counts
    EXPECT_EQ(journal.size(), 2u);
  }
  const Journal journal(path());
  EXPECT_EQ(journal.size(), 2u);
  ASSERT_NE(journal.find({{"size", 1}}), nullptr);
  EXPECT_EQ(*journal.find({{"size", 1}}), Json({{"time", 0.3}}));
  EXPECT_EQ(journal.find({{"size", 3}}), nullptr);
}

TEST_F(JournalFile, DropsALineThatWasCutShort) {
  {
    Journal journal(path());
    journal.note({{"size", 1}}, "one");
  }
  const std::string whole = read_file(path());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    write_file(path(), whole.substr(0, length));
    if (length > 0 && whole.substr(0, length).find('\n') == std::string::npos) {
      EXPECT_NE(refusal().find("it is not a journal"), std::string::npos);
      continue;
    }
    Journal journal(path());
    EXPECT_EQ(journal.size(), 0u);
    journal.note({{"size", 2}}, "two");
    EXPECT_EQ(read_file(path()).back(), '\n');
  }
  EXPECT_EQ(Journal(path()).size(), 1u);
}

TEST_F(JournalFile, LeavesOtherFilesAlone) {
  for (const char* text : {"schema: espalier.scenario/1\n", "no line end", "{\"schema\":\"x\"}\n",
                           "[1]\n", "{\"schema\":\"espalier.journal/1\"}\n{\"key\":1}\n"}) {
    write_file(path(), text);
    EXPECT_NE(refusal().find("name a file of its own"), std::string::npos) << text;
    EXPECT_EQ(read_file(path()), text);
  }
}

TEST_F(JournalFile, HasOneWriter) {
  const Journal journal(path());
  EXPECT_NE(refusal().find("another process is writing it"), std::string::npos);
}

TEST(JournalPath, MustBeAFile) {
  EXPECT_EQ(error_of([] { Journal("/"); }, ErrorKind::input),
            "error: can't keep answers in '/': Is a directory");
}

// ---- records

Query query(const std::string& topology, const std::string& algorithm, std::int64_t size_bytes) {
  Query query;
  query.topology = topology;
  query.algorithm = algorithm;
  query.size_bytes = size_bytes;
  return query;
}

/// Whatever is said of an outcome survives, to the last bit.
TEST(OutcomeRecord, KeepsEverything) {
  Simulator simulator;
  Study study(simulator, &simulator);
  // Bounds of links, no bound, a choice, what does not apply and what has no routes.
  const std::vector<Query> queries = {
      query("dgx1-v100", "optimal", 1000003), query("full:n=1", "ring", 64),
      query("dgx1-v100", "auto", 1 << 20), query("dgx1-v100", "parameter_server", 0),
      query("ring:n=5", "all_pairs", 1 << 20)};
  std::vector<Outcome> outcomes;
  for (const Query& one : queries) outcomes.push_back(study.ask(one));
  const Json record = Json::parse(record_of(outcomes).dump());
  const std::vector<Outcome> read = outcomes_of(record, queries);
  EXPECT_EQ(record_of(read).dump(), record.dump());
  ASSERT_EQ(read.size(), outcomes.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].skipped, outcomes[i].skipped);
    EXPECT_EQ(read[i].report.time_s, outcomes[i].report.time_s);
    EXPECT_EQ(read[i].bound.has_value(), outcomes[i].bound.has_value());
    if (read[i].bound) {
      EXPECT_EQ(read[i].bound->algbw_gbps, outcomes[i].bound->algbw_gbps);
    }
  }
  EXPECT_TRUE(std::isinf(read[1].bound->algbw_gbps));
  EXPECT_FALSE(read[2].chosen.empty());
  // Reports say the same.
  Answers before;
  Answers after;
  for (const Outcome& one : outcomes) before.add(one);
  for (const Outcome& one : read) after.add(one);
  EXPECT_EQ(reports_json(after), reports_json(before));
}

TEST(OutcomeRecord, ThrowsWhatWasThrown) {
  const Error error(ErrorKind::unsupported, {{"R10", "no route", "another one", {"f.yaml", 3, 1}}});
  const Json record = Json::parse(record_of(error).dump());
  EXPECT_EQ(error_of([&] { outcomes_of(record, std::vector<Query>{}); }, ErrorKind::unsupported),
            error.what());
}

// ---- run

class Run : public WithFiles {
 protected:
  /// Tables of both kinds; what does not apply, and an expectation.
  std::string scenario() const {
    write_file(file("study.yaml"), R"(
schema: espalier.scenario/1
name: study
title: A study
blocks:
  - title: Collectives
    topology: ["ring:n=4,gbps=10", dgx1-v100]
    gpus: ["0-3", "0-2"]
    collective: allreduce
    sizes: [64KiB, 1MiB]
    algorithms: [ring, flat_two_stage, auto, parameter_server]
    expect:
      title: it is something
      at_least: 0.1
      of: {topology: dgx1-v100, gpus: "0-3", size: 1MiB, algorithm: ring}
  - title: Training
    topology: dgx1-v100
    training: {models: lenet, compute_ms: 3, batch: 64, gpu_counts: [1, 2, 4]}
    algorithms: [ring, nccl_rings]
)");
    return file("study.yaml");
  }

  /// Reports without the time that they took.
  std::string json_of(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"run", scenario(), "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Spoken spoken = run(words);
    EXPECT_EQ(spoken.code, 0) << spoken.err;
    Json reports = Json::parse(spoken.out);
    for (Json& report : reports) report.erase("wall_s");
    return reports.dump(1);
  }
};

TEST_F(Run, SaysTheSameHoweverManyWork) {
  const std::string alone = json_of({"--jobs", "1"});
  EXPECT_EQ(json_of({"--jobs", "3"}), alone);
  EXPECT_EQ(run({"run", scenario(), "--jobs", "2"}).out,
            run({"run", scenario(), "--jobs", "1"}).out);
}

TEST_F(Run, TakesFromTheJournalWhatItHas) {
  const std::string before = json_of({"--resume", file("j")});
  EXPECT_EQ(json_of({"--resume", file("j")}), before);
  // Nothing is asked again: an answer that is changed in the journal is what comes out.
  std::string journal = read_file(file("j"));
  EXPECT_EQ(std::ranges::count(journal, '\n'), 1 + 4 * 4 + 3 * 2);
  const std::string from = "\"transfers\":24,";
  ASSERT_NE(journal.find(from), std::string::npos);
  journal.replace(journal.find(from), from.size(), "\"transfers\":4242,");
  write_file(file("j"), journal);
  EXPECT_NE(json_of({"--resume", file("j")}).find("\"transfers\": 4242"), std::string::npos);
}

TEST_F(Run, AsksAgainWhereAMachineOrATableHasChanged) {
  const auto machine = [&](int gbps) {
    write_file(file("m.yaml"), fmt::format(R"(
schema: espalier.topology/1
name: m
nodes: [{{name: "gpu[0-1]", kind: gpu}}]
links: [{{a: gpu0, b: gpu1, kind: link, gbps: {}}}]
)",
                                           gbps));
  };
  write_file(file("s.yaml"), R"(
schema: espalier.scenario/1
name: s
title: S
blocks:
  - title: one
    topology: ./m.yaml
    collective: allreduce
    sizes: 8000000
    algorithms: ring
    profile: ideal
)");
  const auto time_s = [&] {
    const Spoken spoken = run({"run", file("s.yaml"), "--resume", file("j"), "--json", "-"});
    EXPECT_EQ(spoken.code, 0) << spoken.err;
    return Json::parse(spoken.out)["time_s"].get<double>();
  };
  // Both ways at once, twice half of the message: 8 MB over the link.
  machine(8);
  EXPECT_NEAR(time_s(), 1e-3, 1e-9);
  machine(16);
  EXPECT_NEAR(time_s(), 0.5e-3, 1e-9);
  machine(8);
  EXPECT_NEAR(time_s(), 1e-3, 1e-9);
}

TEST_F(Run, RefusesAJournalThatIsNone) {
  write_file(file("j"), "something else\n");
  const Spoken spoken = run({"run", scenario(), "--resume", file("j")});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_EQ(spoken.out, "");
  EXPECT_EQ(read_file(file("j")), "something else\n");
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Worker processes, and the journal of what they found out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "core/activity.h"
#include "core/file.h"
#include "report/outcomes.h"
#include "scenarios/journal.h"
#include "scenarios/records.h"
#include "scenarios/workers.h"
#include "sim/simulator.h"
#include "tests/cli/spoken.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"

namespace espalier {
namespace {

class Workers : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, Workers, ::testing::Values(1, 2, 7));

/// Tasks 0 to count - 1, the last one first.
WorkerPool::Tasks count_down(std::size_t count, const WorkerPool::Received& received) {
  const auto open = std::make_shared<std::size_t>(count);
  return {
      .next = [open](std::size_t) { return *open == 0 ? std::nullopt : std::optional(--*open); },
      .request = [](std::size_t task) { return std::to_string(task); },
      .received = received,
      .label = [](std::size_t task) { return "task " + std::to_string(task); }};
}

/// What a pool answers to tasks 0 to count - 1.
std::map<std::size_t, std::string> answers_of(
    int workers, std::size_t count, const std::function<std::string(std::size_t task)>& work) {
  std::map<std::size_t, std::string> answers;
  WorkerPool pool(
      workers, [&](const std::string& request) { return work(std::stoul(request)); },
      count_down(count, [&](std::size_t task, const std::string& answer) {
        EXPECT_TRUE(answers.emplace(task, answer).second) << task << " answered twice";
      }));
  pool.offer();
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

/// Requests may have any bytes.
TEST(WorkerPool, TakesWhatIsAddedLater) {
  std::vector<std::string> requests = {"a", std::string("\0\xff", 2)};
  std::map<std::size_t, std::string> answers;
  std::size_t next = 0;
  WorkerPool pool(
      2, [](const std::string& request) { return request + "!"; },
      {.next =
           [&](std::size_t) {
             return next < requests.size() ? std::optional(next++) : std::nullopt;
           },
       .request = [&](std::size_t task) { return requests[task]; },
       .received = [&](std::size_t task, const std::string& answer) { answers[task] = answer; },
       .label = [](std::size_t task) { return std::to_string(task); }});
  pool.offer();
  while (answers.size() < 2) pool.wait(0);
  requests.emplace_back("later");
  pool.offer();
  while (answers.size() < 3) pool.wait(2);
  for (std::size_t task = 0; task < 3; ++task) EXPECT_EQ(answers.at(task), requests[task] + "!");
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

// The worker is not done before its parent has seen what it is doing.
TEST(WorkerPool, TellsWhatAWorkerIsDoing) {
  const std::string seen = temp_file("seen");
  std::string answered;
  WorkerPool pool(
      2,
      [&](const std::string&) {
        const Activity outer("planning");
        const Activity inner("packing trees");
        for (int ms = 0; ms < 20'000 && !std::filesystem::exists(seen); ++ms) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return std::string(std::filesystem::exists(seen) ? "seen" : "not seen");
      },
      count_down(1, [&](std::size_t, const std::string& answer) { answered = answer; }));
  // A process is copied before it has threads.
  const std::jthread looking([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && Activity::describe() != "planning: packing trees") {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    write_file(seen, "");
  });
  pool.offer();
  while (answered.empty()) pool.wait(0);
  EXPECT_EQ(answered, "seen");
}

TEST(WorkerPool, SaysThatAWorkerDied) {
  const auto error_after = [](void (*end)()) {
    return error_of(
        [&] {
          answers_of(2, 3, [&](std::size_t task) {
            if (task == 0) end();
            return std::string("fine");
          });
        },
        ErrorKind::runtime);
  };
  EXPECT_EQ(error_after([] { raise(SIGKILL); }),
            "error: a worker process ended (signal 9) before it answered task 0\n"
            "  help: --jobs 1 runs without workers");
  EXPECT_EQ(error_after([] { _exit(7); }),
            "error: a worker process ended (exit code 7) before it answered task 0\n"
            "  help: --jobs 1 runs without workers");
}

/// Without an end put to them they would sleep on, and so would this test.
TEST(WorkerPool, EndsWorkersThatAreAtWork) {
  std::string process;
  {
    WorkerPool pool(
        2,
        [](const std::string& request) {
          if (request != "9") sleep(1000);
          return std::to_string(getpid());
        },
        count_down(10, [&](std::size_t, const std::string& answer) { process = answer; }));
    pool.offer();
    while (process.empty()) pool.wait(0);
  }
  EXPECT_NE(kill(std::stoi(process), 0), 0);
}

// ---- journals

class JournalFile : public WithFiles {
 protected:
  std::string path() const { return file("journal"); }
};

/// Its records, by their order.
std::vector<std::pair<Json, Json>> records_in(const std::string& path) {
  std::vector<std::pair<Json, Json>> records;
  Journal(path).read(
      [&](const Json& key, const Json& record) { records.emplace_back(key, record); });
  return records;
}

void note_in(const std::string& path, const Json& key, const Json& record) {
  Journal journal(path);
  journal.read([](const Json&, const Json&) {});
  journal.note(key, record);
}

TEST_F(JournalFile, KeepsRecordsInTheirOrder) {
  EXPECT_TRUE(records_in(path()).empty());
  note_in(path(), {{"size", 1}}, {{"time", 0.1}});
  note_in(path(), {{"size", 2}}, {{"time", 0.2}});
  const auto records = records_in(path());
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].first, Json({{"size", 1}}));
  EXPECT_EQ(records[1].second, Json({{"time", 0.2}}));
}

TEST_F(JournalFile, DropsALineThatWasCutShort) {
  note_in(path(), 1, "one");
  const std::string whole = read_file(path());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SCOPED_TRACE(length);
    write_file(path(), whole.substr(0, length));
    EXPECT_TRUE(records_in(path()).empty());
    note_in(path(), 2, "two");
    EXPECT_EQ(records_in(path()).size(), 1u);
  }
}

TEST_F(JournalFile, LeavesOtherFilesAlone) {
  for (const char* text : {"schema: espalier.scenario/1\n", "no line end", "{\"schema\":\"x\"}\n",
                           "{\"schema\": 5}\n", "[1]\n", "\n"}) {
    write_file(path(), text);
    EXPECT_EQ(error_of([&] { records_in(path()); }, ErrorKind::input),
              "error: cannot keep answers in '" + path() +
                  "': it is not a journal of this version\n  help: give --resume a file of its "
                  "own; it is created "
                  "if it does not exist")
        << text;
    EXPECT_EQ(read_file(path()), text);
  }
}

/// Where lines of a journal are damaged, and how many records are left.
std::pair<std::vector<int>, std::size_t> damaged_lines(const std::string& path) {
  std::pair<std::vector<int>, std::size_t> found;
  const auto count = [&](const Json&, const Json&) { ++found.second; };
  for (const Diagnostic& line : Journal(path).read(count)) {
    EXPECT_EQ(line.where.file, path);
    EXPECT_EQ(line.message, "this line is damaged: its answer is found again");
    found.first.push_back(line.where.line);
  }
  return found;
}

TEST_F(JournalFile, LeavesOutLinesThatAreDamaged) {
  note_in(path(), 1, "one");
  const std::string whole = read_file(path());
  const std::string record = whole.substr(whole.find('\n') + 1);
  for (const char* line :
       {"", "{", "[]", "{\"key\":1}", "{\"record\":1}", "{\"key\":1,\"record\":\"one\"}"}) {
    write_file(path(), whole + line + "\n" + record);
    EXPECT_EQ(damaged_lines(path()), std::pair(std::vector{3}, std::size_t{2})) << line;
  }
}

TEST_F(JournalFile, IsNotWalkedAsDeepAsItIs) {
  note_in(path(), 1, "one");
  const std::string whole = read_file(path());
  constexpr int kDepth = 300'000;
  write_file(path(), whole + R"({"key":)" + std::string(kDepth, '[') + std::string(kDepth, ']') +
                         R"(,"record":1,"check":"x"})" + "\n");
  EXPECT_EQ(damaged_lines(path()), std::pair(std::vector{3}, std::size_t{1}));
}

/// Whichever byte of a record is changed, it is one no more.
TEST_F(JournalFile, KnowsEveryChangedByte) {
  note_in(path(), {{"size", 1}}, {{"time", 0.125}});
  const std::string whole = read_file(path());
  for (std::size_t at = whole.find('\n') + 1; at + 1 < whole.size(); ++at) {
    for (const char other : {'0', '7', 'e', ' ', '\xff'}) {
      if (whole[at] == other) continue;
      std::string changed = whole;
      changed[at] = other;
      write_file(path(), changed);
      EXPECT_EQ(damaged_lines(path()), std::pair(std::vector{2}, std::size_t{0}))
          << at << " " << changed;
    }
  }
}

TEST(OutcomeRecord, HasNoFiguresThatCannotBe) {
  Outcome outcome;
  for (const double time_s : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    outcome.report.time_s = time_s;
    const Json record = record_of(outcome);
    Outcome read;
    EXPECT_ANY_THROW(read_record(record, read)) << time_s;
  }
}

TEST_F(JournalFile, HasOneWriter) {
  const Journal journal(path());
  EXPECT_EQ(error_of([&] { records_in(path()); }, ErrorKind::input),
            "error: cannot keep answers in '" + path() + "': another process is writing to it");
}

TEST_F(JournalFile, MustBeAFile) {
  EXPECT_EQ(error_of([] { Journal("/"); }, ErrorKind::input),
            "error: cannot keep answers in '/': Is a directory");
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { records_in(path()); }, ErrorKind::input),
            "error: cannot keep answers in '" + path() + "': it is not a regular file");
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
  std::vector<Outcome> read;
  for (const Outcome& outcome : outcomes) {
    const Json record = Json::parse(one_line(record_of(outcome)));
    Outcome& one = read.emplace_back();
    read_record(record, one);
    one.query = outcome.query;
    EXPECT_EQ(one_line(record_of(one)), one_line(record));
    EXPECT_EQ(one.skipped, outcome.skipped);
    EXPECT_EQ(one.report.time_s, outcome.report.time_s);
    EXPECT_EQ(one.bound.has_value(), outcome.bound.has_value());
    if (one.bound) {
      EXPECT_EQ(one.bound->algbw_gbps, outcome.bound->algbw_gbps);
    }
  }
  EXPECT_TRUE(std::isinf(read[1].bound->algbw_gbps));
  EXPECT_FALSE(read[2].chosen.empty());
  // Reports say the same.
  Answers before;
  Answers after;
  for (const Outcome& one : outcomes) before.add(one);
  for (const Outcome& one : read) after.add(one);
  EXPECT_EQ(answers_json(after), answers_json(before));
}

TEST(OutcomeRecord, ThrowsWhatWasThrown) {
  const Error error(ErrorKind::unsupported, {{"R10", "no route", "another one", {"f.yaml", 3, 1}}});
  const Json record = Json::parse(one_line(record_of(error)));
  Outcome outcome;
  EXPECT_EQ(error_of([&] { read_record(record, outcome); }, ErrorKind::unsupported), error.what());
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
    Json reports = Json::parse(spoken.out)["results"];
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
  // One worker: several would write answers in the order in which they come.
  const std::string before = json_of({"--resume", file("j"), "--jobs", "1"});
  EXPECT_EQ(json_of({"--resume", file("j")}), before);
  // Nothing is asked again: an answer that is changed in the journal is what comes out.
  std::string journal = read_file(file("j"));
  EXPECT_EQ(std::ranges::count(journal, '\n'), 1 + 4 * 4 * 2 + 3 * 2);
  const std::size_t begin = journal.find('\n') + 1;
  const std::size_t end = journal.find('\n', begin);
  Json line = Json::parse(journal.substr(begin, end - begin));
  // Of the report, which is the fifth from the end of an outcome.
  Json& outcome = line["record"]["outcome"];
  Json& transfers = outcome[outcome.size() - 5][2];
  EXPECT_EQ(transfers, 24);
  transfers = 4242;
  line["check"] = fingerprint(one_line(line["key"]) + one_line(line["record"]));
  write_file(file("j"), std::string(journal).replace(begin, end - begin, line.dump()));
  EXPECT_NE(json_of({"--resume", file("j")}).find("\"transfers\": 4242"), std::string::npos);
}

TEST_F(Run, SaysTheSameHoweverManyWorkInAHurry) {
  const std::string alone = json_of({"--budget", "0", "--jobs", "1"});
  for (const char* jobs : {"2", "3"}) {
    EXPECT_EQ(json_of({"--budget", "0", "--jobs", jobs}), alone) << jobs << " jobs";
  }
}

TEST_F(Run, AsksAgainWhatWasCutShort) {
  const Spoken hurried =
      run({"run", scenario(), "--resume", file("j"), "--jobs", "1", "--budget", "0"});
  EXPECT_EQ(hurried.code, 0) << hurried.err;
  EXPECT_THAT(hurried.out, testing::HasSubstr("# Time ran out (--budget 0) for "));
  EXPECT_THAT(hurried.out, testing::Not(testing::HasSubstr("Not asked")))
      << "the time is that of each question";
  // Rings take no search, so that there was time enough for them.
  const auto kept = std::ranges::count(read_file(file("j")), '\n') - 1;
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 4 * 4 * 2 + 3 * 2);
  EXPECT_EQ(json_of({"--resume", file("j")}), json_of({}));
}

TEST_F(Run, AsksAgainWhereALineIsDamaged) {
  const std::string before = json_of({"--resume", file("j"), "--jobs", "1"});
  std::string journal = read_file(file("j"));
  const std::size_t digit = journal.find_first_of("123456789", journal.find("\"outcome\""));
  journal[digit] = journal[digit] == '9' ? '8' : '9';
  write_file(file("j"), journal);
  const Spoken spoken = run({"run", scenario(), "--resume", file("j"), "--csv", "-"});
  EXPECT_EQ(spoken.code, 0);
  EXPECT_THAT(spoken.err,
              testing::HasSubstr("j:2: this line is damaged: its answer is found again"));
  EXPECT_EQ(json_of({"--resume", file("j")}), before);
}

TEST_F(Run, SaysTheSameInOnePieceAsInShards) {
  for (const int count : {1, 3, 100}) {
    std::vector<std::string> merge = {"run", scenario(), "--merge"};
    for (int shard = 1; shard <= count; ++shard) {
      const std::string journal = file(fmt::format("{}_of_{}", shard, count));
      const Spoken spoken = run({"run", scenario(), "--shard", fmt::format("{}/{}", shard, count),
                                 "--resume", journal, "--jobs", "1"});
      EXPECT_EQ(spoken.code, 0) << spoken.err;
      EXPECT_EQ(spoken.out, "");
      merge.push_back(journal);
    }
    EXPECT_EQ(run(merge).out, run({"run", scenario()}).out) << count;
    std::vector<std::string> more(merge.begin() + 2, merge.end());
    EXPECT_EQ(json_of(more), json_of({})) << count;
  }
}

TEST_F(Run, SaysWhatShardsAreMissingFor) {
  EXPECT_EQ(run({"run", scenario(), "--shard", "2/3", "--resume", file("two")}).code, 0);
  const Spoken missing = run({"run", scenario(), "--merge", file("two")});
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err,
            "error: 25 of 38 questions have no answer in these journals\n"
            "  help: run the shards that are missing, or name a journal with --resume to answer "
            "them now\n");
  EXPECT_EQ(run({"run", scenario(), "--merge", file("two"), "--resume", file("all")}).code, 0);
  EXPECT_EQ(run({"run", scenario(), "--merge", file("nothing")}).err,
            "error: there is no journal '" + file("nothing") + "'\n");
  for (const char* wrong : {"0/3", "4/3", "1", "1/", "/3", "a/b", "1/3x", "-1/3", "1/0"}) {
    const Spoken spoken = run({"run", scenario(), "--shard", wrong, "--resume", file("other")});
    EXPECT_EQ(spoken.code, 2) << wrong;
    EXPECT_THAT(spoken.err, testing::HasSubstr("is no part of a whole")) << wrong;
  }
  EXPECT_THAT(run({"run", scenario(), "--shard", "1/3"}).err,
              testing::HasSubstr("--shard: there is nowhere to keep its answers"));
  EXPECT_THAT(run({"run", scenario(), "--shard", "1/3", "--resume", file("r"), "--csv", "-"}).err,
              testing::HasSubstr("--csv: one shard has no results of its own"));
}

TEST_F(Run, AsksAgainWhereAProgramHasChanged) {
  const std::string head = "program p\ncollective broadcast root 0\nranks 3\nunits 1\n";
  const std::string root = "0: r0.out[0] <- r0.in[0]\n1: r1.out[0] <- r0.in[0]\n";
  write_file(file("s.yaml"), R"(
schema: espalier.scenario/1
name: s
title: S
blocks:
  - title: one
    topology: full:n=3,gbps=10
    collective: broadcast
    sizes: 8000000
    algorithms: ./p.esp
    profile: ideal
    chunk: 0
)");
  const auto transfers_after = [&](const std::string& ops) {
    write_file(file("p.esp"), head + ops);
    const Spoken spoken = run({"run", file("s.yaml"), "--resume", file("j"), "--json", "-"});
    EXPECT_EQ(spoken.code, 0) << spoken.err;
    return Json::parse(spoken.out)["results"].at(0).at("transfers").get<int>();
  };
  EXPECT_EQ(transfers_after(root + "2: r2.out[0] <- r0.in[0]\n"), 2);
  EXPECT_EQ(transfers_after(root + "2: r2.tmp[0] <- r0.in[0]\n3: r2.out[0] <- r0.in[0]\n"), 3);
}

TEST_F(Run, AsksAgainWhereAMachineHasChanged) {
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
    return Json::parse(spoken.out)["results"].at(0)["time_s"].get<double>();
  };
  // Both ways at once, twice half of the message: 8 MB over the link.
  machine(8);
  EXPECT_NEAR(time_s(), 1e-3, 1e-9);
  machine(16);
  EXPECT_NEAR(time_s(), 0.5e-3, 1e-9);
  machine(8);
  EXPECT_NEAR(time_s(), 1e-3, 1e-9);
}

TEST_F(Run, AsksAgainWhereATableHasChanged) {
  const auto table = [&](const char* algorithm) {
    write_file(file("t.yaml"), fmt::format(R"(
schema: espalier.tuning/1
machine: dgx1-v100
gpus: all
ranks: 8
collective: reducescatter
profile: kernel
links: all
in_place: true
rows: [{{up_to: 1GiB, algorithm: {}, chunk: 0, time_us: 1}}]
)",
                                           algorithm));
  };
  write_file(file("s.yaml"), R"(
schema: espalier.scenario/1
name: s
title: S
blocks:
  - title: one
    topology: dgx1-v100
    training: {models: resnet50, batch: 32}
    algorithms: "owners:tuned:t.yaml+pipelined_chain"
    chunk: 1MiB
)");
  const auto iteration_s = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"run", file("s.yaml"), "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Spoken spoken = run(words);
    EXPECT_EQ(spoken.code, 0) << spoken.err;
    return Json::parse(spoken.out)["results"].at(0)["iteration_s"].get<double>();
  };
  table("ring");
  const double ring_s = iteration_s({});
  EXPECT_EQ(iteration_s({"--resume", file("j")}), ring_s);
  table("direct");
  const double direct_s = iteration_s({});
  EXPECT_NE(direct_s, ring_s);
  EXPECT_EQ(iteration_s({"--resume", file("j")}), direct_s);
}

/// What is not possible is an answer, and does not keep others from being found.
TEST_F(Run, GoesOnAfterWhatIsNotPossible) {
  write_file(file("s.yaml"), R"(
schema: espalier.scenario/1
name: s
title: S
blocks:
  - title: Lost links
    topology: ["dgx1-v100:without=gpu0-gpu3", dgx1-v100]
    gpus: ["0,3", "0,1"]
    links: fabric
    collective: allreduce
    sizes: 1MiB
    algorithms: [ring, flat_two_stage]
  - title: Too many ops
    topology: mist:nodes=54
    training: {models: resnet50, batch: 32, gpu_counts: [200, 2], fusion: 0}
    algorithms: ring
)");
  for (const char* jobs : {"1", "2"}) {
    const Spoken spoken = run({"run", file("s.yaml"), "--jobs", jobs, "--json", file("o.json"),
                               "--csv", file("o.csv"), "--resume", file(std::string("j") + jobs)});
    EXPECT_EQ(spoken.code, 3);
    EXPECT_NE(spoken.err.find("'Lost links': ring is not possible on dgx1-v100:without=gpu0-gpu3: "
                              "ranks 0 (gpu0) and 1 (gpu3) are not connected by the GPU fabric"),
              std::string::npos)
        << spoken.err;
    std::map<std::string, int> kinds;
    const Json results = Json::parse(read_file(file("o.json")))["results"];
    for (const Json& one : results) ++kinds[one["kind"].get<std::string>()];
    EXPECT_EQ(kinds["report"], 3 * 2);
    EXPECT_EQ(kinds["training"], 1);
    EXPECT_EQ(kinds["skipped"], 2 + 1);
    // The head, and an answer for every question.
    EXPECT_EQ(std::ranges::count(read_file(file(std::string("j") + jobs)), '\n'), 1 + 8 + 2);
  }
}

TEST_F(Run, KeepsTheJournalApartFromResults) {
  EXPECT_EQ(run({"run", scenario(), "--resume", "-"}).code, 2);
  const Spoken spoken = run({"run", scenario(), "--resume", file("j"), "--csv", file("./j")});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("--csv and --resume cannot both write to '" + file("j") + "'"),
            std::string::npos)
      << spoken.err;
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

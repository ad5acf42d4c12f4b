// SPDX-License-Identifier: Apache-2.0
#include "scenarios/tuner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/units.h"
#include "exec/host/host_backend.h"
#include "tests/scenarios/study_fixture.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;

/// Times that differ by less are equal, for the simulator and for the tuner.
constexpr double kSame = 1e-9;

using TunerTest = StudyFixture;

TEST(TunerVariants, AreEveryCombinationDefaultFirst) {
  EXPECT_THAT(variants(*find_algorithm("chain")), ElementsAre("chain"));
  EXPECT_THAT(variants(*find_algorithm("optimal")), ElementsAre("optimal:plan=1"))
      << "every simulation weighs its parameters";
  EXPECT_THAT(variants(*find_algorithm("knomial")),
              ElementsAre("knomial", "knomial:k=4", "knomial:k=8"));
  // host 0 or 1, sharded 0 or 1, at_once 8, 1 or 64.
  const std::vector<std::string> servers = variants(*find_algorithm("parameter_server"));
  EXPECT_EQ(servers.size(), 12u);
  EXPECT_EQ(std::set(servers.begin(), servers.end()).size(), 12u);
  EXPECT_EQ(servers.back(), "parameter_server:host=1,sharded=1,at_once=64");
}

TEST(TunerVariants, AllOfThemAreAlgorithms) {
  for (const CollectiveInfo& collective : all_collectives()) {
    for (const std::string& spec : tuning_candidates(collective.id)) {
      EXPECT_NO_THROW(parse_algorithm(spec)) << spec;
    }
  }
}

// The cost models of "Optimized broadcast for deep learning" (OSU 2017), equations 1 to 5, on a
// machine that has what they assume: a link of 10e9 bytes/s between any two GPUs, start-up 10 us.
constexpr double kB = 10e9;
constexpr double kTs = 10e-6;

int rounds(int n, int k) {
  int count = 0;
  for (long reached = 1; reached < n; reached *= k) ++count;
  return count;
}

double model_s(const std::string& algorithm, int n, double m) {
  if (algorithm == "direct" || algorithm == "chain") return (n - 1) * (kTs + m / kB);
  if (algorithm == "knomial") return rounds(n, 2) * (kTs + m / kB);
  if (algorithm == "knomial:k=4") return rounds(n, 4) * (kTs + m / kB);
  if (algorithm == "knomial:k=8") return rounds(n, 8) * (kTs + m / kB);
  if (algorithm == "scatter_allgather") {
    return (rounds(n, 2) + n - 1) * kTs + 2.0 * (n - 1) / n * m / kB;
  }
  EXPECT_EQ(algorithm, "pipelined_chain");
  double best_s = INFINITY;  // Over whole messages, halves, quarters, ... of 4 KiB or more.
  for (double pieces = 1; pieces == 1 || m / pieces >= 4096; pieces *= 2) {
    best_s = std::min(best_s, (pieces + n - 2) * (kTs + m / pieces / kB));
  }
  return best_s;
}

void expect_models_decide(int n, const std::vector<std::string>& candidates,
                          const std::set<std::string>& winners) {
  Simulator simulator;
  Study study(simulator, &simulator);
  const Query asked =
      question(fmt::format("full:n={},gbps=10,startup_us=10", n), Collective::broadcast);
  // Up to 256 MiB: the best number of pieces, sqrt((n - 2) M / B / t_s), stays below 256.
  const Tuning tuning =
      tune(study, asked, parse_byte_list("1KiB..256MiB"), candidates, predict_with(study));
  std::set<std::string> seen;
  for (const TuningRow& choice : tuning.choices) {
    const auto m = static_cast<double>(choice.up_to_bytes);
    std::string expected;
    for (const std::string& candidate : candidates) {
      if (expected.empty() || model_s(candidate, n, m) < model_s(expected, n, m) * (1 - kSame)) {
        expected = candidate;
      }
    }
    EXPECT_EQ(choice.algorithm, expected) << m;
    EXPECT_NEAR(choice.time_s / model_s(expected, n, m), 1, kSame) << m;
    seen.insert(choice.algorithm);
  }
  EXPECT_EQ(seen, winners);
}

/// Times in ms by candidate: b is slower at 16 MiB and, where caches hold 8 MiB of it, faster
/// there.
TEST(SizeChooser, RulesNothingOutByLargerMessagesWhereCachesHoldSmallOnes) {
  const std::map<std::pair<std::string, std::int64_t>, double> times = {
      {{"a", 8}, 0.5}, {{"a", 16}, 1.0}, {{"b", 8}, 0.25}, {{"b", 16}, 1.1}};
  const PredictAll predict_all = [&](const std::vector<WantedTime>& wanted) {
    std::vector<Prediction> all;
    for (const auto& [query, worthwhile_s] : wanted) {
      Prediction& made = all.emplace_back();
      made.algorithm = query.algorithm;
      made.best.time_s = times.at({query.algorithm, query.size_bytes >> 20}) * 1e-3;
    }
    return all;
  };
  for (const bool has_caches : {false, true}) {
    Topology machine = load_topology("full:n=2");
    machine.memories["ram"];
    if (has_caches) machine.memories["ram"].working_sets = {{1e6, {}, {}}};
    SizeChooser chooser({}, {8 << 20, 16 << 20}, {"a", "b"},
                        std::make_shared<const Topology>(machine));
    chooser.choose({1}, predict_all);
    chooser.choose({0}, predict_all);
    EXPECT_EQ(chooser.choice(1)->prediction.algorithm, "a");
    // Without caches, half of b's 1.1 ms is more than the 0.5 ms of a.
    EXPECT_EQ(chooser.has_predicted(1, 0), has_caches);
    EXPECT_EQ(chooser.choice(0)->prediction.algorithm, has_caches ? "b" : "a");
  }
}

/// Times in us for 1 and for 1024 bytes by candidate. What is asked for no longer than a while is
/// not followed any further.
TEST(SizeChooser, FollowsVariantsAsFarAsTheyMayMatter) {
  const std::map<std::string, std::pair<double, double>> times = {
      {"a", {4, 9}}, {"a:k=2", {3, 8}}, {"a:k=3", {2, 20}}, {"a:k=4", {1, 10}}, {"b", {5, 30}}};
  std::map<std::string, double> followed_us;  // for 1024 bytes
  const PredictAll predict_all = [&](const std::vector<WantedTime>& wanted) {
    std::vector<Prediction> all;
    for (const WantedTime& one : wanted) {
      Prediction& made = all.emplace_back();
      made.algorithm = one.query.algorithm;
      const auto [small_us, large_us] = times.at(made.algorithm);
      const bool is_small = one.query.size_bytes == 1;
      const double time_s = (is_small ? small_us : large_us) * 1e-6;
      made.best.time_s = time_s > one.worthwhile_s ? kAnyTime : time_s;
      if (!is_small) followed_us[made.algorithm] = one.worthwhile_s * 1e6;
    }
    return all;
  };
  std::vector<std::string> candidates;
  for (const auto& [candidate, of_sizes] : times) candidates.push_back(candidate);
  SizeChooser chooser({}, {1, 1024}, candidates,
                      std::make_shared<const Topology>(load_topology("full:n=2")));
  chooser.choose_ends(predict_all);
  std::vector<std::string> known;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_TRUE(chooser.has_predicted(i, 0)) << candidates[i];
    if (chooser.has_predicted(i, 1)) known.push_back(candidates[i]);
  }
  EXPECT_THAT(known, ElementsAre("a", "a:k=2", "a:k=4", "b"));
  EXPECT_EQ(followed_us.at("a:k=4"), kAnyTime) << "none has a lower latency";
  EXPECT_NEAR(followed_us.at("a:k=3"), 10, 1e-6);
  EXPECT_NEAR(followed_us.at("a:k=2"), 10, 1e-6) << "asked for with a";
  EXPECT_EQ(followed_us.at("b"), kAnyTime) << "another algorithm";
  EXPECT_EQ(chooser.choice(0)->algorithm, "a:k=4");
  EXPECT_EQ(chooser.choice(1)->algorithm, "a:k=2");
}

TEST(TunerModels, TheFastestOfEquations1To5IsChosen) {
  const std::vector<std::string> all = {"direct",         "chain",       "knomial",
                                        "knomial:k=4",    "knomial:k=8", "scatter_allgather",
                                        "pipelined_chain"};
  // Eight ranks reach each other in one round of k = 8: nothing beats t_s + M / B.
  expect_models_decide(8, all, {"knomial:k=8"});
  // Two rounds of k = 4 or 8 for small messages (the first named of the two), the chain later.
  expect_models_decide(16, all, {"knomial:k=4", "pipelined_chain"});
  expect_models_decide(8, {"direct", "chain", "knomial", "scatter_allgather"},
                       {"knomial", "scatter_allgather"});
  expect_models_decide(8, {"chain", "pipelined_chain"}, {"chain", "pipelined_chain"});
}

TEST_F(TunerTest, LeavingOutCandidatesNeverChangesTheChoice) {
  const std::vector<std::int64_t> sizes = parse_byte_list("1KiB..64MiB");
  for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
    Query asked = question("dgx1-v100", collective, "kernel");
    asked.gpus = {0, 1, 4, 5, 6};
    const std::vector<std::string> candidates = tuning_candidates(collective);
    const Tuning tuning = tune(study_, asked, sizes, candidates, predict_with(study_));
    ASSERT_EQ(tuning.choices.size(), sizes.size());
    Study fresh(simulator_, &simulator_);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      double best_s = INFINITY;
      for (const std::string& candidate : candidates) {
        const Prediction every = fresh.predict(with(asked, candidate, sizes[i]));
        if (!every.skipped) best_s = std::min(best_s, every.best.time_s);
      }
      EXPECT_EQ(tuning.choices[i].up_to_bytes, sizes[i]);
      EXPECT_NEAR(tuning.choices[i].time_s / best_s, 1, kSame) << sizes[i];
    }
  }
}

/// What the list and the table say is what they would say if all were predicted to the end.
TEST_F(TunerTest, WhatIsListedIsWhatNothingBeats) {
  const std::vector<std::int64_t> sizes = parse_byte_list("4KiB,1MiB,64MiB");
  std::size_t not_followed = 0;
  for (const auto& [machine, collective] :
       {std::pair("dgx1-v100", Collective::allreduce), std::pair("dgx-a100", Collective::allreduce),
        std::pair("kesch:nodes=2", Collective::broadcast)}) {
    SCOPED_TRACE(machine);
    const Query asked = question(machine, collective, "kernel");
    const std::vector<std::string> candidates = tuning_candidates(collective);
    Study fresh(simulator_, &simulator_);
    const Tuning tuning = tune(fresh, asked, sizes, candidates, predict_with(fresh));
    std::map<std::pair<std::string, std::int64_t>, double> times_s;
    for (const std::string& candidate : candidates) {
      for (const std::int64_t size : sizes) {
        const Prediction every = study_.predict(with(asked, candidate, size));
        if (!every.skipped) times_s[{candidate, size}] = every.best.time_s;
      }
    }
    for (const TuningRow& choice : tuning.choices) {
      for (const std::string& candidate : candidates) {
        const auto known = times_s.find({candidate, choice.up_to_bytes});
        if (known == times_s.end()) continue;
        EXPECT_FALSE(shorter(known->second, choice.time_s));
      }
    }
    for (const CandidateTimes& one : tuning.candidates) {
      for (const TuningRow& time : one.times) {
        EXPECT_EQ(time.time_s, times_s.at({one.algorithm, time.up_to_bytes})) << one.algorithm;
      }
      not_followed += one.times.back().up_to_bytes == sizes.back() ? 0 : 1;
    }
    std::set<std::string> listed;
    for (const FrontPoint& point : tuning.front) {
      listed.insert(point.algorithm);
      EXPECT_EQ(point.latency_s, times_s.at({point.algorithm, sizes.front()}));
    }
    for (const auto& [key, large_s] : times_s) {
      const auto& [candidate, size] = key;
      if (size != sizes.back() || listed.contains(candidate)) continue;
      const bool is_beaten = std::ranges::any_of(listed, [&, &name = candidate, large = large_s](
                                                             const std::string& other) {
        return name_of_variants(other) == name_of_variants(name) &&
               !shorter(times_s.at({name, sizes.front()}), times_s.at({other, sizes.front()})) &&
               !shorter(large, times_s.at({other, sizes.back()}));
      });
      EXPECT_TRUE(is_beaten) << candidate;
    }
  }
  EXPECT_GT(not_followed, 0u);
}

/// The plan of `optimal` is predicted last, and only as far as it may be the fastest.
TEST_F(TunerTest, ThePlanLosesAndWinsAsIfAllWereKnown) {
  int won = 0;
  int lost = 0;
  for (const char* machine : {"dgx1-v100", "p3.8xlarge", "dgx-a100", "dgx-h100:nodes=2"}) {
    for (const std::int64_t size_bytes : {std::int64_t{64} << 10, std::int64_t{16} << 20}) {
      SCOPED_TRACE(fmt::format("{}, {} bytes", machine, size_bytes));
      const Query asked = with(question(machine, Collective::allreduce, "kernel"), "", size_bytes);
      const std::vector<std::string> candidates =
          portfolio_candidates(study_.choice("optimal"), asked.collective);
      Study fresh(simulator_, &simulator_);
      const auto chosen = choose_algorithm(fresh, asked, candidates);
      ASSERT_TRUE(chosen);
      double best_s = INFINITY;
      for (const std::string& candidate : candidates) {
        const Prediction one = study_.predict(with(asked, candidate, size_bytes));
        if (!one.skipped) best_s = std::min(best_s, one.best.time_s);
      }
      EXPECT_NEAR(chosen->prediction.best.time_s, best_s, kSame * best_s);
      ++(chosen->algorithm == candidates.front() ? won : lost);
    }
  }
  EXPECT_GT(won, 0);
  EXPECT_GT(lost, 0);
}

TEST_F(TunerTest, KnownSizesBoundTheOthers) {
  Query asked = question("dgx1-v100", Collective::allreduce, "kernel");
  for (const char* algorithm : {"ring", "halving_doubling", "double_binary_tree"}) {
    const Query middle = with(asked, algorithm, 1 << 20);
    EXPECT_EQ(study_.shortest_time_s(middle), 0) << "nothing is known";
    const double small_s = study_.predict(with(asked, algorithm, 1 << 18)).best.time_s;
    EXPECT_DOUBLE_EQ(study_.shortest_time_s(middle), small_s);
    const double large_s = study_.predict(with(asked, algorithm, 1 << 21)).best.time_s;
    EXPECT_DOUBLE_EQ(study_.shortest_time_s(middle), std::max(small_s, large_s / 2));
    EXPECT_LE(study_.shortest_time_s(middle), study_.predict(middle).best.time_s);
    asked.chunk_bytes = 0;
    EXPECT_EQ(study_.shortest_time_s(with(asked, algorithm, 1 << 20)), 0) << "another question";
    asked.chunk_bytes.reset();
  }
}

TEST_F(TunerTest, KeepsWhatItSimulatedOfEveryCandidate) {
  const Query asked = question("dgx1-v100", Collective::broadcast);
  const std::vector<std::string> candidates = {"direct", "chain", "pipelined_chain"};
  const std::vector<std::int64_t> sizes = parse_byte_list("1KiB..64MiB");
  const Tuning tuning = tune(study_, asked, sizes, candidates, predict_with(study_));
  ASSERT_EQ(tuning.candidates.size(), candidates.size());
  std::map<std::int64_t, double> least_s;
  for (const CandidateTimes& one : tuning.candidates) {
    // All of them at both ends, and between them some.
    EXPECT_EQ(one.times.front().up_to_bytes, sizes.front()) << one.algorithm;
    EXPECT_EQ(one.times.back().up_to_bytes, sizes.back()) << one.algorithm;
    EXPECT_TRUE(std::ranges::is_sorted(one.times, {}, &TuningRow::up_to_bytes));
    for (const TuningRow& time : one.times) {
      double& least = least_s.try_emplace(time.up_to_bytes, time.time_s).first->second;
      least = std::min(least, time.time_s);
    }
  }
  for (const TuningRow& choice : tuning.choices) {
    EXPECT_NEAR(choice.time_s / least_s.at(choice.up_to_bytes), 1, kSame) << choice.up_to_bytes;
  }
}

TEST_F(TunerTest, NeighboursWithOneChoiceShareARow) {
  const Tuning tuning = tune(
      study_, question("full:n=8,gbps=10,startup_us=10", Collective::broadcast),
      {1 << 20, 1024, 1 << 20, 1 << 28}, {"knomial", "scatter_allgather"}, predict_with(study_));
  ASSERT_EQ(tuning.choices.size(), 3u) << "sorted, without repetitions";
  // 3 (t_s + M / B) against 10 t_s + 1.75 M / B: equal at 7 t_s = 1.25 M / B, M = 560 kB.
  ASSERT_EQ(tuning.table.rows.size(), 2u);
  EXPECT_EQ(tuning.table.rows[0].algorithm, "knomial");
  EXPECT_EQ(tuning.table.rows[0].up_to_bytes, 1024);
  EXPECT_EQ(tuning.table.rows[1].algorithm, "scatter_allgather");
  EXPECT_EQ(tuning.table.rows[1].up_to_bytes, 1 << 28);
  EXPECT_NEAR(tuning.table.rows[1].time_s, 10 * kTs + 1.75 * (1 << 28) / kB, 1e-9);
  EXPECT_EQ(tuning.table.ranks, 8);
  EXPECT_EQ(tuning.table.machine, "full:n=8,gbps=10,startup_us=10");
}

TEST_F(TunerTest, TheFrontHoldsWhatNothingBeatsTwice) {
  const Tuning tuning = tune(
      study_, question("full:n=8,gbps=10,startup_us=10", Collective::broadcast), {1024, 1 << 28},
      {"chain", "knomial", "knomial:k=4", "knomial:k=1024", "scatter_allgather", "pipelined_chain",
       "host_staged_knomial"},
      predict_with(study_));
  // k = 1024 takes one round and is best at both ends; other variants of knomial are not shown.
  // The pipelined chain is a chain for small messages and wider for large ones.
  std::vector<std::string> names;
  for (const FrontPoint& point : tuning.front) names.push_back(point.algorithm);
  EXPECT_THAT(names,
              ElementsAre("knomial:k=1024", "pipelined_chain", "chain", "scatter_allgather"));
  for (const FrontPoint& point : tuning.front) {
    EXPECT_EQ(point.on_front, point.algorithm == "knomial:k=1024") << point.algorithm;
  }
  EXPECT_NEAR(tuning.front[0].latency_s, kTs + 1024 / kB, kSame * kTs);
  EXPECT_NEAR(tuning.front[0].algbw_gbps, (1 << 28) / (kTs + (1 << 28) / kB) * 1e-9, 1e-8);
  ASSERT_EQ(tuning.skipped.size(), 1u);
  EXPECT_EQ(tuning.skipped[0].first, "host_staged_knomial");
}

TEST_F(TunerTest, SaysWhyNothingIsPossible) {
  try {
    tune(study_, question("ring:n=4", Collective::allreduce), {1024},
         {"all_pairs", "parameter_server:host=1"}, predict_with(study_));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_TRUE(error.diagnostics()[0].message.starts_with("all_pairs is not possible here: "));
  }
}

TEST_F(TunerTest, AutoIsAsFastAsTheFastest) {
  Query asked = question("dgx1-v100", Collective::allreduce, "kernel");
  for (const std::int64_t size_bytes : {1 << 12, 1 << 20, 1 << 26}) {
    const Outcome chosen = study_.ask(with(asked, "auto", size_bytes));
    ASSERT_TRUE(chosen.ran());
    EXPECT_EQ(chosen.query.algorithm, "auto");
    EXPECT_FALSE(chosen.query.chunk_bytes.has_value()) << "as asked";
    EXPECT_TRUE(chosen.bound.has_value());
    double best_s = INFINITY;
    for (const std::string& name : Study::applicable(Collective::allreduce)) {
      const Outcome one = study_.ask(with(asked, name, size_bytes));
      if (one.ran()) best_s = std::min(best_s, one.report.time_s);
    }
    EXPECT_LE(chosen.report.time_s, best_s * (1 + kSame));
    const Outcome same = study_.ask(with(asked, chosen.chosen, size_bytes));
    EXPECT_DOUBLE_EQ(same.report.time_s, chosen.report.time_s);
    EXPECT_EQ(same.chunk_bytes, chosen.chunk_bytes);
    EXPECT_EQ(same.chosen, "");
  }
}

TEST_F(TunerTest, AutoKeepsTheChunkThatWasAskedFor) {
  Query asked = question("line:n=4,gbps=10,startup_us=10", Collective::broadcast);
  asked.chunk_bytes = 1'000'000;
  const Outcome chosen = study_.ask(with(asked, "auto", 4'000'000));
  // Of what a line allows nothing beats the chain in pieces: (4 + 2) (t_s + 100 us).
  EXPECT_NEAR(chosen.report.time_s, 6 * (kTs + 100e-6), 1e-12);
  EXPECT_EQ(chosen.chunk_bytes, 1'000'000);
}

TEST_F(TunerTest, AutoChoosesFromWhatIsNamed) {
  // Three hops of a chain, two rounds of a binomial tree; the tree of degree 4, one round, is not
  // among them.
  const Query asked = question("full:n=4,gbps=10,startup_us=10", Collective::broadcast);
  const Outcome chosen = study_.ask(with(asked, "auto:chain|knomial", 1'000'000));
  EXPECT_EQ(chosen.chosen, "knomial");
  EXPECT_NEAR(chosen.report.time_s, 2 * (kTs + 100e-6), 1e-12);
  // Of equal ones the first.
  EXPECT_EQ(study_.ask(with(asked, "auto:direct|chain", 1'000'000)).chosen, "direct");
}

TEST(TunerAuto, RunsForRealWithWhatTheMachineWants) {
  HostBackend host;
  Simulator simulator;
  Study study(host, &simulator);
  Query asked =
      with(question("full:n=4,gbps=10,startup_us=10", Collective::broadcast), "auto", 1 << 16);
  asked.judge = false;
  const Outcome outcome = study.ask(asked);
  EXPECT_EQ(outcome.backend, "host");
  EXPECT_EQ(outcome.report.executed->wrong, 0);
  EXPECT_EQ(outcome.chosen, "knomial:k=4") << "one round among four ranks";
}

TEST(TunerAuto, NeedsAMachine) {
  HostBackend host;
  Simulator simulator;
  Study study(host, &simulator);
  Query asked;
  asked.ranks = 4;
  asked.algorithm = "auto";
  EXPECT_THROW(study.ask(asked), Error);
}

}  // namespace
}  // namespace espalier

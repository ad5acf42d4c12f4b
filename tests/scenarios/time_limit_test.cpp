// SPDX-License-Identifier: Apache-2.0
// Questions whose searches have a limited time: clocks go on as tests say.
#include "core/time_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/verify.h"
#include "scenarios/chunk_search.h"
#include "scenarios/planned.h"
#include "scenarios/tuner.h"
#include "scenarios/turns.h"
#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMessage = std::int64_t{1} << 30;

TimeLimit::Clock stopped() {
  return [] { return 0.0; };
}

using LimitedStudy = StudyFixture;

/// Every simulation takes a tenth of a second for each piece, and more pieces are always faster.
struct SlowSimulations {
  double now_s = 0;
  std::vector<int> asked = {};

  ChunkChoice search() {
    return search_chunk({.message_bytes = kMessage, .longest_share = 1, .max_work = 1'000'000'000},
                        [&](std::int64_t chunk_bytes, const SimLimits&) {
                          const auto pieces =
                              chunk_bytes == 0 ? 1 : static_cast<int>(kMessage / chunk_bytes);
                          asked.push_back(pieces);
                          now_s += 0.1 * pieces;
                          RunReport report;
                          report.time_s = 1 + 1.0 / pieces;
                          report.message_bytes = kMessage;
                          report.simulated.emplace().work = 1000 * pieces;
                          return report;
                        });
  }
};

TEST(LimitedChunkSearch, TriesWhatThereIsTimeFor) {
  SlowSimulations simulations;
  // 0.1 + 0.2 + 0.4 + 0.8 s have gone by; the next one would take 1.6 s.
  const TimeLimit limit(3, [&] { return simulations.now_s; });
  const ChunkChoice best = simulations.search();
  EXPECT_THAT(simulations.asked, ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(best.chunk_bytes, kMessage / 8);
  EXPECT_EQ(best.note, "chunks of 67108864 bytes or less were not tried: the time ran out");
  EXPECT_TRUE(limit.has_cut_short());
}

TEST(LimitedChunkSearch, AlwaysTriesWholeMessages) {
  SlowSimulations simulations;
  const TimeLimit limit(0, [&] { return simulations.now_s; });
  EXPECT_EQ(simulations.search().time_s, 2);
  EXPECT_THAT(simulations.asked, ElementsAre(1));
}

TEST(Turns, AskAsLongAsThereIsTimeAndOnceAnyhow) {
  double now_s = 10;
  const TimeLimit limit(6, [&] { return now_s; });
  std::vector<double> shares;
  Turns turns(3);
  const auto ask = [&](double takes_s, bool runs) {
    return turns.take(Query{}, [&] {
      shares.push_back(time_left_s());
      now_s += takes_s;
      Outcome outcome;
      outcome.verified = runs;
      return outcome;
    });
  };
  EXPECT_FALSE(ask(7, false).skipped.has_value()) << "not possible, so nothing is answered yet";
  EXPECT_FALSE(ask(1, true).skipped.has_value()) << "too late, but the first answer";
  const Outcome unasked = ask(1, true);
  EXPECT_EQ(unasked.skipped, kNoTimeLeft);
  EXPECT_EQ(unasked.budget, (GrantedTime{6, true}));
  EXPECT_THAT(shares, ElementsAre(3, 0));
}

/// The algorithms that were answered, in turn.
std::vector<std::string> asked_in_turn(Study& study, const std::vector<Query>& queries) {
  std::vector<std::string> asked;
  SweepProgress progress;
  progress.waiting = [&](std::string_view label) { asked.emplace_back(label); };
  answer_in_turns(study, queries, LateQuestions::skipped, progress);
  return asked;
}

TEST_F(LimitedStudy, OneAnswerOfEverySizeComesFirst) {
  std::vector<Query> queries;
  for (const std::int64_t size : {1024, 2048, 4096}) {
    for (const char* algorithm : {"auto", "optimal", "ring"}) {
      queries.push_back(with(question("ring:n=4"), algorithm, size));
    }
  }
  const TimeLimit limit(1, stopped());
  EXPECT_THAT(asked_in_turn(study_, queries),
              ElementsAre("ring 1KiB", "ring 4KiB", "ring 2KiB", "optimal 1KiB", "optimal 4KiB",
                          "optimal 2KiB", "auto 1KiB", "auto 4KiB", "auto 2KiB"))
      << "then what knows the more, the later it is asked";
}

TEST_F(LimitedStudy, WhatIsAnsweredFirstIsGoodOnLargeMachines) {
  const TimeLimit limit(0, stopped());
  std::vector<Query> queries;
  for (const char* algorithm : {"all_pairs", "chain", "halving_doubling", "optimal"}) {
    queries.push_back(
        with(question("dgx-h100:nodes=128", Collective::allreduce, "kernel"), algorithm, kMessage));
  }
  const std::vector<Outcome> answers = answer_in_turns(study_, queries, LateQuestions::skipped);
  EXPECT_EQ(answers[0].skipped, kNoTimeLeft) << "a million ops";
  ASSERT_TRUE(answers[2].ran());
  EXPECT_GT(answers[2].fraction, 0.5);
  const Outcome optimal = study_.ask(queries[3]);
  ASSERT_TRUE(optimal.ran());
  EXPECT_GE(optimal.fraction, answers[2].fraction) << "it is among its candidates";
}

TEST_F(LimitedStudy, AHurriedBroadcastIsNoChain) {
  const TimeLimit limit(0, stopped());
  const Outcome outcome = study_.ask(
      with(question("kesch:nodes=12", Collective::broadcast, "kernel"), "auto", kMessage));
  ASSERT_TRUE(outcome.ran());
  EXPECT_LT(outcome.report.time_s, 2) << outcome.chosen << "; a chain takes 19 s";
}

TEST_F(LimitedStudy, ChosenTimesDoNotFallWithSize) {
  const std::vector<std::int64_t> sizes = {1 << 12, 1 << 15, 1 << 18, 1 << 21, 1 << 24, kMessage};
  // The clock goes on with every look, so that the time runs out at any point of the search.
  for (const double looks : {0, 20, 60, 150, 400, 1000}) {
    Study study(simulator_, &simulator_);
    double now_s = 0;
    const TimeLimit limit(looks, [&] { return now_s += 1; });
    const std::vector<std::string> candidates = {
        "optimal:plan=1", "chain", "ring", "nccl", "halving_doubling", "double_binary_tree"};
    const Tuning tuning =
        tune(study, question("dgx-a100:nodes=2", Collective::allreduce, "kernel"), sizes,
             candidates, predict_in_turns(study, candidates.size(), sizes.size()));
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      EXPECT_LE(tuning.choices[i - 1].time_s, tuning.choices[i].time_s * (1 + 1e-9))
          << looks << " looks: " << tuning.choices[i - 1].algorithm << " for " << sizes[i - 1]
          << " bytes, " << tuning.choices[i].algorithm << " for " << sizes[i];
    }
  }
}

TEST_F(LimitedStudy, WhatALibraryTakesForOneSizeIsAPromiseForOthers) {
  const Query asked = question("kesch:nodes=2", Collective::broadcast, "kernel");
  const TimeLimit limit(0, stopped());
  const double time_s = study_.predict(with(asked, "nccl", kMessage)).best.time_s;
  EXPECT_EQ(study_.longest_time_s(with(asked, "nccl", kMessage)), time_s);
  EXPECT_EQ(study_.longest_time_s(with(asked, "nccl", kMessage / 2)), time_s);
  const std::vector<WantedTime> wanted = {{with(asked, "chain", kMessage / 2)},
                                          {with(asked, "nccl", kMessage / 2)}};
  const std::vector<Prediction> found = predict_in_turns(study_, 2, 1)(wanted);
  EXPECT_EQ(found[0].skipped, kNoTimeLeft);
  EXPECT_FALSE(found[1].skipped.has_value()) << "it promises more than a chain, which is unknown";
}

TEST_F(LimitedStudy, AChooserStaysWithWhatItKnows) {
  const TimeLimit limit(0, stopped());
  std::vector<std::string> chosen;
  for (const std::int64_t size : {1 << 20, 1 << 22, 1 << 24}) {
    const Outcome outcome = study_.ask(
        with(question("dgx-a100:nodes=2", Collective::allreduce, "kernel"), "optimal", size));
    ASSERT_TRUE(outcome.ran());
    chosen.push_back(outcome.chosen);
  }
  EXPECT_THAT(chosen, testing::Each(chosen.front()));
}

TEST_F(LimitedStudy, AChooserIsNoWorseThanTheRowsBesideIt) {
  std::vector<Query> queries;
  for (const char* algorithm : {"auto", "optimal", "ring"}) {
    queries.push_back(
        with(question("dgx-a100:nodes=2", Collective::allreduce, "kernel"), algorithm, 1 << 20));
  }
  for (const double looks : {300, 1000, 3000}) {
    Study study(simulator_, &simulator_);
    double now_s = 0;
    const TimeLimit limit(looks, [&] { return now_s += 1; });
    const auto answers = answer_in_turns(study, queries, LateQuestions::asked);
    for (std::size_t i = 0; i + 1 < answers.size(); ++i) {
      if (!answers[i].ran() || !answers[i + 1].ran()) continue;
      EXPECT_LE(answers[i].report.time_s, answers[i + 1].report.time_s * (1 + 1e-9))
          << looks << ": " << queries[i].algorithm;
    }
  }
}

TEST_F(LimitedStudy, WhereNothingIsSearchedNoTimeRunsOut) {
  Query asked = with(question("dgx1-v100"), "all_pairs", kMessage);
  asked.against_nccl = true;
  asked.judge = false;  // bounds are searched for
  const TimeLimit limit(0, stopped());
  const Outcome outcome = study_.ask(asked);
  EXPECT_EQ(outcome.budget, (GrantedTime{0, false}));
  EXPECT_TRUE(outcome.nccl_left_out);
  EXPECT_FALSE(outcome.nccl.has_value());
}

TEST_F(LimitedStudy, EveryRowOfASizeIsComparedOrNone) {
  std::vector<Query> queries;
  for (const std::int64_t size : {1 << 20, 1 << 24}) {
    for (const char* algorithm : {"all_pairs", "ring", "halving_doubling"}) {
      queries.push_back(
          with(question("dgx1-v100", Collective::allreduce, "kernel"), algorithm, size));
      queries.back().against_nccl = true;
    }
  }
  for (const double looks : {0, 15, 40, 100}) {
    Study study(simulator_, &simulator_);
    double now_s = 0;
    const TimeLimit limit(looks, [&] { return now_s += 1; });
    std::map<std::int64_t, std::set<bool>> compared;
    for (const Outcome& one : answer_in_turns(study, queries, LateQuestions::asked)) {
      if (!one.ran()) continue;
      EXPECT_NE(one.nccl.has_value(), one.nccl_left_out);
      compared[one.query.size_bytes].insert(one.nccl.has_value());
    }
    for (const auto& [size, how] : compared) EXPECT_EQ(how.size(), 1u) << size;
  }
}

TEST_F(LimitedStudy, SaysWhichProtocolsWereNotTried) {
  const Query asked =
      with(question("dgx1-v100", Collective::allreduce, "kernel"), "halving_doubling", 4096);
  const TimeLimit limit(0, stopped());
  const Outcome hurried = study_.ask(asked);
  EXPECT_THAT(hurried.program_note, HasSubstr("not tried: the time ran out"));
}

TEST_F(LimitedStudy, TriesTheProtocolThatWasBestFirst) {
  Query asked =
      with(question("dgx1-v100", Collective::allreduce, "kernel"), "halving_doubling", 4096);
  const Outcome patient = study_.ask(asked);
  ASSERT_NE(patient.protocol, "simple");
  const TimeLimit limit(0, stopped());
  asked.size_bytes = 8192;
  EXPECT_EQ(study_.ask(asked).protocol, patient.protocol);
  asked.size_bytes = kMessage;
  EXPECT_EQ(study_.ask(asked).protocol, "simple") << "it is too far from that";
}

TEST_F(LimitedStudy, PlansAgainWhenThereIsMoreTime) {
  const Query asked = with(question("dgx1-v100"), "optimal:plan=1", kMessage);
  Query smaller = asked;
  smaller.size_bytes = kMessage / 2;
  Outcome hurried;
  {
    const TimeLimit limit(0, stopped());
    hurried = study_.ask(asked);
  }
  EXPECT_TRUE(hurried.budget->ran_out);
  Study other(simulator_, &simulator_);
  const Outcome patient = other.ask(smaller);
  const TimeLimit limit(10, stopped());
  const Outcome again = study_.ask(smaller);
  EXPECT_EQ(again.budget, (GrantedTime{10, false}));
  EXPECT_NEAR(again.report.time_s, patient.report.time_s, 1e-9 * patient.report.time_s);
}

TEST_F(LimitedStudy, AnswersWhateverTheTime) {
  const Query asked = with(question("dgx1-v100"), "optimal:plan=1", kMessage);
  Outcome hurried;
  {
    const TimeLimit limit(0, stopped());
    hurried = study_.ask(asked);
  }
  ASSERT_TRUE(hurried.ran());
  EXPECT_EQ(hurried.budget, (GrantedTime{0, true}));
  EXPECT_FALSE(hurried.nccl.has_value());
  EXPECT_GT(hurried.report.time_s, 0);
  Study other(simulator_, &simulator_);
  const Outcome patient = other.ask(asked);
  EXPECT_FALSE(patient.budget.has_value()) << "nobody limited it";
  EXPECT_LT(patient.report.time_s, hurried.report.time_s);
  EXPECT_LE(patient.least_s(), patient.report.time_s * (1 + 1e-9));
  EXPECT_LE(hurried.least_s(), patient.least_s() * (1 + 1e-9)) << "a weaker bound, but a bound";
}

TEST_F(LimitedStudy, SaysOfWhatItRemembersThatItWasCutShort) {
  const Query asked = with(question("dgx1-v100"), "optimal:plan=1", kMessage);
  double now_s = 0;
  const TimeLimit command(10, [&] { return now_s; });
  now_s = 10;
  study_.ask(asked);
  const Outcome again = study_.ask(asked);
  EXPECT_EQ(again.budget, (GrantedTime{10, true})) << "the plan is still the hurried one";
  Query simple = with(question("dgx1-v100"), "chain", 1024);
  simple.judge = false;
  const Outcome other = study_.ask(simple);
  EXPECT_EQ(other.budget, (GrantedTime{10, false})) << "which is no business of a chain";
}

TEST_F(LimitedStudy, AutoChoosesAmongWhatItHadTimeFor) {
  const TimeLimit limit(0, stopped());
  const Outcome outcome = study_.ask(with(question("dgx1-v100"), "auto:ring|optimal", kMessage));
  ASSERT_TRUE(outcome.ran());
  EXPECT_EQ(outcome.chosen, "ring") << "planning would take longer";
  EXPECT_TRUE(outcome.budget->ran_out);
}

TEST_F(LimitedStudy, TheTunerChoosesForEverySize) {
  const TimeLimit limit(0, stopped());
  const Tuning tuning = tune(study_, question("dgx1-v100"), {1024, 1 << 20, kMessage},
                             {"optimal:plan=1", "ring", "chain"},
                             predict_in_turns(study_, /*candidates=*/3, /*sizes=*/3));
  ASSERT_EQ(tuning.choices.size(), 3u);
  for (const TuningRow& row : tuning.choices) EXPECT_EQ(row.algorithm, "ring");
  EXPECT_THAT(tuning.unasked, ElementsAre("optimal:plan=1", "chain"));
  EXPECT_EQ(tuning.budget, (GrantedTime{0, true}));
}

TEST_F(LimitedStudy, WhatWasPredictedForOneSizeWasAsked) {
  const PredictAll predict_all = [&](const std::vector<WantedTime>& wanted) {
    std::vector<Prediction> predictions;
    for (const auto& [query, worthwhile_s] : wanted) {
      predictions.push_back(study_.predict(query));
      const bool is_late = query.algorithm == "chain" && query.size_bytes == 1024;
      if (is_late) predictions.back().skipped = kNoTimeLeft;
    }
    return predictions;
  };
  const Tuning tuning =
      tune(study_, question("dgx1-v100"), {1024, kMessage}, {"ring", "chain"}, predict_all);
  EXPECT_TRUE(tuning.unasked.empty());
  ASSERT_EQ(tuning.front.size(), 1u) << "what is not known for both ends is no point between them";
  EXPECT_EQ(tuning.front.front().algorithm, "ring");
}

TEST_F(LimitedStudy, APlanHasWhatWasFoundAndABound) {
  const Query asked = with(question("dgx-a100:nodes=2"), "optimal");
  Planned hurried;
  {
    const TimeLimit limit(0, stopped());
    hurried = plan_query(study_, asked);
  }
  EXPECT_EQ(hurried.budget, (GrantedTime{0, true}));
  EXPECT_THAT(hurried.forest.note, HasSubstr("its time ran out"));
  EXPECT_GT(hurried.fraction, 0.2);
  EXPECT_LT(hurried.fraction, 1);
  EXPECT_TRUE(verify(hurried.program).ok());
  const TimeLimit limit(kNever);
  const Planned patient = plan_query(study_, asked);
  EXPECT_EQ(patient.budget, std::nullopt);
  EXPECT_LE(patient.bound.algbw_gbps, hurried.bound.algbw_gbps);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Questions whose searches have a limited time: clocks go on as tests say.
#include "core/time_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
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

TEST_F(LimitedStudy, CostlyQuestionsComeLast) {
  std::vector<Query> queries;
  for (const std::int64_t size : {1024, 2048}) {
    for (const char* algorithm : {"auto", "optimal", "ring"}) {
      queries.push_back(with(question("ring:n=4"), algorithm, size));
    }
  }
  const auto names = [](const std::vector<Query>& all) {
    std::vector<std::string> found;
    for (const Query& query : all) found.push_back(query.algorithm);
    return found;
  };
  EXPECT_EQ(names(cheap_first(study_, queries)), names(queries)) << "there is time for all";
  const TimeLimit limit(1, stopped());
  const std::vector<Query> ordered = cheap_first(study_, queries);
  EXPECT_THAT(names(ordered), ElementsAre("ring", "auto", "optimal", "ring", "auto", "optimal"));
  EXPECT_EQ(ordered[2].size_bytes, 1024);
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
  {
    const TimeLimit limit(0);
    study_.ask(asked);
  }
  const Outcome again = study_.ask(asked);
  EXPECT_EQ(again.budget, (GrantedTime{10, true})) << "the plan is still the hurried one";
  const Outcome other = study_.ask(with(question("dgx1-v100"), "chain", 1024));
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

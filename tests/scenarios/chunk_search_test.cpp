// SPDX-License-Identifier: Apache-2.0
// The search for the best chunk size, on made-up simulations.
#include "scenarios/chunk_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace espalier {
namespace {

constexpr std::int64_t kMessage = std::int64_t{1} << 30;

/// Simulations of a pipeline, T(P) = A + B / P + C P, which remember what they were asked.
class Pipeline {
 public:
  /// `busy_s`: how long the busiest link is in use.
  Pipeline(double a_s, double b_s, double c_s, double busy_s = 0)
      : a_s_(a_s), b_s_(b_s), c_s_(c_s), busy_s_(busy_s) {}

  double time_s(double pieces) const { return a_s_ + b_s_ / pieces + c_s_ * pieces; }

  ChunkChoice search(double at_most_s = std::numeric_limits<double>::infinity(),
                     double worthwhile_s = std::numeric_limits<double>::infinity()) {
    const ChunkQuestion question{.message_bytes = kMessage,
                                 .longest_share = 1,
                                 .max_work = 1'000'000'000,
                                 .at_most_s = at_most_s,
                                 .worthwhile_s = worthwhile_s};
    return search_chunk(question, [&](std::int64_t chunk_bytes, const SimLimits& limits) {
      const double pieces =
          chunk_bytes == 0 ? 1 : static_cast<double>(kMessage) / static_cast<double>(chunk_bytes);
      asked_.push_back(static_cast<int>(std::lround(pieces)));
      RunReport report;
      SimulatedPart& simulated = report.simulated.emplace();
      simulated.work = std::lround(100 * pieces);
      simulated.busiest_s = busy_s_;
      report.time_s = time_s(pieces);
      report.message_bytes = kMessage;
      simulated.end = report.time_s > limits.time_s ? SimEnd::too_slow : SimEnd::finished;
      return report;
    });
  }
  const std::vector<int>& asked() const { return asked_; }

 private:
  double a_s_, b_s_, c_s_, busy_s_;
  std::vector<int> asked_;
};

/// 32 pieces take 10000 + 128 + 32, 64 take 10000 + 64 + 64, hardly less, and 128 as the curve
/// through 16, 32 and 64 says 10000 + 32 + 128: they need not be simulated to be known as slower.
TEST(ChunkSearch, StopsWhereTheCurveTurns) {
  Pipeline pipeline(10000, 4096, 1);
  const ChunkChoice best = pipeline.search();
  EXPECT_EQ(best.chunk_bytes, kMessage / 64);
  EXPECT_DOUBLE_EQ(best.time_s, 10128);
  EXPECT_EQ(pipeline.asked(), (std::vector{1, 2, 4, 8, 16, 32, 64}));
}

/// What has become much shorter once more may do so again, whatever a curve says.
TEST(ChunkSearch, TrustsNoCurveThatIsSteep) {
  Pipeline pipeline(100, 4096, 1);
  EXPECT_EQ(pipeline.search().chunk_bytes, kMessage / 64);
  EXPECT_EQ(pipeline.asked().back(), 128);
}

/// Pieces that cost nothing get better and better, but not by much.
TEST(ChunkSearch, GoesOnAsLongAsItIsWorthwhile) {
  Pipeline pipeline(100, 1000, 0);
  const ChunkChoice best = pipeline.search();
  EXPECT_EQ(best.chunk_bytes, kMessage / 2048);
  EXPECT_EQ(pipeline.asked().back(), 2048);
}

/// Halves that are slower than the whole are no reason to stop, and few pieces no curve.
TEST(ChunkSearch, LooksAtSixteenPiecesAtLeast) {
  Pipeline pipeline(100, 10, 1);
  const ChunkChoice best = pipeline.search();
  EXPECT_EQ(best.chunk_bytes, kMessage / 4);
  EXPECT_GE(pipeline.asked().back(), 8);
}

/// Halves of 1 byte to some KiB, which are tried if there are halves at all.
TEST(ChunkSearch, HalvesWhateverIsNotOneByte) {
  for (const std::int64_t bytes : {1, 2, 1000, 4096, 8191}) {
    SCOPED_TRACE(bytes);
    std::vector<std::int64_t> asked;
    const auto simulate = [&](std::int64_t chunk_bytes, const SimLimits&) {
      asked.push_back(chunk_bytes);
      RunReport report;
      report.simulated.emplace();
      report.time_s = chunk_bytes == 0 ? 2 : 1;
      report.message_bytes = bytes;
      return report;
    };
    const ChunkChoice best =
        search_chunk({.message_bytes = bytes, .longest_share = 1, .max_work = 1000}, simulate);
    const std::int64_t half = bytes == 1 ? 0 : (bytes + 1) / 2;
    EXPECT_EQ(best.chunk_bytes, half);
    EXPECT_EQ(asked,
              bytes == 1 ? std::vector<std::int64_t>{0} : (std::vector<std::int64_t>{0, half}));
  }
}

/// However the message is cut, its busiest link is busy for 100 s.
TEST(ChunkSearch, CutsNothingThatLinksMakeTooSlow) {
  Pipeline pipeline(100, 1000, 0, 100);
  const ChunkChoice best = pipeline.search(99);
  EXPECT_TRUE(std::isinf(best.time_s));
  EXPECT_EQ(pipeline.asked(), std::vector{1});
}

/// The whole takes 1100 s; 16 pieces, 162.5 s, are the first that take at most 170.
TEST(ChunkSearch, CutsWhatIsTooSlowAsAWhole) {
  Pipeline pipeline(100, 1000, 0, 100);
  EXPECT_EQ(pipeline.search(170).chunk_bytes, kMessage / 2048);
  Pipeline other(100, 1000, 10, 100);
  EXPECT_EQ(other.search(330).chunk_bytes, kMessage / 8);
}

/// Four pieces take 1250 and eight 1125; pieces gain half as much with each doubling, so that none
/// take less than 1000. 500 is out of reach, and the search for 1001 is as if nobody had asked.
TEST(ChunkSearch, EndsWhereNothingWorthwhileIsWithinReach) {
  Pipeline far(1000, 1000, 0);
  const ChunkChoice given_up = far.search(std::numeric_limits<double>::infinity(), 500);
  EXPECT_EQ(far.asked(), (std::vector{1, 2, 4, 8}));
  EXPECT_DOUBLE_EQ(given_up.time_s, 1125) << "an upper bound";
  Pipeline near(1000, 1000, 0);
  const ChunkChoice best = near.search(std::numeric_limits<double>::infinity(), 1001);
  EXPECT_EQ(best.time_s, Pipeline(1000, 1000, 0).search().time_s);
}

/// 32 pieces take 1100 and 64 take 1050. Of so many, twice the latest gain is all that is hoped
/// for: 900 and 950, of which only the first is less than 940.
TEST(ChunkSearch, HopesForLessOfManyPieces) {
  Pipeline far(1000, 3200, 0);
  const ChunkChoice given_up = far.search(std::numeric_limits<double>::infinity(), 940);
  EXPECT_EQ(far.asked(), (std::vector{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_DOUBLE_EQ(given_up.time_s, 1050);
}

/// Of 16 pieces four times as much is hoped for: they take 1200 after 1400, and twice 200 less
/// would not be less than 500; 32 take 1100, for which 900 is all.
TEST(ChunkSearch, HopesForMoreOfSixteenPieces) {
  Pipeline pipeline(1000, 3200, 0);
  pipeline.search(std::numeric_limits<double>::infinity(), 500);
  EXPECT_EQ(pipeline.asked(), (std::vector{1, 2, 4, 8, 16, 32}));
}

/// Its busiest link alone takes longer.
TEST(ChunkSearch, CutsNothingThatIsNotWorthwhile) {
  Pipeline pipeline(100, 1000, 0, 100);
  EXPECT_DOUBLE_EQ(pipeline.search(std::numeric_limits<double>::infinity(), 99).time_s, 1100);
  EXPECT_EQ(pipeline.asked(), std::vector{1});
}

}  // namespace
}  // namespace espalier

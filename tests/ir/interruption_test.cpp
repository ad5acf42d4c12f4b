// SPDX-License-Identifier: Apache-2.0
// Whoever embeds the library can stop it while it builds, cuts and verifies programs.
#include "core/interruption.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/builder.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

struct Stopped {};

/// How often it asks whether to go on.
int checks_in(const std::function<void()>& work) {
  int checks = 0;
  const InterruptionCheck count([&] { ++checks; });
  work();
  return checks;
}

/// It asks often, and stops wherever it is told to.
void expect_stoppable(int least, const std::function<void()>& work) {
  const int checks = checks_in(work);
  EXPECT_GE(checks, least);
  for (const int last : {1, checks / 2, checks}) {
    int asked = 0;
    const InterruptionCheck stop([&] {
      if (++asked == last) throw Stopped();
    });
    EXPECT_THROW(work(), Stopped) << last;
    EXPECT_EQ(asked, last);
  }
}

constexpr int kRanks = 48;  // 4512 ops
constexpr int kMostOpsBetween = 256;
int least_for(const Program& program) {
  return static_cast<int>(program.ops.size()) / kMostOpsBetween;
}

TEST(Interruption, OfBuilding) {
  const int least = least_for(ring_allreduce(kRanks, false));
  EXPECT_GT(least, 10);
  expect_stoppable(least, [] { ring_allreduce(kRanks, false); });
}

TEST(Interruption, OfCutting) {
  const Program program = ring_allreduce(kRanks, false);
  const Chunking chunking{.split = 4, .piece_units = 1};
  expect_stoppable(4 * least_for(program), [&] { chunk(program, chunking); });
}

TEST(Interruption, OfVerifying) {
  const Program program = ring_allreduce(kRanks, false);
  for (const ResultComparison comparison : {ResultComparison::exact, ResultComparison::random}) {
    VerifyOptions options;
    options.comparison = comparison;
    // The structure, races and results are a walk over the ops each.
    expect_stoppable(3 * least_for(program), [&] { verify(program, options); });
  }
}

TEST(Interruption, OfExplainingWhatIsWrong) {
  Program program = ring_allreduce(kRanks, false);
  const int right = checks_in([&] { verify(program); });
  for (Op& op : program.ops) {
    if (op.src_count == 2) op.src_count = 1;  // forgets to add
  }
  EXPECT_FALSE(verify(program).ok());
  expect_stoppable(right, [&] { verify(program); });
}

}  // namespace
}  // namespace espalier

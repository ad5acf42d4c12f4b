// SPDX-License-Identifier: Apache-2.0
// What a study keeps of simulations of messages of other sizes changes no answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "scenarios/study.h"
#include "sim/simulator.h"
#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

Query asked(const std::string& topology, const std::string& profile, const std::string& algorithm) {
  Query query = with(question(topology, Collective::allreduce, profile), algorithm);
  query.chunk_bytes = 0;
  query.only_times = true;
  query.may_fold = false;
  query.judge = false;
  return query;
}

Outcome ask_afresh(const Query& query) {
  Simulator simulator;
  return Study(simulator, &simulator).ask(query);
}

void expect_same(const Outcome& known, const Query& query) {
  const Outcome afresh = ask_afresh(query);
  Query of_all_lanes = query;
  of_all_lanes.only_times = false;
  const Outcome all = ask_afresh(of_all_lanes);
  ASSERT_EQ(known.ran(), all.ran());
  ASSERT_EQ(known.ran(), afresh.ran());
  if (!known.ran()) return;
  EXPECT_EQ(known.report.time_s, afresh.report.time_s);
  EXPECT_EQ(known.report.simulated->back_to_back_s, afresh.report.simulated->back_to_back_s);
  EXPECT_EQ(known.report.simulated->work, afresh.report.simulated->work);
  EXPECT_NEAR(known.report.time_s, all.report.time_s, 1e-9 * all.report.time_s);
  EXPECT_NEAR(known.report.simulated->back_to_back_s, all.report.simulated->back_to_back_s,
              1e-9 * all.report.time_s);
  EXPECT_EQ(known.report.transfers, all.report.transfers);
}

/// Networks with proxies, CPUs on the way, blocks, FIFOs and slices.
TEST(KeptKinds, ChangeNoAnswer) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::int64_t> sizes{
      0, 256, 40'000, 100'001, std::int64_t{3} << 20, std::int64_t{1} << 28};
  for (const char* topology :
       {"dgx1-v100", "mist:nodes=4", "dgx-a100:nodes=2", "p2.16xlarge", "kesch:nodes=2"}) {
    for (const char* profile : {"kernel", "nccl", "copy_engine"}) {
      for (const char* algorithm : {"flat_two_stage", "halving_doubling", "double_binary_tree",
                                    "hierarchical", "all_pairs", "ring"}) {
        SCOPED_TRACE(std::string(topology) + " " + profile + " " + algorithm);
        Query query = asked(topology, profile, algorithm);
        Simulator simulator;
        Study study(simulator, &simulator);
        std::ranges::shuffle(sizes, random);
        for (const std::int64_t size_bytes : sizes) {
          query.size_bytes = size_bytes;
          expect_same(study.ask(query), query);
          if (HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// What is planned is reached: every connected subset of a DGX-1's GPUs, simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <tuple>

#include "core/error.h"
#include "scenarios/study.h"
#include "sim/simulator.h"

namespace espalier {
namespace {

/// Fraction of the bound that `optimal` attains for 1 GiB on the GPUs of a mask.
double fraction(Study& study, const std::string& machine, unsigned mask, std::int64_t chunk_bytes) {
  Query query;
  query.topology = machine;
  for (int gpu = 0; gpu < 8; ++gpu) {
    if (mask >> gpu & 1U) query.gpus.push_back(gpu);
  }
  query.links = LinkScope::fabric;
  query.algorithm = "optimal";
  query.profile = "ideal";
  query.size_bytes = std::int64_t{1} << 30;
  query.chunk_bytes = chunk_bytes;
  const Outcome outcome = study.ask(query);
  EXPECT_FALSE(outcome.skipped) << outcome.skipped.value_or("");
  EXPECT_TRUE(outcome.verified);
  return outcome.fraction;
}

/// Machine and number of GPUs.
class Attained : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(Attained, AllreduceReachesTheBound) {
  const auto& [machine, gpus] = GetParam();
  Simulator simulator;
  Study study(simulator, &simulator);
  int subsets = 0;
  for (unsigned mask = 1; mask < 256; ++mask) {
    if (std::popcount(mask) != gpus) continue;
    try {
      // Which of these pieces is best depends on how transfers fall into step.
      double best = 0;
      for (const int kib : {128, 96, 64, 80}) {
        if (best < 0.99) best = fraction(study, machine, mask, kib * std::int64_t{1024});
      }
      EXPECT_GE(best, 0.99) << mask;
      EXPECT_LE(best, 1 + 1e-9) << mask;
      ++subsets;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << mask;  // not connected by NVLink
    }
  }
  EXPECT_GT(subsets, 0);
}

INSTANTIATE_TEST_SUITE_P(Dgx1, Attained,
                         testing::Combine(testing::Values("dgx1-p100", "dgx1-v100"),
                                          testing::Range(2, 9)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)).substr(5) + "_" +
                                  std::to_string(std::get<1>(param.param)) + "_gpus";
                         });

}  // namespace
}  // namespace espalier

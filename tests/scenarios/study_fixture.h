// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "scenarios/study.h"
#include "sim/simulator.h"

namespace espalier {

/// A question about a machine without start-up costs, algorithm and size still open.
inline Query question(const std::string& topology, Collective collective = Collective::allreduce,
                      const std::string& profile = "ideal") {
  Query asked;
  asked.topology = topology;
  asked.collective = collective;
  asked.profile = profile;
  return asked;
}

inline Query with(Query query, const std::string& algorithm, std::int64_t size_bytes = 0) {
  query.algorithm = algorithm;
  query.size_bytes = size_bytes;
  return query;
}

/// A study that simulates.
class StudyFixture : public ::testing::Test {
 protected:
  Simulator simulator_;
  Study study_{simulator_, &simulator_};
};

}  // namespace espalier

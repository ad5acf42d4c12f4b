// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "scenarios/study.h"
#include "sim/simulator.h"

namespace espalier::oracle {

/// A question with round answers: under `ideal`, with whole messages.
inline Query question(const std::string& machine, Collective collective,
                      const std::string& algorithm, std::int64_t bytes) {
  Query query;
  query.topology = machine;
  query.collective = collective;
  query.algorithm = algorithm;
  query.size_bytes = bytes;
  query.profile = "ideal";
  query.chunk_bytes = 0;
  return query;
}

/// The simulated run of one query, everything verified.
inline RunReport run(const Query& query) {
  Simulator simulator;
  Study study(simulator, &simulator);
  const Outcome outcome = study.ask(query);
  EXPECT_FALSE(outcome.skipped) << outcome.skipped.value_or("");
  EXPECT_TRUE(outcome.verified);
  return outcome.report;
}

/// Its time.
inline double time_s(const std::string& machine, Collective collective,
                     const std::string& algorithm, std::int64_t bytes,
                     const std::string& profile = "ideal", std::int64_t chunk_bytes = 0) {
  Query query = question(machine, collective, algorithm, bytes);
  query.profile = profile;
  query.chunk_bytes = chunk_bytes;
  return run(query).time_s;
}

/// Equal to 1e-9 relative, the accuracy the simulator promises for closed forms.
inline void expect_time(double simulated_s, double expected_s) {
  EXPECT_NEAR(simulated_s / expected_s, 1, 1e-9) << simulated_s << " instead of " << expected_s;
}

}  // namespace espalier::oracle

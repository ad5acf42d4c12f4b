// SPDX-License-Identifier: Apache-2.0
// What profiles say of their errors, beside what the study `validation` finds now.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/scenario_runner.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {
namespace {

/// What is stated of one band: with what it was compared, the error, and the band.
using Statement = std::tuple<std::string, double, const SizeBand*>;

/// The series of the study that a statement is about, each with its deviations there.
using Evidence = std::map<Statement, std::map<std::string, BandDeviations>>;

ScenarioResults validation() {
  const auto& all = builtin_scenarios();
  const auto found = std::ranges::find(all, "validation", &ScenarioEntry::name);
  const ScenarioBackends backends = {[] { return std::make_unique<Simulator>(); }, {}};
  return run_scenarios({parse_scenario(found->yaml, "validation.yaml")}, backends, {.jobs = 1});
}

Evidence evidence_of(const std::vector<ValidatedTime>& times) {
  std::map<std::tuple<std::string, std::string, double>, std::vector<Deviation>> series;
  for (const ValidatedTime& time : times) {
    const ExpectedError& stated = time.expected.value();
    series[{time.block, stated.from, stated.relative}].push_back(
        {time.query.size_bytes, time.error()});
  }
  Evidence evidence;
  for (const auto& [key, deviations] : series) {
    const auto& [block, from, stated] = key;
    for (const BandDeviations& band : by_band(deviations)) {
      evidence[{from, stated, band.band}][block] = band;
    }
  }
  return evidence;
}

/// Rows of the built-in profiles, and of those that the machines of the study have changed.
std::vector<ComparedError> stated_rows(const std::vector<ValidatedTime>& times) {
  std::set<std::string> machines;
  for (const ValidatedTime& time : times) machines.insert(time.query.topology);
  std::vector<ComparedError> rows;
  for (const std::string& machine : machines) {
    for (const auto& [name, profile] : load_topology(machine).profiles) {
      if (profile.interprets) continue;  // tests/oracle/msccl_ring_test.cpp holds theirs
      rows.insert(rows.end(), profile.errors.begin(), profile.errors.end());
    }
  }
  return rows;
}

// The rule: a stated error is no smaller than the median deviation of any series that it is about,
// because that may be the next user's; and no larger than twice the largest of them plus two
// points, or it says nothing. Of one or two times a median says little, so that these bound it from
// below alone; nothing need be stated of them: there the error is an estimate. Of a series with
// more times in a band, a row does state something.
constexpr std::size_t kFewTimes = 3;
constexpr double kMostTimes = 2;
constexpr double kMostPoints = 0.02;

TEST(StatedErrors, AreThoseOfTheStudyOfValidation) {
  const ScenarioResults results = validation();
  ASSERT_FALSE(results.validated.empty());
  const Evidence evidence = evidence_of(results.validated);
  for (const auto& [statement, by_series] : evidence) {
    const auto& [from, stated, band] = statement;
    double largest = 0;
    std::size_t most_times = 0;
    for (const auto& [block, found] : by_series) {
      EXPECT_GE(stated, found.median) << from << ", " << band->title << ": " << block;
      largest = std::max(largest, found.median);
      most_times = std::max(most_times, found.times);
    }
    const bool is_estimate = from.starts_with("estimate");
    if (most_times < kFewTimes) continue;
    EXPECT_FALSE(is_estimate) << "no row is about " << by_series.begin()->first << ": " << from;
    EXPECT_LE(stated, kMostTimes * largest + kMostPoints) << from << ", " << band->title;
  }
  for (const ComparedError& row : stated_rows(results.validated)) {
    if (row.relative <= 0) continue;  // theory
    for (const std::string& name : row.collectives) {
      EXPECT_EQ(std::ranges::count(all_collectives(), name, &CollectiveInfo::name), 1) << name;
    }
    for (const std::string& name : row.algorithms) EXPECT_NO_THROW(parse_algorithm(name)) << name;
    const bool is_met = std::ranges::any_of(evidence, [&](const auto& one) {
      return std::get<0>(one.first) == row.compared && std::get<1>(one.first) == row.relative;
    });
    EXPECT_TRUE(is_met) << fmt::format("no series of the study is about {:.0f} %: {}",
                                       100 * row.relative, row.compared);
  }
}

}  // namespace
}  // namespace espalier

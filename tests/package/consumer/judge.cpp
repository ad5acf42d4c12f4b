// SPDX-License-Identifier: Apache-2.0
// What a user of the library writes: run a study and judge it.
#include <espalier/backends.h>
#include <espalier/report/results.h>
#include <espalier/scenarios/scenario_runner.h>

#include <cstdio>

int main() {
  const char* study = R"(
schema: espalier.scenario/1
name: mine
title: A ring on four GPUs
blocks:
  - {title: Four GPUs, topology: "ring:n=4,gbps=10", profile: ideal, collective: allreduce,
     sizes: 1MB, algorithms: ring, execute: {size: 64KiB},
     expect: [{title: busbw, of: {algorithm: ring}, measure: busbw_gbps, at_least: 9.9}]}
)";
  const auto results = espalier::run_scenarios({espalier::parse_scenario(study, "mine.yaml")},
                                               espalier::scenario_backends());
  for (const auto& one : results.judged) {
    std::printf("%s: %.1f, %s\n", one.expectation.title.c_str(), one.judgement.ours.value_or(0),
                one.as_expected() ? "as expected" : "not as expected");
  }
  std::printf("%zu characters of CSV\n", espalier::results_csv(results).size());
  return results.all_right() ? 0 : 1;
}

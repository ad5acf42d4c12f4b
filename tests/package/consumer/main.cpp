// SPDX-License-Identifier: Apache-2.0
// What a user of the library writes: one question, one answer.
#include <espalier/scenarios/study.h>
#include <espalier/sim/simulator.h>

#include <cstdio>

int main() {
  espalier::Simulator simulator;
  espalier::Study study(simulator, &simulator);
  espalier::Query query;
  query.topology = "ring:n=8,gbps=25";
  query.profile = "ideal";
  query.algorithm = "ring";
  query.size_bytes = std::int64_t{1} << 30;
  query.run.engine = espalier::SimEngine::simgrid;  // loaded from where it is installed
  const espalier::Outcome outcome = study.ask(query);
  if (outcome.skipped || !outcome.verified) return 1;
  std::printf("ring over %d GPUs: %.3f ms\n", outcome.ranks, outcome.report.time_s * 1e3);
}

// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_run.h"

#include <utility>
#include <vector>

#include "exec/run_options.h"

namespace espalier {
namespace {

/// What is where, when there are several nodes, and what the system refused.
std::vector<std::string> notes(const Program& program, const NumaPlan& numa,
                               const LaneRunner& runner, const HostMemory& memory) {
  if (numa.nodes.empty()) return {};
  std::vector<std::string> all = describe(program, numa, runner.threads_by_node());
  if (!runner.is_pinned()) {
    all.emplace_back("the system does not let threads be kept on their NUMA nodes");
  }
  if (!memory.is_placed()) {
    all.emplace_back(
        "the system does not let memory be bound to NUMA nodes: it lies where threads "
        "touched it first");
  }
  return all;
}

}  // namespace

RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options) {
  LaneRunner runner(data.program, lowered, combine, data.threads, numa);
  CheckedHostMemory checked(data, memory);
  CheckedRuns runs = run_checked(
      data.program.contract.in_place, checked, options,
      [&](std::vector<OpTiming>* timeline) { return runner.run(options.timeout_s, timeline); });
  RunReport report;
  report.timeline = std::move(runs.timeline);
  ExecutedPart& executed = report.executed.emplace();
  if (options.check) executed.wrong = runs.damage.wrong;
  executed.damage = std::move(runs.damage.notes);
  note_times(report, runs.times_s);
  executed.interval_s = runs.interval_s;
  executed.notes = notes(data.program, numa, runner, memory);
  return report;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_run.h"

#include <utility>
#include <vector>

#include "core/interruption.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

void check(const HostData& data, const HostMemory& memory, Damage& damage) {
  Damage found = check_memory(data, memory);
  damage.wrong += found.wrong;
  damage.notes.insert(damage.notes.end(), found.notes.begin(), found.notes.end());
}

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

CheckedRuns run_checked(const HostData& data, HostMemory& memory, const RunOptions& options,
                        const RunOnce& run_once) {
  CheckedRuns runs;
  fill_memory(data, memory);
  if (options.check) {
    run_once(nullptr);
    check(data, memory, runs.damage);
  }
  const bool in_place = data.program.contract.in_place;
  for (int i = -options.warmup; i < options.iterations; ++i) {
    check_interruption();
    if (in_place) fill_inputs(data, memory);
    const bool last = i + 1 == options.iterations;
    const double time_s = run_once(last && options.timeline ? &runs.timeline : nullptr);
    if (i >= 0) runs.times_s.push_back(time_s);
  }
  if (options.check) check(data, memory, runs.damage);
  if (options.check && in_place) {
    // What a timed run did not write may have been right from the run before.
    fill_memory(data, memory);
    run_once(nullptr);
    check(data, memory, runs.damage);
  }
  return runs;
}

RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options) {
  LaneRunner runner(data.program, lowered, combine, data.threads, numa);
  CheckedRuns runs = run_checked(data, memory, options, [&](std::vector<OpTiming>* timeline) {
    return runner.run(options.timeout_s, timeline);
  });
  RunReport report;
  report.timeline = std::move(runs.timeline);
  ExecutedPart& executed = report.executed.emplace();
  if (options.check) executed.wrong = runs.damage.wrong;
  executed.damage = std::move(runs.damage.notes);
  note_times(report, runs.times_s);
  executed.notes = notes(data.program, numa, runner, memory);
  return report;
}

}  // namespace espalier

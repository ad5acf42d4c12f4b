// SPDX-License-Identifier: Apache-2.0
#include "exec/host/host_run.h"

#include <utility>
#include <vector>

#include "core/interruption.h"
#include "exec/run_options.h"

namespace espalier {
namespace {

void note_damage(const HostData& data, const HostMemory& memory, ExecutedPart& executed) {
  Damage damage = check_memory(data, memory);
  executed.wrong = executed.wrong.value_or(0) + damage.wrong;
  executed.damage.insert(executed.damage.end(), damage.notes.begin(), damage.notes.end());
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

RunReport run_on_host(const HostData& data, const LanePrograms& lowered, HostMemory& memory,
                      const LaneRunner::Combine& combine, const NumaPlan& numa,
                      const RunOptions& options) {
  fill_memory(data, memory);
  LaneRunner runner(data.program, lowered, combine, data.threads, numa);
  RunReport report;
  ExecutedPart& executed = report.executed.emplace();
  if (options.check) {
    runner.run(options.timeout_s);
    note_damage(data, memory, executed);
  }
  const bool in_place = data.program.contract.in_place;
  std::vector<double> times_s;
  for (int i = -options.warmup; i < options.iterations; ++i) {
    check_interruption();
    if (in_place) fill_inputs(data, memory);
    const bool last = i + 1 == options.iterations;
    const double time_s =
        runner.run(options.timeout_s, last && options.timeline ? &report.timeline : nullptr);
    if (i >= 0) times_s.push_back(time_s);
  }
  if (options.check) note_damage(data, memory, executed);
  if (options.check && in_place) {
    // What a timed run did not write may have been right from the run before.
    fill_memory(data, memory);
    runner.run(options.timeout_s);
    note_damage(data, memory, executed);
  }
  note_times(report, times_s);
  executed.notes = notes(data.program, numa, runner, memory);
  return report;
}

}  // namespace espalier

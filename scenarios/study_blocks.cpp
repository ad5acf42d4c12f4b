// SPDX-License-Identifier: Apache-2.0
// What a study asks of thread blocks that an interpreter carries out.
#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>

#include "scenarios/interpreted.h"
#include "scenarios/study.h"
#include "scenarios/study_cache.h"

namespace espalier {

/// The thread blocks that the back end is to carry out in place of the program, or null.
const BlockProgram* Study::interpreted_blocks(const Query& query, const Machine& machine) {
  if (&backend_ != simulator_ || query.topology.empty()) return nullptr;
  return interpreted(machine.router->profile(), choice(query.algorithm));
}

/// An interpreter cuts messages by itself.
Outcome Study::ask_blocks(const Query& query, const BlockProgram& blocks, Machine& machine,
                          Prepared& prepared, Outcome outcome) {
  Query whole = query;
  whole.chunk_bytes = 0;
  if (!cut_and_verify(whole, prepared, outcome)) return outcome;
  const Router& router = machine.runtime(*runtime_of(blocks, machine, query));
  outcome.protocol = router.profile().protocol.name;
  if (query.chunk_bytes.value_or(0) > 0) {
    outcome.chunk_note = "the interpreter cuts messages by itself; the chunk size is not used";
  }
  if (const std::string note = protocol_note(blocks, outcome.protocol); !note.empty()) {
    outcome.program_note += (outcome.program_note.empty() ? "" : "; ") + note;
  }
  const Target target{&router, machine.placement};
  outcome.skipped = backend_.unsupported(*outcome.program, target);
  if (outcome.skipped) return outcome;
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  outcome.report = backend_.run_blocks(*outcome.program, blocks, target, options);
  rate(query, machine, router, prepared, outcome);
  return outcome;
}

Outcome Study::ask_library(const Query& query, const std::string& why) {
  Outcome outcome = answer(by_library(query));
  const std::string note = library_note(query, why);
  outcome.query = query;
  outcome.program_note = note;
  if (outcome.skipped) outcome.skipped = fmt::format("{}: {}", note, *outcome.skipped);
  return outcome;
}

Prediction Study::simulate_blocks(const Query& query, const BlockProgram& blocks, Machine& machine,
                                  const Prepared& prepared) {
  RunOptions options = query.run;
  options.size_bytes = query.size_bytes;
  options.timeline = false;
  options.limits = SimLimits{};
  const std::size_t runtime = *runtime_of(blocks, machine, query);
  const Target target{&machine.runtime(runtime), machine.placement};
  const RunReport report = simulator_->run_blocks(*prepared.whole, blocks, target, options);
  const bool is_stuck = report.simulated->end == SimEnd::stuck;
  Prediction made{{}, query.algorithm, runtime, {}};
  if (is_stuck) made.skipped = report.simulated->stuck;
  made.best.time_s = is_stuck ? std::numeric_limits<double>::infinity() : report.time_s;
  made.best.algbw_gbps = is_stuck ? 0 : report.algbw_gbps();
  return made;
}

}  // namespace espalier

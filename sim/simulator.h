// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "run/backend.h"

namespace espalier {

/// Predicts the time of a program on a machine, link by link. Contention is solved by an engine of
/// our own, or by SimGrid where RunOptions::engine says so
/// (docs/decisions/0006-two-flow-engines.md).
/// A process can run many simulations one after the other, but not from several threads.
class Simulator : public Backend {
 public:
  Simulator();
  ~Simulator() override;
  std::string name() const override { return "sim"; }
  std::optional<std::string> unsupported(const Program& program,
                                         const Target& target) const override;
  bool runs_all_groups(const Program& program, const Target& target,
                       const RunOptions& options) const override;
  /// Of lanes that share a block, the op begins first that could begin first: a simulation decides.
  std::optional<Program> on_blocks(const Program& program, const Target& target,
                                   const RunOptions& options) override;
  LeastTimes least_times(const Program& program, const Target& target, const RunOptions& options,
                         double enough_s) override;
  /// Of a BlockProgram, times of single ops are not known: there is neither a timeline nor a
  /// critical path. A long message is simulated until its loops last equally long
  /// (sim/run_blocks.h). Throws Error{runtime} naming thread blocks and steps where FIFOs fill up.
  RunReport run_blocks(const Program& program, const BlockProgram& blocks, const Target& target,
                       const RunOptions& options) override;
  /// A program with more lanes than blocks runs as `on_blocks` would put it there; what is reported
  /// of its ops is told of the ops given.
  RunReport run(const Program& program, const Target& target, const RunOptions& options) override;
};

}  // namespace espalier

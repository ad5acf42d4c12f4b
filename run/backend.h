// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/error.h"
#include "ir/block_program.h"
#include "run/options.h"
#include "run/report.h"
#include "run/target.h"

namespace espalier {

/// What every run of a program takes at least, by what was found without running it.
struct LeastTimes {
  /// What links carry takes so long on the busiest one, into however many pieces ops are cut and
  /// without what a call costs; counted until it is more than enough.
  double links_s = 0;
  /// With transfers of at most so many bytes; 0: uncut. The smaller, the longer.
  std::function<double(std::int64_t chunk_bytes)> of_chunks = [](std::int64_t) { return 0.0; };
};

/// Something that runs verified programs: the simulator, host threads, GPUs. The
/// interface that rooms share. `backends.*` has the table of all of them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Why this back end cannot run the program, or nothing.
  virtual std::optional<std::string> unsupported(const Program& program,
                                                 const Target& target) const = 0;
  /// Whether a folded program can be run on a machine that does not repeat itself as it does
  /// (Target::rotation is null): the ops of all groups, known from those of the first. \pre there
  /// is a machine
  virtual bool runs_all_groups(const Program& program, const Target& target,
                               const RunOptions& options) const {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
    return false;
  }
  /// The program with its lanes put onto the blocks that a GPU has under the target's profile
  /// (Profile::blocks), where it has more lanes than these; nothing where it fits, or where the
  /// back end knows no blocks. What it does is the same.
  virtual std::optional<Program> on_blocks(const Program& program, const Target& target,
                                           const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
    return std::nullopt;
  }
  /// Lower bounds on the time of a run, which say nothing where the back end has none; far less
  /// work than a run, above all where links alone take longer than `enough_s`. \pre as for `run`
  virtual LeastTimes least_times(const Program& program, const Target& target,
                                 const RunOptions& options, double enough_s) {
    static_cast<void>(program), static_cast<void>(target);
    static_cast<void>(options), static_cast<void>(enough_s);
    return {};
  }
  /// Throws what `run` would throw for want of memory (OutOfMemory) or of devices; nothing is run.
  virtual void require_room(const Program& program, const Target& target,
                            const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
  }
  /// Runs a program as an interpreter's thread blocks carry it out, where the target's profile
  /// interprets (Profile::interprets). Back ends that move data run programs: Error{unsupported}.
  /// \pre as for `run`; `blocks` are those of the file that `program` was made of
  virtual RunReport run_blocks(const Program& program, const BlockProgram& blocks,
                               const Target& target, const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(blocks);
    static_cast<void>(target), static_cast<void>(options);
    throw Error(ErrorKind::unsupported, name() + " runs programs, not the thread blocks of a file");
  }
  /// \pre `program` passed `verify`, and `unsupported` returned nothing.
  /// Throws Error{runtime} naming rank and op if the run cannot finish.
  virtual RunReport run(const Program& program, const Target& target,
                        const RunOptions& options) = 0;
};

}  // namespace espalier

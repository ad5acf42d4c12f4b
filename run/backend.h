// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "run/options.h"
#include "run/report.h"
#include "run/target.h"

namespace espalier {

/// Something that runs verified programs: the simulator, host threads, GPUs. The
/// interface that rooms share. `backends.*` has the table of all of them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  /// Why this back end cannot run the program, or nothing.
  virtual std::optional<std::string> unsupported(const Program& program,
                                                 const Target& target) const = 0;
  /// The program with its lanes put onto the blocks that a GPU has under the target's profile
  /// (Profile::blocks), where it has more lanes than these; nothing where it fits, or where the
  /// back end knows no blocks. What it does is the same.
  virtual std::optional<Program> on_blocks(const Program& program, const Target& target,
                                           const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
    return std::nullopt;
  }
  /// Throws what `run` would throw for want of memory (OutOfMemory) or of devices; nothing is run.
  virtual void require_room(const Program& program, const Target& target,
                            const RunOptions& options) {
    static_cast<void>(program), static_cast<void>(target), static_cast<void>(options);
  }
  /// \pre `program` passed `verify`, and `unsupported` returned nothing.
  /// Throws Error{runtime} naming rank and op if the run cannot finish.
  virtual RunReport run(const Program& program, const Target& target,
                        const RunOptions& options) = 0;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "exec/damage.h"
#include "run/options.h"
#include "run/report.h"

namespace espalier {

/// Runs a program once and returns its seconds; with a timeline, sets start and end of every op.
using RunOnce = std::function<double(std::vector<OpTiming>* timeline)>;

/// The buffers that a program runs on, whatever memory they are in, as checks see them.
class CheckedMemory {
 public:
  virtual ~CheckedMemory() = default;
  /// Buffers as `initial_memory` of ir/interpret.h makes them: inputs filled, everything else
  /// unwritten.
  virtual void fill() = 0;
  /// Inputs filled again, everything else left as it is.
  virtual void fill_inputs() = 0;
  /// Compares every element of the results with what it must be, inputs of out-of-place runs with
  /// what they were, and looks for writes outside of buffers.
  virtual Damage check() = 0;
};

/// What came of it.
struct CheckedRuns {
  std::vector<double> times_s;  ///< of the timed runs
  double interval_s = 0;        ///< as in ExecutedPart
  Damage damage;                ///< of all checks together
  std::vector<OpTiming> timeline;
};

/// Fills the memory and runs a program on it as often, and with as many checks between, as
/// HostBackend says. `in_place`: of the program's contract.
CheckedRuns run_checked(bool in_place, CheckedMemory& memory, const RunOptions& options,
                        const RunOnce& run_once);

}  // namespace espalier

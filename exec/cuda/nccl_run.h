// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "exec/cuda/memory.h"
#include "exec/cuda/nccl_ranks.h"
#include "run/backend.h"

namespace espalier::cuda {

/// NCCL's collective on the buffers of a program for the same contract: checked, captured, repeated
/// and timed as the program is. All arguments must outlive it.
class NcclRun {
 public:
  NcclRun(const MessageKind& kind, const Gpus& gpus, PlaceMemory& memory, NcclRanks& nccl);

  /// Throws Error{runtime} when NCCL or CUDA reports a failure, and when a call or what it gave to
  /// the GPUs does not end within the time limit, after which the devices are abandoned.
  RunReport run(const RunOptions& options);

 private:
  NcclMessage make_message() const;
  void give();
  void give_first(double timeout_s);
  void capture(double timeout_s);
  std::vector<double> repeat_it(int runs, double timeout_s);
  void check(RunReport& report, Checked what);
  void run_from_fresh_inputs(RunReport& report, const RunOptions& options);

  const MessageKind& kind_;
  PlaceMemory& memory_;
  NcclRanks& nccl_;
  const NcclMessage message_;
  const std::vector<int> gpus_;  ///< by rank, as CUDA numbers them
  std::vector<Stream> streams_;  ///< by rank; the first is timed
  Event begun_;                  ///< the others begin after it
  std::vector<Event> ended_;     ///< by rank
  bool has_been_called_ = false;
  GraphExec graph_;
  std::string refusal_;  ///< why there is no graph
};

}  // namespace espalier::cuda

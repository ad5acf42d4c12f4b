// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/memory.h"
#include "exec/cuda/nccl_ranks.h"
#include "run/backend.h"

namespace espalier::cuda {

/// NCCL's collective on the buffers of a program for the same contract: checked, captured, repeated
/// and timed as the program is. All arguments must outlive it; the communicators are shared.
class NcclRun {
 public:
  NcclRun(const MessageKind& kind, const Gpus& gpus, PlaceMemory& memory, NcclRanks& nccl);

  /// Throws Error{runtime} when NCCL or CUDA reports a failure, and when a call or what it gave to
  /// the GPUs does not end within the time limit, after which the devices are abandoned.
  RunReport run(const RunOptions& options);

 private:
  /// What is given to NCCL, with all that this uses: a call that never returns keeps it.
  struct Calls {
    std::shared_ptr<NcclRanks> nccl;
    NcclMessage message;
    std::vector<int> gpus;          ///< by rank, as CUDA numbers them
    std::vector<Stream> streams{};  ///< by rank; the first is timed
    Event begun{};                  ///< the others begin after it
    std::vector<Event> ended{};     ///< by rank

    void give() const;
  };

  NcclMessage make_message() const;
  const char* call_name() const;
  cudaStream_t timed_stream() const { return calls_->streams.front().get(); }
  void give_first(double timeout_s);
  void capture(double timeout_s);
  std::vector<double> repeat_it(int runs, double timeout_s);
  void check(RunReport& report, Checked what);
  void run_from_fresh_inputs(RunReport& report, const RunOptions& options);

  const MessageKind& kind_;
  PlaceMemory& memory_;
  const std::shared_ptr<Calls> calls_;
  bool has_been_called_ = false;
  GraphExec graph_;
  std::string refusal_;  ///< why there is no graph
};

}  // namespace espalier::cuda

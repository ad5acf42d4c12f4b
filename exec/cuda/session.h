// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exec/cuda/calls.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/memory.h"
#include "exec/cuda/streams.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/stream_plan.h"
#include "run/backend.h"

namespace espalier::cuda {

/// What tells runs apart that can't share their memory and their graph.
struct SessionKey {
  std::int64_t size_bytes = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  bool copy_engines = false;
  std::vector<int> gpus;  ///< by place, as CUDA numbers them; DeviceSet::kHost
  bool operator==(const SessionKey&) const = default;
};

/// A program made ready for one message size on some GPUs: its streams, its memory, and, once it
/// has run, its graph.
class Session {
 public:
  /// Allocates. Throws Error{usage} when a GPU has not the memory, and what `plan_streams` throws.
  Session(const Program& program, const SessionKey& key);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool serves(const Program& program, const SessionKey& key) const {
    return key == key_ && same_program(program, program_);
  }
  const StreamPlan& plan() const { return plan_; }
  const Gpus& gpus() const { return gpus_; }

  /// As Backend::run has it. The program runs op by op first, watched; then as a graph.
  RunReport run(const RunOptions& options);

 private:
  void run_op_by_op(double timeout_s);
  GraphExec capture(Trace how);
  void launch(const GraphExec& graph, cudaEvent_t begin, cudaEvent_t end);
  double wait_for_launch(cudaEvent_t begin, cudaEvent_t end, double timeout_s);
  std::vector<double> run_graph(const GraphExec& graph, int runs, double timeout_s);
  void note_damage(RunReport& report);
  std::vector<std::string> notes() const;

  const SessionKey key_;
  const Program program_;
  const Gpus gpus_;
  const MessageKind kind_;
  const LanePrograms lowered_;
  const StreamPlan plan_;
  PlaceMemory memory_;
  Streams streams_;
  GraphExec graph_;
  double op_by_op_s_ = 0;  ///< what the latest such run took
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/cuda/calls.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/host_nodes.h"
#include "exec/cuda/memory.h"
#include "exec/cuda/nccl_ranks.h"
#include "exec/cuda/streams.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/stream_plan.h"
#include "exec/room.h"
#include "run/backend.h"

namespace espalier::cuda {

/// What distinguishes runs that cannot share their memory and their graph.
struct SessionKey {
  std::int64_t size_bytes = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  CopyEngineUse copy_engines = CopyEngineUse::none;
  std::vector<int> gpus;                  ///< by place, as CUDA numbers them; DeviceSet::kHost
  std::vector<HostNode> host_nodes = {};  ///< by host memory
  bool operator==(const SessionKey&) const = default;
};

/// A program lowered to the streams of some GPUs, for one message size. Nothing is allocated there.
struct Prepared {
  /// Throws what `open_gpus` and `plan_streams` throw.
  Prepared(const Program& program, const SessionKey& key);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  const SessionKey key;
  const Program program;
  const Gpus gpus;
  const MessageKind kind;
  const LanePrograms lowered;
  const StreamPlan plan;
};

/// What its buffers need of each GPU, by number, and of this computer, and what these have to give
/// now. With `prepared`, everything that a session allocates.
std::vector<MemoryNeed> memory_needs(const Program& program, const SessionKey& key,
                                     const Prepared* prepared);

/// A program made ready to run: its streams, its memory, and, once it has run, its graph.
class Session {
 public:
  /// Allocates. Throws OutOfMemory.
  explicit Session(std::shared_ptr<const Prepared> prepared);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool serves(const Program& program, const SessionKey& key) const {
    return key == prepared_->key && same_program(program, prepared_->program);
  }
  const StreamPlan& plan() const { return prepared_->plan; }
  const Gpus& gpus() const { return prepared_->gpus; }

  /// As Backend::run has it. The program runs op by op first, watched; then as a graph, or op by op
  /// again where CUDA refuses to make one.
  RunReport run(const RunOptions& options);
  /// NCCL's own collective on the same buffers. \pre its ranks are on the GPUs of the program's
  RunReport run_nccl(NcclRanks& nccl, const RunOptions& options);

 private:
  void give_op_by_op(double timeout_s);
  void run_op_by_op(double timeout_s);
  GraphExec capture(Trace how);
  std::vector<double> run_graph(const GraphExec& graph, int runs, double timeout_s);
  std::vector<double> run_streams(int runs, double timeout_s);
  std::vector<double> run_timed(int runs, double timeout_s);
  void note_damage(RunReport& report, Checked what);
  void prove_graph(RunReport& report, const RunOptions& options);
  void check_timed_runs(RunReport& report, double timeout_s);
  std::vector<OpTiming> timeline(double timeout_s);
  std::vector<std::string> notes() const;

  const std::shared_ptr<const Prepared> prepared_;
  const Program& program_;
  PlaceMemory memory_;
  Streams streams_;
  GraphExec graph_;
  std::string refusal_;    ///< why there can't be a graph; empty: there can, or nobody has tried
  double op_by_op_s_ = 0;  ///< what the latest such run took
};

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "exec/cuda/calls.h"
#include "exec/cuda/gpus.h"
#include "exec/cuda/kernels.h"
#include "exec/cuda/memory.h"
#include "exec/lanes/lowering.h"
#include "exec/lanes/stream_plan.h"
#include "run/backend.h"

namespace espalier::cuda {

/// Whether events are recorded around each op: not, by the streams when they come to it, or by
/// nodes of the graph that is being captured each time it runs, which is then paced by the GPUs
/// alone.
enum class Trace { off, streams, graph };

/// CUDA's streams and events for a plan: the StreamDevice that `issue` gives commands to. Every
/// command goes to its stream at once; nothing waits here. All arguments must outlive it.
class Streams {
 public:
  Streams(const MessageKind& kind, const StreamPlan& plan, const Gpus& gpus,
          const PlaceMemory& memory);

  /// Bytes that are allocated for a stream of the plan: scratch memory and addresses of sources.
  struct Need {
    std::size_t scratch = 0;
    std::size_t addresses = 0;
  };
  static std::vector<Need> needs(const StreamPlan& plan);

  /// The stream before whose next command everything is done.
  cudaStream_t origin() const { return streams_.front().get(); }
  const Gpu& origin_gpu() const { return gpu_of(0); }

  /// For the commands that follow. When not off, the next one must be the first of the plan.
  void trace(Trace how);
  /// Whether an op of the latest traced run has ended. Throws Error{runtime} when a GPU reports a
  /// failure.
  bool has_ended(OpId op) const;
  /// Start and end of every op of the latest traced run, which has ended. Counted on each GPU from
  /// when it learned that the run begins.
  std::vector<OpTiming> timeline() const;

  void wait(const StreamCommand& command);
  void record(const StreamCommand& command);
  void copy(const StreamCommand& command);
  void fold(const StreamCommand& command);
  void compute(const StreamCommand& command);

 private:
  struct OpEvents {
    int device = 0;
    Event begin;
    Event end;
  };

  int device_of(std::uint32_t stream) const { return plan_.streams[stream].device; }
  const Gpu& gpu_of(std::uint32_t stream) const {
    return gpus_.all[static_cast<std::size_t>(device_of(stream))];
  }
  std::byte* address(std::uint32_t stream, const BufferOffset& operand) const;
  void make_source_tables();
  SourceList sources_of(const StreamCommand& command) const;
  void use(std::uint32_t stream);
  void require_for(cudaError_t status, const char* call, const StreamCommand& command) const;
  void before(const StreamCommand& command);
  void after(const StreamCommand& command);
  void make_op_events();
  void record_timed(const Event& event, std::uint32_t stream);
  void mark_begin_of_devices();

  const MessageKind& kind_;
  const StreamPlan& plan_;
  const Gpus& gpus_;
  const PlaceMemory& memory_;
  std::vector<Stream> streams_;
  std::vector<DeviceBytes> scratch_;        ///< by stream
  std::vector<Event> events_;               ///< by event of the plan
  std::vector<DeviceBytes> source_tables_;  ///< by stream: addresses of folds with many sources
  std::vector<std::size_t> table_offset_;   ///< by source_begin of such a fold: into its table
  Trace traced_ = Trace::off;
  Event begin_;                       ///< of a traced run
  std::vector<Event> device_begins_;  ///< by device
  std::vector<OpEvents> op_events_;   ///< by op
};

}  // namespace espalier::cuda

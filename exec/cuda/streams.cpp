// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "ir/print.h"

namespace espalier::cuda {
namespace {

double elapsed_s(cudaEvent_t begin, cudaEvent_t end, int gpu) {
  float elapsed_ms = 0;
  require(cudaEventElapsedTime(&elapsed_ms, begin, end), "cudaEventElapsedTime", gpu);
  return elapsed_ms * 1e-3;
}

}  // namespace

Streams::Streams(const MessageKind& kind, const StreamPlan& plan, const Gpus& gpus,
                 const PlaceMemory& memory)
    : kind_(kind), plan_(plan), gpus_(gpus), memory_(memory) {
  for (std::uint32_t stream = 0; stream < plan.streams.size(); ++stream) {
    use(stream);
    const int gpu = gpu_of(stream).number;
    streams_.push_back(make_stream(gpu));
    const auto bytes = static_cast<std::size_t>(plan.streams[stream].scratch_bytes);
    scratch_.push_back(bytes == 0 ? DeviceBytes{} : allocate(bytes, gpu, "copies for a stream"));
  }
  for (const int device : plan.event_devices) {
    const int gpu = gpus.all[static_cast<std::size_t>(device)].number;
    use_gpu(gpu);
    events_.push_back(make_event(gpu, false));
  }
  make_source_tables();
}

std::vector<Streams::Need> Streams::needs(const StreamPlan& plan) {
  std::vector<Need> all;
  for (const PlannedStream& stream : plan.streams) {
    all.push_back({.scratch = static_cast<std::size_t>(stream.scratch_bytes)});
  }
  for (const StreamCommand& command : plan.commands) {
    if (command.source_count <= kMaxInlineSources) continue;
    all[command.stream].addresses += command.source_count * sizeof(std::byte*);
  }
  return all;
}

std::byte* Streams::address(std::uint32_t stream, const BufferOffset& operand) const {
  if (operand.place != kStreamScratch) return memory_.at(operand);
  return static_cast<std::byte*>(scratch_[stream].get()) + operand.bytes;
}

/// A launch carries the addresses of a few sources; those of more are kept in device memory.
void Streams::make_source_tables() {
  std::vector<std::vector<const std::byte*>> tables(streams_.size());
  table_offset_.resize(plan_.sources.size(), 0);
  for (const StreamCommand& command : plan_.commands) {
    if (command.source_count <= kMaxInlineSources) continue;
    auto& table = tables[command.stream];
    table_offset_[command.source_begin] = table.size();
    for (const BufferOffset& source : plan_.sources_of(command)) {
      table.push_back(address(command.stream, source));
    }
  }
  for (std::uint32_t stream = 0; stream < tables.size(); ++stream) {
    DeviceBytes& made = source_tables_.emplace_back();
    if (tables[stream].empty()) continue;
    use(stream);
    const int gpu = gpu_of(stream).number;
    const std::size_t bytes = tables[stream].size() * sizeof(std::byte*);
    made = allocate(bytes, gpu, "addresses of sources");
    require(cudaMemcpy(made.get(), tables[stream].data(), bytes, cudaMemcpyHostToDevice),
            "cudaMemcpy", gpu);
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize", gpu);
  }
}

SourceList Streams::sources_of(const StreamCommand& command) const {
  SourceList list{};
  list.count = static_cast<int>(command.source_count);
  if (list.count > kMaxInlineSources) {
    list.table = static_cast<const std::byte* const*>(source_tables_[command.stream].get()) +
                 table_offset_[command.source_begin];
    return list;
  }
  const auto sources = plan_.sources_of(command);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    list.addresses[i] = address(command.stream, sources[i]);
  }
  return list;
}

void Streams::use(std::uint32_t stream) { use_gpu(gpu_of(stream).number); }

void Streams::require_for(cudaError_t status, const char* call,
                          const StreamCommand& command) const {
  if (status == cudaSuccess) return;
  const bool has_op = command.op != StreamCommand::kNoOp;
  require(status, call, gpu_of(command.stream).number,
          has_op ? fmt::format("for op {} '{}'", command.op, to_string(kind_.program, command.op))
                 : "where the program begins or ends");
}

void Streams::wait(const StreamCommand& command) {
  use(command.stream);
  require_for(cudaStreamWaitEvent(streams_[command.stream].get(), events_[command.event].get(), 0),
              "cudaStreamWaitEvent", command);
}

void Streams::record(const StreamCommand& command) {
  use(command.stream);
  require_for(cudaEventRecord(events_[command.event].get(), streams_[command.stream].get()),
              "cudaEventRecord", command);
}

void Streams::before(const StreamCommand& command) {
  use(command.stream);
  if (traced_ == Trace::off || !command.begins_op) return;
  record_timed(op_events_[command.op].begin, command.stream);
}

void Streams::after(const StreamCommand& command) {
  if (traced_ == Trace::off || !command.ends_op) return;
  record_timed(op_events_[command.op].end, command.stream);
}

void Streams::copy(const StreamCommand& command) {
  before(command);
  std::byte* const dst = address(command.stream, command.dst);
  const std::byte* const source = address(command.stream, plan_.sources_of(command)[0]);
  const std::size_t bytes = static_cast<std::size_t>(command.elements) * plan_.element_bytes;
  if (bytes > 0 && dst != source) {
    require_for(
        cudaMemcpyAsync(dst, source, bytes, cudaMemcpyDefault, streams_[command.stream].get()),
        "cudaMemcpyAsync", command);
  }
  after(command);
}

void Streams::fold(const StreamCommand& command) {
  before(command);
  std::byte* const dst = address(command.stream, command.dst);
  const cudaStream_t stream = streams_[command.stream].get();
  const int blocks =
      max_blocks(plan_, command, kFoldBlocksPerProcessor * gpu_of(command.stream).processors);
  const SourceList sources = sources_of(command);
  if (command.elements > 0 && command.source_count > 1) {
    require_for(launch_fold(kind_.type, kind_.op, dst, sources, {command.elements, blocks}, stream),
                "launching a combine kernel", command);
  } else if (command.elements > 0 && sources.addresses[0] != dst) {
    const auto bytes = command.elements * static_cast<std::int64_t>(plan_.element_bytes);
    require_for(launch_copy(dst, sources.addresses[0], {bytes, blocks}, stream),
                "launching a copy kernel", command);
  }
  after(command);
}

void Streams::compute(const StreamCommand& command) {
  before(command);
  const double duration_s = kind_.program.duration_s(kind_.program.ops[command.op]);
  require_for(launch_wait(duration_s, streams_[command.stream].get()), "launching a waiting kernel",
              command);
  after(command);
}

void Streams::record_timed(const Event& event, std::uint32_t stream) {
  const unsigned flags = traced_ == Trace::graph ? cudaEventRecordExternal : cudaEventRecordDefault;
  require(cudaEventRecordWithFlags(event.get(), streams_[stream].get(), flags), "cudaEventRecord",
          gpu_of(stream).number);
}

/// On each GPU, a moment to count from: its first stream notes when the origin has begun. Nothing
/// of the run has begun then.
void Streams::mark_begin_of_devices() {
  use(0);
  require(cudaEventRecord(begin_.get(), origin()), "cudaEventRecord", origin_gpu().number);
  std::vector<bool> marked(gpus_.all.size(), false);
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    const auto device = static_cast<std::size_t>(device_of(stream));
    if (marked[device]) continue;
    marked[device] = true;
    use(stream);
    if (stream > 0) {
      require(cudaStreamWaitEvent(streams_[stream].get(), begin_.get(), 0), "cudaStreamWaitEvent",
              gpu_of(stream).number);
    }
    record_timed(device_begins_[device], stream);
  }
}

void Streams::make_op_events() {
  use(0);
  begin_ = make_event(origin_gpu().number, false);
  for (const Gpu& gpu : gpus_.all) {
    use_gpu(gpu.number);
    device_begins_.push_back(make_event(gpu.number, true));
  }
  op_events_.resize(kind_.program.ops.size());
  for (const StreamCommand& command : plan_.commands) {
    if (!is_op(command) || !command.begins_op) continue;
    use(command.stream);
    const int gpu = gpu_of(command.stream).number;
    op_events_[command.op] = {device_of(command.stream), make_event(gpu, true),
                              make_event(gpu, true)};
  }
}

void Streams::trace(Trace how) {
  traced_ = how;
  if (how == Trace::off) return;
  if (!begin_) make_op_events();
  mark_begin_of_devices();
}

bool Streams::has_ended(OpId op) const {
  const cudaError_t status = query(op_events_[op].end.get());
  if (status == cudaErrorNotReady) return false;
  if (status == cudaSuccess) return true;
  require(status, "cudaEventQuery",
          gpus_.all[static_cast<std::size_t>(op_events_[op].device)].number,
          fmt::format("at op {} '{}' or another that ran then", op, to_string(kind_.program, op)));
  return false;  // it has thrown
}

std::vector<OpTiming> Streams::timeline() const {
  std::vector<OpTiming> all;
  for (OpId op = 0; op < op_events_.size(); ++op) {
    const OpEvents& events = op_events_[op];
    const auto device = static_cast<std::size_t>(events.device);
    const cudaEvent_t zero = device_begins_[device].get();
    const int gpu = gpus_.all[device].number;
    all.push_back(
        {op, elapsed_s(zero, events.begin.get(), gpu), elapsed_s(zero, events.end.get(), gpu)});
  }
  return all;
}

}  // namespace espalier::cuda

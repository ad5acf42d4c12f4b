// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/nccl_run.h"

#include <fmt/format.h>

#include <span>

#include "exec/cuda/graph.h"
#include "exec/cuda/patience.h"
#include "exec/cuda/repeat.h"
#include "exec/run_options.h"

namespace espalier::cuda {
namespace {

// As many calls are under way at a time as launches of a program's graph are.
constexpr int kInFlight = 16;

std::vector<int> numbers_of_ranks(const MessageKind& kind, const Gpus& gpus) {
  std::vector<int> numbers;
  for (int rank = 0; rank < kind.program.ranks(); ++rank) {
    const int device = gpus.set.device_of_place[static_cast<std::size_t>(rank)];
    numbers.push_back(gpus.all[static_cast<std::size_t>(device)].number);
  }
  return numbers;
}

}  // namespace

NcclRun::NcclRun(const MessageKind& kind, const Gpus& gpus, PlaceMemory& memory, NcclRanks& nccl)
    : kind_(kind),
      memory_(memory),
      nccl_(nccl),
      message_(make_message()),
      gpus_(numbers_of_ranks(kind, gpus)) {
  for (const int gpu : gpus_) {
    use_gpu(gpu);
    streams_.push_back(make_stream(gpu));
    ended_.push_back(make_event(gpu, false));
  }
  use_gpu(gpus_.front());
  begun_ = make_event(gpus_.front(), false);
}

NcclMessage NcclRun::make_message() const {
  const Contract& contract = kind_.program.contract;
  NcclMessage message{.contract = contract, .type = kind_.type, .op = kind_.op};
  message.elements = static_cast<std::size_t>(kind_.layout.count(0, block_units(contract)));
  const auto at = [&](int rank, const Region& region) -> std::byte* {
    if (region.units == 0) return nullptr;
    const std::int64_t element = kind_.layout.offset(region.begin);
    return memory_.at(
        {rank, region.buffer, element * static_cast<std::int64_t>(size_of(kind_.type))});
  };
  for (int rank = 0; rank < contract.ranks; ++rank) {
    message.inputs.push_back(at(rank, input_region(contract, rank)));
    message.results.push_back(at(rank, output_region(contract, rank)));
  }
  return message;
}

/// One call. All begins after what the first stream was given before, and that goes on after all.
void NcclRun::give() {
  use_gpu(gpus_.front());
  const cudaStream_t origin = streams_.front().get();
  require(cudaEventRecord(begun_.get(), origin), "cudaEventRecord", gpus_.front());
  for (std::size_t rank = 1; rank < gpus_.size(); ++rank) {
    use_gpu(gpus_[rank]);
    require(cudaStreamWaitEvent(streams_[rank].get(), begun_.get(), 0), "cudaStreamWaitEvent",
            gpus_[rank]);
  }
  nccl_.call(message_, streams_);
  for (std::size_t rank = 1; rank < gpus_.size(); ++rank) {
    use_gpu(gpus_[rank]);
    require(cudaEventRecord(ended_[rank].get(), streams_[rank].get()), "cudaEventRecord",
            gpus_[rank]);
    use_gpu(gpus_.front());
    require(cudaStreamWaitEvent(origin, ended_[rank].get(), 0), "cudaStreamWaitEvent",
            gpus_.front());
  }
}

/// The first call makes connections, which takes its time and may hang.
void NcclRun::give_first(double timeout_s) {
  call_within(timeout_s, nccl_call_name(message_.contract.collective), [this] { give(); });
  has_been_called_ = true;
}

/// Where NCCL or CUDA refuses, calls are timed in streams.
void NcclRun::capture(double timeout_s) {
  const std::string name = nccl_call_name(message_.contract.collective);
  call_within(timeout_s, name + " in a capture", [this] {
    try {
      graph_ = make_graph(streams_.front().get(), gpus_.front(), [this] { give(); });
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& refused) {
      refusal_ = refused.diagnostics().front().message;
    }
  });
}

std::vector<double> NcclRun::repeat_it(int runs, double timeout_s) {
  Repetition repetition{.stream = streams_.front().get(), .gpu = gpus_.front()};
  repetition.give = [&] {
    if (!has_been_called_) return give_first(timeout_s);
    if (!graph_) return give();
    require(cudaGraphLaunch(graph_.get(), streams_.front().get()), "cudaGraphLaunch",
            gpus_.front());
  };
  repetition.look = [&] { nccl_.look(); };
  repetition.in_flight = kInFlight;
  repetition.patience_s = timeout_s;
  repetition.stuck = [&] {
    return fmt::format("{} of {} has not finished on the GPUs within {:g} s",
                       nccl_call_name(message_.contract.collective), nccl_.library().name(),
                       timeout_s);
  };
  return repeat(repetition, runs);
}

void NcclRun::check(RunReport& report, Checked what) {
  add_damage(*report.executed, memory_.check(what));
}

void NcclRun::run_from_fresh_inputs(RunReport& report, const RunOptions& options) {
  if (options.check) memory_.fill();
  repeat_it(1, options.timeout_s);
  if (options.check) check(report, Checked::everything);
}

RunReport NcclRun::run(const RunOptions& options) {
  RunReport report;
  report.executed.emplace();
  if (!options.check) memory_.fill();  // so that arithmetic has numbers to work on
  run_from_fresh_inputs(report, options);
  capture(options.timeout_s);
  if (graph_) run_from_fresh_inputs(report, options);
  std::vector<double> times_s = repeat_it(options.warmup + options.iterations, options.timeout_s);
  note_times(report, std::span(times_s).subspan(static_cast<std::size_t>(options.warmup)));
  if (options.check) {
    // As after the timed runs of a program: see Session.
    const bool in_place = message_.contract.in_place;
    check(report, in_place ? Checked::guards : Checked::everything);
    if (in_place) run_from_fresh_inputs(report, options);
  }
  const std::string what =
      fmt::format("{} of {}", nccl_call_name(message_.contract.collective), nccl_.library().name());
  report.executed->notes.push_back(
      graph_ ? what + " on the same buffers, in a CUDA graph"
             : fmt::format("{} on the same buffers, in streams, since there can be no graph of it "
                           "({})",
                           what, refusal_));
  return report;
}

}  // namespace espalier::cuda

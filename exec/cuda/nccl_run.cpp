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
      calls_(std::make_shared<Calls>(
          Calls{nccl.shared_from_this(), make_message(), numbers_of_ranks(kind, gpus)})) {
  for (const int gpu : calls_->gpus) {
    use_gpu(gpu);
    calls_->streams.push_back(make_stream(gpu));
    calls_->ended.push_back(make_event(gpu, false));
  }
  use_gpu(calls_->gpus.front());
  calls_->begun = make_event(calls_->gpus.front(), false);
}

const char* NcclRun::call_name() const {
  return nccl_call_name(calls_->message.contract.collective);
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
void NcclRun::Calls::give() const {
  use_gpu(gpus.front());
  const cudaStream_t origin = streams.front().get();
  require(cudaEventRecord(begun.get(), origin), "cudaEventRecord", gpus.front());
  for (std::size_t rank = 1; rank < gpus.size(); ++rank) {
    use_gpu(gpus[rank]);
    require(cudaStreamWaitEvent(streams[rank].get(), begun.get(), 0), "cudaStreamWaitEvent",
            gpus[rank]);
  }
  nccl->call(message, streams);
  for (std::size_t rank = 1; rank < gpus.size(); ++rank) {
    use_gpu(gpus[rank]);
    require(cudaEventRecord(ended[rank].get(), streams[rank].get()), "cudaEventRecord", gpus[rank]);
    use_gpu(gpus.front());
    require(cudaStreamWaitEvent(origin, ended[rank].get(), 0), "cudaStreamWaitEvent", gpus.front());
  }
}

/// The first call makes connections, which takes its time and may hang.
void NcclRun::give_first(double timeout_s) {
  call_within(timeout_s, call_name(), [calls = calls_] { calls->give(); });
  has_been_called_ = true;
}

/// Where NCCL or CUDA refuses, calls are timed in streams.
void NcclRun::capture(double timeout_s) {
  struct Captured {
    GraphExec graph;
    std::string refusal;
  };
  const auto captured = std::make_shared<Captured>();
  call_within(timeout_s, std::string(call_name()) + " in a capture", [calls = calls_, captured] {
    try {
      captured->graph =
          make_graph(calls->streams.front().get(), calls->gpus.front(), [&] { calls->give(); });
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& refused) {
      captured->refusal = refused.diagnostics().front().message;
    }
  });
  graph_ = std::move(captured->graph);
  refusal_ = captured->refusal;
}

std::vector<double> NcclRun::repeat_it(int runs, double timeout_s) {
  Repetition repetition{.stream = timed_stream(), .gpu = calls_->gpus.front()};
  repetition.give = [&] {
    if (!has_been_called_) return give_first(timeout_s);
    if (!graph_) return calls_->give();
    require(cudaGraphLaunch(graph_.get(), timed_stream()), "cudaGraphLaunch", calls_->gpus.front());
  };
  repetition.look = [&] { calls_->nccl->look(); };
  repetition.in_flight = kInFlight;
  repetition.patience_s = timeout_s;
  repetition.stuck = [&] {
    return fmt::format("{} of {} has not finished on the GPUs within {:g} s", call_name(),
                       calls_->nccl->library().name(), timeout_s);
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
    const bool in_place = calls_->message.contract.in_place;
    check(report, in_place ? Checked::guards : Checked::everything);
    if (in_place) run_from_fresh_inputs(report, options);
  }
  const std::string what = fmt::format("{} of {}", call_name(), calls_->nccl->library().name());
  report.executed->notes.push_back(
      graph_ ? what + " on the same buffers, in a CUDA graph"
             : fmt::format("{} on the same buffers, in streams, since there can be no graph of it "
                           "({})",
                           what, refusal_));
  return report;
}

}  // namespace espalier::cuda

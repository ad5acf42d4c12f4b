// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/repeat.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/error.h"

namespace espalier::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks at whether a GPU has finished. Times are taken by the GPU, not by these looks.
constexpr std::chrono::microseconds kPollInterval{20};

struct Run {
  Event begin;
  Event end;
};

void give(const Repetition& repetition, const Run& run) {
  use_gpu(repetition.gpu);
  require(cudaEventRecord(run.begin.get(), repetition.stream), "cudaEventRecord", repetition.gpu);
  repetition.give();
  use_gpu(repetition.gpu);
  require(cudaEventRecord(run.end.get(), repetition.stream), "cudaEventRecord", repetition.gpu);
}

/// Returns the seconds that the run took on the GPU.
double wait_for(const Repetition& repetition, const Run& run) {
  const Clock::time_point start = Clock::now();
  for (cudaError_t status; (status = query(run.end.get())) != cudaSuccess;) {
    if (status != cudaErrorNotReady) {
      require(status, "cudaEventQuery", repetition.gpu,
              "while runs were timed; CUDA does not say at which op");
    }
    if (repetition.look) repetition.look();
    if (std::chrono::duration<double>(Clock::now() - start).count() > repetition.patience_s) {
      abandon_devices();
      throw Error(ErrorKind::runtime, repetition.stuck());
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  float elapsed_ms = 0;
  require(cudaEventElapsedTime(&elapsed_ms, run.begin.get(), run.end.get()), "cudaEventElapsedTime",
          repetition.gpu);
  return elapsed_ms * 1e-3;
}

}  // namespace

std::vector<double> repeat(const Repetition& repetition, int runs) {
  const int in_flight = repetition.in_flight;
  std::vector<Run> slots;
  use_gpu(repetition.gpu);
  for (int i = 0; i < std::min(in_flight, runs); ++i) {
    slots.push_back({make_event(repetition.gpu, true), make_event(repetition.gpu, true)});
  }
  const auto slot = [&](int run) -> const Run& {
    return slots[static_cast<std::size_t>(run % in_flight)];
  };
  std::vector<double> times_s;
  for (int run = 0; run < runs + in_flight; ++run) {
    const int ended = run - in_flight;
    // Its slot is needed again, or nothing is left to be given.
    if (ended >= 0 && ended < runs) times_s.push_back(wait_for(repetition, slot(ended)));
    if (run < runs) give(repetition, slot(run));
  }
  return times_s;
}

}  // namespace espalier::cuda

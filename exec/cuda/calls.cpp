// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/calls.h"

#include <fmt/format.h>

#include <atomic>

namespace espalier::cuda {
namespace {

std::atomic<bool> abandoned{false};

}  // namespace

std::string failure_text(cudaError_t status, const char* call, int gpu) {
  return fmt::format("{} on GPU {}: {} ({})", call, gpu, cudaGetErrorString(status),
                     cudaGetErrorName(status));
}

void require(cudaError_t status, const char* call, int gpu, const std::string& doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that nobody else is blamed for it
  const std::string text = failure_text(status, call, gpu) + (doing.empty() ? "" : ", " + doing);
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(text, "a smaller --size");
  throw CallFailed(status, text);
}

cudaError_t query(cudaEvent_t event) {
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) cudaGetLastError();
  return status;
}

void use_gpu(int gpu) { require(cudaSetDevice(gpu), "cudaSetDevice", gpu); }

void abandon_devices() { abandoned = true; }

bool devices_abandoned() { return abandoned; }

Stream make_stream(int gpu) {
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", gpu);
  return Stream(stream);
}

Event make_event(int gpu, bool timed) {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreate", gpu);
  return Event(event);
}

}  // namespace espalier::cuda

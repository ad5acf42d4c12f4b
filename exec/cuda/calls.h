// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace espalier::cuda {

/// "cudaMalloc on GPU 1: out of memory (cudaErrorMemoryAllocation)".
std::string failure_text(cudaError_t status, const char* call, int gpu);

/// Error{runtime}, with what CUDA answered.
class CallFailed : public Error {
 public:
  CallFailed(cudaError_t status, const std::string& text)
      : Error(ErrorKind::runtime, text), status_(status) {}
  cudaError_t status() const { return status_; }

 private:
  cudaError_t status_;
};

/// Throws CallFailed with failure_text, and `doing` after it, unless `status` is success; but
/// OutOfMemory, whatever the call, when CUDA had no memory for it. \p gpu as CUDA numbers it.
void require(cudaError_t status, const char* call, int gpu, const std::string& doing = {});

/// As cudaEventQuery. That an event has not happened yet is not an error, but CUDA would report it
/// as the latest error to the next call that asks, for instance a launch; so it is cleared here.
cudaError_t query(cudaEvent_t event);

/// Makes a GPU the current one of this thread.
void use_gpu(int gpu);

/// After a run that does not end, freeing anything would wait for that run forever.
/// From here on nothing is freed; the operating system does that when the process ends.
void abandon_devices();
bool devices_abandoned();

/// Frees what CUDA made, unless devices were abandoned.
template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* resource) const {
    if (!devices_abandoned()) static_cast<void>(destroy(resource));
  }
};
template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<destroy>>;

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

/// Of the current GPU.
Stream make_stream(int gpu);
/// Of the current GPU; `timed` ones take a little longer to record.
Event make_event(int gpu, bool timed);

}  // namespace espalier::cuda

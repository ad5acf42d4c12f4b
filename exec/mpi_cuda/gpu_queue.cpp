// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi_cuda/gpu_queue.h"

#include <utility>

namespace espalier::cuda {
namespace {

Stream stream_of(int gpu) {
  use_gpu(gpu);
  return make_stream(gpu);
}

}  // namespace

GpuQueue::GpuQueue(int gpu) : gpu_(gpu), stream_(stream_of(gpu)) {}

void GpuQueue::copy(void* to, const void* from, std::size_t bytes, Then then) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync",
          gpu_, "for a message");
  call(std::move(then));
}

void GpuQueue::call(Then then) {
  if (free_.empty()) {
    use_gpu(gpu_);
    free_.push_back(make_event(gpu_, false));
  }
  awaited_.push_back({std::move(free_.back()), std::move(then)});
  free_.pop_back();
  require(cudaEventRecord(awaited_.back().event.get(), stream_.get()), "cudaEventRecord", gpu_);
}

void GpuQueue::advance() {
  while (!awaited_.empty()) {
    const cudaError_t status = query(awaited_.front().event.get());
    if (status == cudaErrorNotReady) return;
    require(status, "cudaEventQuery", gpu_, "during a run of several processes");
    // What it calls may give the stream more to do.
    Awaited done = std::move(awaited_.front());
    awaited_.pop_front();
    free_.push_back(std::move(done.event));
    done.then();
  }
}

}  // namespace espalier::cuda

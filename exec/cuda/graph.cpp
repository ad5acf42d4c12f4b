// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/graph.h"

#include <algorithm>
#include <array>

namespace espalier::cuda {

GraphExec make_graph(cudaStream_t stream, int gpu, const std::function<void()>& give) {
  use_gpu(gpu);
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture", gpu);
  cudaGraph_t captured = nullptr;
  try {
    give();
  } catch (...) {
    // The capture has failed, and the first failure is the one to report.
    if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) Graph{captured};
    cudaGetLastError();
    throw;
  }
  require(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture", gpu);
  const Graph graph(captured);
  use_gpu(gpu);
  cudaGraphExec_t made = nullptr;
  require(cudaGraphInstantiateWithFlags(&made, captured, 0), "cudaGraphInstantiate", gpu);
  GraphExec ready(made);
  require(cudaGraphUpload(made, stream), "cudaGraphUpload", gpu);
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize", gpu,
          "after a graph was uploaded");
  return ready;
}

bool refuses_graph(cudaError_t status) {
  static constexpr std::array kRefusals{
      cudaErrorInvalidValue, cudaErrorNotSupported, cudaErrorPeerAccessUnsupported,
      cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated};
  return std::ranges::find(kRefusals, status) != kRefusals.end();
}

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "exec/cuda/calls.h"

namespace espalier::cuda {

/// The graph of what `give` gives to a stream of that GPU and to those that are joined to it, ready
/// to be launched. Throws CallFailed, and what `give` throws.
GraphExec make_graph(cudaStream_t stream, int gpu, const std::function<void()>& give);

/// Whether CUDA answers so where streams can do what a graph can't, such as copies between GPUs
/// that can't map each other's memory: drivers differ in what they refuse, and when.
bool refuses_graph(cudaError_t status);

}  // namespace espalier::cuda

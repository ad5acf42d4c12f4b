// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exec/cuda/calls.h"

namespace espalier::cuda {

/// Something that GPUs do again and again, timed by the GPU of `stream`: from before its first
/// command until after its last one.
struct Repetition {
  cudaStream_t stream = nullptr;
  int gpu = 0;  ///< of the stream, as CUDA numbers it
  /// Gives one run to the streams. It begins after what `stream` was given before, and `stream`
  /// goes on when it is done.
  std::function<void()> give = {};
  /// Called again and again while a run is waited for; may throw. May be nothing.
  std::function<void()> look = {};
  int in_flight = 1;      ///< runs that are given before the first of them is waited for
  double patience_s = 0;  ///< without an end, after which a run is stuck
  /// "the program, captured as a graph, has not finished within 1.2 s ..."
  std::function<std::string()> stuck = {};
};

/// The seconds of so many runs. Throws Error{runtime} with `stuck` when one does not end, after
/// which the devices are abandoned, and when a GPU reports a failure.
std::vector<double> repeat(const Repetition& repetition, int runs);

}  // namespace espalier::cuda

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "exec/cuda/calls.h"

namespace espalier::cuda {

/// What is to be done when something under way is over.
using Then = std::function<void()>;

/// A stream of a GPU whose commands, done one after the other, are looked after from the host.
class GpuQueue {
 public:
  explicit GpuQueue(int gpu);

  int gpu() const { return gpu_; }
  cudaStream_t stream() const { return stream_.get(); }
  /// Nothing is looked after.
  bool is_idle() const { return awaited_.empty(); }
  /// Copies between any memories that the GPU reaches.
  void copy(void* to, const void* from, std::size_t bytes, Then then);
  /// `advance` calls it when all that the stream has been given by now is done.
  void call(Then then);
  /// Looks what is done. Throws Error{runtime} when the GPU reports a failure.
  void advance();

 private:
  struct Awaited {
    Event event;
    Then then;
  };
  const int gpu_;
  Stream stream_;
  std::deque<Awaited> awaited_;  ///< in the order of the stream
  std::vector<Event> free_;
};

}  // namespace espalier::cuda

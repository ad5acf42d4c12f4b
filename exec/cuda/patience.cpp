// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/patience.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <utility>

#include "core/error.h"
#include "exec/cuda/calls.h"

namespace espalier::cuda {

void call_within(double patience_s, const std::string& name, std::function<void()> call) {
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  // What the call owns is gone when it is said to be over.
  std::thread([call = std::move(call), promise = std::move(promise)]() mutable {
    std::exception_ptr problem;
    try {
      call();
    } catch (...) {
      problem = std::current_exception();
    }
    call = nullptr;
    problem ? promise.set_exception(problem) : promise.set_value();
  }).detach();
  if (done.wait_for(std::chrono::duration<double>(patience_s)) == std::future_status::timeout) {
    abandon_devices();
    throw Error(ErrorKind::runtime,
                fmt::format("{} has not returned within {:g} s", name, patience_s),
                "if it is only slow, raise --timeout");
  }
  done.get();
}

}  // namespace espalier::cuda

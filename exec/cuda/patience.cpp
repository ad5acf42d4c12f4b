// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/patience.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "core/error.h"
#include "exec/cuda/calls.h"

namespace espalier::cuda {

void call_within(double patience_s, const std::string& name, std::function<void()> call) {
  std::packaged_task<void()> task(std::move(call));
  std::future<void> done = task.get_future();
  std::thread(std::move(task)).detach();
  if (done.wait_for(std::chrono::duration<double>(patience_s)) == std::future_status::timeout) {
    abandon_devices();
    throw Error(ErrorKind::runtime,
                fmt::format("{} has not returned within {:g} s", name, patience_s),
                "if it is only slow, raise --timeout");
  }
  done.get();
}

}  // namespace espalier::cuda

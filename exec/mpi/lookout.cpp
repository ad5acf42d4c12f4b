// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/lookout.h"

#include <pthread.h>

#include <utility>

#include "exec/mpi/signals.h"

namespace espalier {

Lookout::Lookout(const char* name, std::function<std::optional<int>()> look,
                 std::function<void(int exit_code)> end)
    : look_(std::move(look)), end_(std::move(end)), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

Lookout::~Lookout() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lookout::run() {
  const HeedsRequests heeds;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [&] { return ending_; })) {
    if (const std::optional<int> exit_code = look_()) {
      end_(*exit_code);
      return;
    }
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/lookout.h"

#include <pthread.h>

#include <utility>

#include "exec/mpi/signals.h"

namespace espalier {

Lookout::Lookout(const char* thread_name, std::function<bool()> look)
    : look_(std::move(look)), thread_([this, thread_name] { run(thread_name); }) {}

Lookout::~Lookout() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lookout::run(const char* thread_name) {
  pthread_setname_np(pthread_self(), thread_name);
  const HeedsRequests heeds;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [&] { return ending_; })) {
    if (!look_()) return;
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <thread>

namespace espalier {

/// What a process holds as long as it lives, in memory that the processes of its host share. The
/// system lets go of it while it takes a killed process apart, before it closes what the process
/// had open: so others know before the launcher, which may kill them for it at once, as that of
/// MPICH does.
///
/// A robust mutex (pthread_mutexattr_setrobust), whose owner's end wakes one that waits for it.
class LifeMark {
 public:
  /// Not held. The memory is shared; others may use it when this has returned.
  LifeMark();

  /// By the thread that lives as long as its process, once.
  void hold();
  /// By the same thread, where the process ends as it should and the memory goes away before.
  void release();
  /// Waits until whoever holds it has ended, or `is_over` says so; then false. That is asked every
  /// so often.
  bool wait_for_end(const std::function<bool()>& is_over);

 private:
  pthread_mutex_t mutex_;
};

/// Waits on a thread of its own for another process to end, and says so, once.
class LifeWatch {
 public:
  /// `on_end` is called from that thread.
  LifeWatch(LifeMark& other, std::function<void()> on_end);
  ~LifeWatch();
  LifeWatch(const LifeWatch&) = delete;
  LifeWatch& operator=(const LifeWatch&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace espalier

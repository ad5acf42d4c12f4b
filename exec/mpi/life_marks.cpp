// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/life_marks.h"

#include <cerrno>
#include <ctime>
#include <utility>

#include "core/check.h"

namespace espalier {
namespace {

/// Between looks at whether nobody wants to know any more.
constexpr long kPeriod_ns = 50'000'000;
constexpr long kSecond_ns = 1'000'000'000;

timespec soon() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);  // what pthread_mutex_timedlock goes by
  time.tv_nsec += kPeriod_ns;
  time.tv_sec += time.tv_nsec / kSecond_ns;
  time.tv_nsec %= kSecond_ns;
  return time;
}

}  // namespace

LifeMark::LifeMark() {
  pthread_mutexattr_t attributes;
  CHECK(pthread_mutexattr_init(&attributes) == 0);
  CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
  CHECK(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
  CHECK(pthread_mutex_init(&mutex_, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
}

void LifeMark::hold() { CHECK(pthread_mutex_lock(&mutex_) == 0); }

void LifeMark::release() { CHECK(pthread_mutex_unlock(&mutex_) == 0); }

bool LifeMark::wait_for_end(const std::function<bool()>& is_over) {
  while (!is_over()) {
    const timespec until = soon();
    const int status = pthread_mutex_timedlock(&mutex_, &until);
    if (status == ETIMEDOUT) continue;
    if (status == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    if (status == 0 || status == EOWNERDEAD) pthread_mutex_unlock(&mutex_);
    return status == EOWNERDEAD;
  }
  return false;
}

LifeWatch::LifeWatch(LifeMark& other, std::function<void()> on_end)
    : thread_([this, &other, on_end = std::move(on_end)] {
        if (other.wait_for_end([this] { return is_over_.load(); })) on_end();
      }) {}

LifeWatch::~LifeWatch() {
  is_over_.store(true);
  thread_.join();
}

}  // namespace espalier

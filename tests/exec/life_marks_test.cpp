// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/life_marks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

namespace espalier {
namespace {

using Clock = std::chrono::steady_clock;

/// A mark in memory that is shared with a child, which holds it.
class HeldByAChild {
 public:
  struct Shared {
    LifeMark mark;
    std::atomic<bool> is_held = false;
    std::atomic<bool> may_release = false;
  };

  HeldByAChild()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {
    child_ = fork();
    if (child_ == 0) {
      shared_->mark.hold();
      shared_->is_held.store(true);
      while (!shared_->may_release.load()) usleep(1000);
      shared_->mark.release();
      _exit(0);
    }
    while (!shared_->is_held.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~HeldByAChild() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }
  HeldByAChild(const HeldByAChild&) = delete;
  HeldByAChild& operator=(const HeldByAChild&) = delete;

  LifeMark& mark() { return shared_->mark; }
  pid_t child() const { return child_; }
  void let_release() { shared_->may_release.store(true); }

 private:
  Shared* const shared_;
  pid_t child_ = 0;
};

TEST(LifeMarks, TheEndOfAKilledProcessIsSeenBeforeItIsCollected) {
  HeldByAChild held;
  std::atomic<bool> has_ended = false;
  LifeWatch watch(held.mark(), [&] { has_ended.store(true); });
  std::this_thread::sleep_for(std::chrono::milliseconds(120));  // more than a look apart
  EXPECT_FALSE(has_ended);
  kill(held.child(), SIGKILL);
  const Clock::time_point begin = Clock::now();
  while (!has_ended && Clock::now() - begin < std::chrono::seconds(10)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(has_ended);
}

TEST(LifeMarks, WhoLetsGoHasNotEnded) {
  HeldByAChild held;
  held.let_release();
  EXPECT_FALSE(held.mark().wait_for_end([] { return false; }));
}

TEST(LifeMarks, NobodyWaitsForLongerThanWanted) {
  HeldByAChild held;
  EXPECT_FALSE(held.mark().wait_for_end([] { return true; }));
  std::atomic<bool> has_ended = false;
  {
    const LifeWatch watch(held.mark(), [&] { has_ended.store(true); });
  }
  EXPECT_FALSE(has_ended);
}

}  // namespace
}  // namespace espalier

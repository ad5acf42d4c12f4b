// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

namespace espalier {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

TEST(SignalsDeathTest, AnAbortWaitsForWhoHeedsRequests) {
  EXPECT_EXIT(
      {
        note_aborts();
        std::thread([] {
          const HeedsRequests heeds;
          std::thread(std::abort).detach();
          while (asked_to_end() == 0) usleep(1000);
          _exit(asked_to_end() == SIGABRT ? 7 : 8);
        }).join();
      },
      ExitedWithCode(7), "");
}

TEST(SignalsDeathTest, WhoHeedsRequestsAbortsAsUsual) {
  EXPECT_EXIT(
      {
        note_aborts();
        std::thread([] {
          const HeedsRequests heeds;
          std::abort();
        }).join();
      },
      KilledBySignal(SIGABRT), "");
}

TEST(SignalsDeathTest, AClosedPipeThatNobodyHeedsEndsAsTheProcessWishes) {
  EXPECT_EXIT(
      {
        note_requests_to_end([](int exit_code) { _exit(exit_code == 128 + SIGPIPE ? 7 : 8); });
        std::raise(SIGPIPE);
      },
      ExitedWithCode(7), "");
}

TEST(SignalsDeathTest, AClosedPipeOfWhoHeedsEndsAsTheProcessWishes) {
  EXPECT_EXIT(
      {
        note_requests_to_end([](int) { _exit(7); });
        std::thread([] {
          const HeedsRequests heeds;
          std::raise(SIGPIPE);
        }).join();
      },
      ExitedWithCode(7), "");
}

TEST(SignalsDeathTest, AnAbortThatNobodyHeedsIsOne) {
  EXPECT_EXIT(
      {
        note_aborts();
        std::abort();
      },
      KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace espalier

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

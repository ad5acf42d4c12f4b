// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Two processes, of which this one is the first; nobody can see whether they live.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() {
    board_.head = &head_;
    for (RankState& state : states_) {
      state.phase = Phase::running;
      board_.states.push_back(&state);
    }
  }

  /// The exit code with which the watchdog ends the process; `told_` is what it says before.
  int watch(double timeout_s = 0.1, const Program* program = nullptr,
            std::optional<pid_t> launcher = {}) {
    std::promise<int> ended;
    const Watchdog::Actions actions{[&](const std::string& text) { told_ += text; },
                                    [&](int exit_code) { ended.set_value(exit_code); }};
    Watchdog watchdog(board_, actions, {timeout_s, &signal_, launcher});
    if (program != nullptr) watchdog.expect(program, timeout_s);
    return ended.get_future().get();
  }

  BoardHead head_;
  std::vector<RankState> states_{2};
  Board board_;
  std::atomic<int> signal_{0};
  std::string told_;
};

TEST_F(WatchdogTest, EndsARunThatDoesNotGetFurther) {
  states_[0].op = 3;
  states_[0].position = 2;
  states_[0].awaited = 1;
  states_[1].op = 1;
  states_[1].position = 1;
  EXPECT_EQ(watch(), 3);
  EXPECT_THAT(told_, HasSubstr("no process has got further for 0.1 s"));
  EXPECT_THAT(told_, HasSubstr("rank 1 does not get further, last at op 1"));
  EXPECT_THAT(told_, HasSubstr("rank 0 waits for rank 1 in op 3"));
  EXPECT_EQ(states_[0].phase, Phase::failing);
}

TEST_F(WatchdogTest, SaysNothingWhereAnotherProcessHas) {
  head_.told = 2;
  EXPECT_EQ(watch(), 3);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(WatchdogTest, DoesNotWaitForWhoHasFailed) {
  states_[1].phase = Phase::failing;
  EXPECT_EQ(watch(60), 3);
  EXPECT_THAT(told_, IsEmpty());  // that one has told its error
}

TEST_F(WatchdogTest, EndsAsAskedWhereAllAre) {
  signal_ = SIGTERM;
  states_[1].signal = SIGTERM;
  EXPECT_EQ(watch(60), 128 + SIGTERM);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(WatchdogTest, WhoAloneIsAskedToEndSaysSo) {
  signal_ = SIGTERM;
  states_[0].op = 3;
  EXPECT_EQ(watch(60), 128 + SIGTERM);
  EXPECT_EQ(told_, "error: rank 0 was asked to end (SIGTERM), last at op 3\n");
  EXPECT_EQ(states_[0].signal, SIGTERM);
}

TEST_F(WatchdogTest, AClosedPipeIsNoError) {
  signal_ = SIGPIPE;
  EXPECT_EQ(watch(60), 128 + SIGPIPE);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(WatchdogTest, WhoIsAskedToEndAfterAnErrorSaysNothing) {
  signal_ = SIGTERM;
  states_[1].phase = Phase::failing;
  EXPECT_EQ(watch(60), 3);
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(WatchdogTest, SeesWhoIsGoneWhileOthersWork) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  states_[0].pid = getpid();
  states_[1].pid = child;
  states_[0].phase = states_[1].phase = Phase::working;
  EXPECT_EQ(watch(3600), 3);
  EXPECT_THAT(told_, HasSubstr("rank 1 (process " + std::to_string(child) +
                               ") has ended unexpectedly, before its first run"));
  waitpid(child, nullptr, 0);
}

TEST_F(WatchdogTest, AMainThreadWithoutASignIsNotVouchedForForEver) {
  const Program program = ring_program(2, false);
  states_[0].phase = Phase::working;
  states_[0].runs = 2;
  EXPECT_EQ(watch(0.05, &program), 3);
  EXPECT_THAT(told_, HasSubstr("rank 0 is busy with something of its own, after 2 runs"));
}

TEST_F(WatchdogTest, BlamesNobodyWhereTheLauncherHasEnded) {
  EXPECT_EQ(watch(3600, nullptr, getppid() + 1), 3);
  EXPECT_EQ(told_, "error: what started the processes has ended\n");
}

}  // namespace
}  // namespace espalier

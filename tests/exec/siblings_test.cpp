// SPDX-License-Identifier: Apache-2.0
// Real processes, with the environment that a launcher gives those that it starts.
#include "exec/mpi/siblings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "exec/mpi/start_watch.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Variables = std::map<std::string, std::string>;

Variables variables_of(int rank) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", "3"},
          {"LOCAL_WORLD_SIZE", "3"},
          {"MASTER_ADDR", "localhost"},
          {"MASTER_PORT", "29500"}};
}

class SiblingsTest : public testing::Test {
 protected:
  ~SiblingsTest() override {
    for (const pid_t pid : started_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  /// A process that sleeps, and whose environment can be read. No shell that becomes `sleep`: while
  /// a process changes its program, it shows no environment.
  pid_t start(const Variables& variables) { return start(variables, {"/bin/sleep", "600"}); }
  /// One that runs a script.
  pid_t start(const Variables& variables, const char* script) {
    return start(variables, {"/bin/sh", "-c", script});
  }
  pid_t start(const Variables& variables, std::vector<std::string> command) {
    std::vector<std::string> texts;
    for (const auto& [name, value] : variables) texts.push_back(fmt::format("{}={}", name, value));
    const auto pointers_to = [](std::vector<std::string>& strings) {
      std::vector<char*> pointers;
      for (std::string& text : strings) pointers.push_back(text.data());
      pointers.push_back(nullptr);
      return pointers;
    };
    const std::vector<char*> environment = pointers_to(texts);
    const std::vector<char*> words = pointers_to(command);
    pid_t pid = 0;
    if (posix_spawn(&pid, words[0], nullptr, nullptr, words.data(), environment.data()) != 0) {
      ADD_FAILURE() << words[0] << " cannot be started";
      return -1;
    }
    started_.push_back(pid);
    const std::string shown = "/proc/" + std::to_string(pid) + "/environ";
    while (std::ifstream(shown).peek() == EOF) usleep(1000);
    return pid;
  }

  void stop(pid_t pid) {
    kill(pid, SIGSTOP);
    waitpid(pid, nullptr, WUNTRACED);
  }

  /// Those of rank 0, which this process plays.
  Siblings siblings() {
    return Siblings(getpid(), [](const char* name) -> const char* {
      static const Variables mine = variables_of(0);
      const auto found = mine.find(name);
      return found != mine.end() ? found->second.c_str() : nullptr;
    });
  }

  /// What a watch over them says before it ends the process; the exit code is 3.
  std::string watch(double timeout_s, int signal = 0) {
    std::string told;
    std::promise<int> ended;
    const std::atomic<int> asked{signal};
    const StartWatch watch(0, siblings(), timeout_s,
                           {[&](const std::string& text) { told += text; },
                            [&](int exit_code) { ended.set_value(exit_code); }},
                           asked);
    EXPECT_EQ(ended.get_future().get(), signal == 0 ? 3 : 128 + signal);
    return told;
  }

  std::vector<pid_t> started_;
};

TEST_F(SiblingsTest, AreThoseThatTheSameLauncherHasStartedForTheSameRun) {
  const pid_t other = start(variables_of(1));
  Variables elsewhere = variables_of(2);
  elsewhere["MASTER_PORT"] = "29501";
  start(elsewhere);
  const auto ranks = siblings().look();
  ASSERT_THAT(ranks, SizeIs(3));
  EXPECT_EQ(ranks[0].life, Life::silent);
  EXPECT_EQ(ranks[1].pid, other);
  EXPECT_EQ(ranks[1].life, Life::alive);
  EXPECT_EQ(ranks[2].life, Life::silent);
}

TEST_F(SiblingsTest, WhoHasEndedIsNotForgotten) {
  const pid_t one = start(variables_of(1));
  Siblings siblings = this->siblings();
  EXPECT_EQ(siblings.look()[1].life, Life::alive);
  stop(one);
  EXPECT_EQ(siblings.look()[1].life, Life::stopped);
  kill(one, SIGKILL);
  waitpid(one, nullptr, 0);
  started_.clear();
  EXPECT_EQ(siblings.look()[1].life, Life::gone);
  EXPECT_EQ(siblings.look()[1].pid, one);
}

TEST_F(SiblingsTest, WhoIsStoppedAtTheStartIsNamed) {
  start(variables_of(0));
  const pid_t one = start(variables_of(1));
  start(variables_of(2));
  stop(one);
  const std::string text = watch(0.2);
  EXPECT_EQ(text,
            "error: the program cannot start without one of its processes\n"
            "  rank 1 (process " +
                std::to_string(one) + ") is stopped, before its first run\n");
}

TEST_F(SiblingsTest, WhoHasNotComeIsNamed) {
  start(variables_of(0));
  start(variables_of(1));
  EXPECT_THAT(watch(0.2), HasSubstr("\n  nothing is heard of rank 2\n"));
}

TEST_F(SiblingsTest, WhoHasToldWhyAllEndIsNotTheReason) {
  start(variables_of(0));
  // Rank 2 was seen by rank 1 only, which tells so, and then ends; as note_told does.
  start(variables_of(1), "printf 'has told why' > /proc/$$/comm; sleep 1");
  EXPECT_THAT(watch(3600), IsEmpty());
}

TEST_F(SiblingsTest, WhoEndsWithoutAWordIsTheReason) {
  start(variables_of(0));
  start(variables_of(1), "sleep 1");
  EXPECT_THAT(watch(3600), HasSubstr("has ended unexpectedly"));
}

TEST_F(SiblingsTest, ARequestToAllNeedsNoWords) {
  for (int rank = 0; rank < 3; ++rank) start(variables_of(rank));
  EXPECT_THAT(watch(3600, SIGTERM), IsEmpty());
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// Processes that are all killed by whoever has started them, as MPICH's launcher does, and what
// their witness then says.
#include "exec/mpi/witness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace espalier {
namespace {

class Processes {
 public:
  Processes() {
    EXPECT_EQ(pipe(errors_), 0);
    EXPECT_EQ(pipe(ready_), 0);
  }

  /// Starts one that comes to the witness, does what it is to do, and waits for its end.
  void start(int rank, int expected, const std::function<void(Witness&)>& act = {}) {
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(errors_[1], STDERR_FILENO);
      close(errors_[0]);
      close(errors_[1]);
      if (files_) setrlimit(RLIMIT_NOFILE, &*files_);
      Witness witness(rank, expected);
      if (act) act(witness);
      if (write(ready_[1], "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    pids_.push_back(pid);
    char word = 0;
    EXPECT_EQ(read(ready_[0], &word, 1), 1);
  }

  /// From now on, processes, and the witness that they start, may have so many files open.
  void limit_files(rlim_t soft, rlim_t hard) { files_ = rlimit{soft, hard}; }

  /// As the system does with one that goes: nobody else can say anything from then on.
  void kill(std::size_t process) const {
    ::kill(pids_[process], SIGKILL);
    waitpid(pids_[process], nullptr, 0);
  }

  pid_t pid(std::size_t process) const { return pids_[process]; }

  /// Kills all that are left, and reads what is said until the witness has ended, too.
  std::string last_words() {
    for (std::size_t process = 0; process < pids_.size(); ++process) kill(process);
    close(errors_[1]);
    std::string text;
    char letter = 0;
    while (read(errors_[0], &letter, 1) == 1) text += letter;
    close(errors_[0]);
    close(ready_[0]);
    close(ready_[1]);
    return text;
  }

 private:
  std::optional<rlimit> files_;
  int errors_[2];
  int ready_[2];
  std::vector<pid_t> pids_;
};

TEST(Witness, NamesTheFirstThatIsGone) {
  for (std::size_t victim = 0; victim < 4; ++victim) {
    Processes processes;
    for (int rank = 0; rank < 4; ++rank) processes.start(rank, 5);
    processes.kill(victim);
    const pid_t pid = processes.pid(victim);
    // Who is welcomed after that has seen to it that the witness knows. Of what it finds out at the
    // same time it can't tell what was first.
    processes.start(4, 5);
    EXPECT_EQ(processes.last_words(),
              fmt::format("error: the program cannot go on without one of its processes\n"
                          "  rank {} (process {}) has ended unexpectedly, and the launcher has "
                          "ended the others\n",
                          victim, pid));
  }
}

TEST(Witness, WatchesMoreProcessesThanFilesMayBeOpenByDefault) {
  Processes processes;
  processes.limit_files(16, 256);
  for (int rank = 0; rank < 32; ++rank) processes.start(rank, 32);
  processes.kill(30);
  const pid_t pid = processes.pid(30);
  EXPECT_EQ(processes.last_words(),
            fmt::format("error: the program cannot go on without one of its processes\n"
                        "  rank 30 (process {}) has ended unexpectedly, and the launcher has ended "
                        "the others\n",
                        pid));
}

TEST(Witness, SaysOfHowManyItCannotKnow) {
  Processes processes;
  processes.limit_files(16, 16);
  for (int rank = 0; rank < 32; ++rank) processes.start(rank, 32);
  processes.kill(2);
  const pid_t pid = processes.pid(2);
  // Of 16, four are for its own needs: errors, who comes, who is ready, and telling the others.
  EXPECT_EQ(
      processes.last_words(),
      fmt::format("error: the program cannot go on without one of its processes\n"
                  "  rank 2 (process {}) has ended unexpectedly, or the launcher has ended it "
                  "because of another one\n"
                  "  20 of the processes could not be watched, as no more than 16 files may "
                  "be open at a time: raise 'ulimit -Hn'\n",
                  pid));
}

TEST(Witness, IsSilentWhereAProcessHasToldWhatIsWrong) {
  Processes processes;
  processes.start(0, 2, [](Witness& witness) { witness.note_told(); });
  processes.start(1, 2);
  processes.kill(1);
  EXPECT_EQ(processes.last_words(), "");
}

TEST(Witness, IsSilentWhereOneHasLeftOnItsOwnBeforeOthersWereEnded) {
  Processes processes;
  processes.start(0, 2, [](Witness& witness) { witness.note_end(); });
  processes.start(1, 2);
  processes.kill(0);
  processes.kill(1);
  EXPECT_EQ(processes.last_words(), "");
}

TEST(Witness, NamesThoseThatHaveNotComeAsWell) {
  Processes processes;
  processes.start(0, 3);
  processes.start(2, 3);
  processes.kill(1);
  const pid_t pid = processes.pid(1);
  EXPECT_EQ(processes.last_words(),
            fmt::format("error: the program cannot go on without one of its processes\n"
                        "  nothing is heard of rank 1\n"
                        "  rank 2 (process {}) has ended unexpectedly, or the launcher has ended "
                        "it because of another one\n",
                        pid));
}

TEST(Witness, BlamesNobodyForSureWhereOthersAreElsewhere) {
  Processes processes;
  for (int rank = 4; rank < 6; ++rank) processes.start(rank, 0);
  processes.kill(1);
  const pid_t pid = processes.pid(1);
  EXPECT_EQ(processes.last_words(),
            fmt::format("error: the program cannot go on without one of its processes\n"
                        "  rank 5 (process {}) has ended unexpectedly, or the launcher has ended "
                        "it because of another one\n",
                        pid));
}

}  // namespace
}  // namespace espalier

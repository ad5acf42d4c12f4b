// SPDX-License-Identifier: Apache-2.0
#include "exec/mpi/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::Not;

RankView running(int rank, OpId op, std::uint32_t position, int awaited) {
  RankView view;
  view.rank = rank;
  view.pid = 100 + rank;
  view.host = "node7";
  view.life = Life::alive;
  view.phase = Phase::running;
  view.runs = 3;
  view.position = position;
  view.op = op;
  view.awaited = awaited;
  return view;
}

TEST(Board, ARunBeginsWithTheFirstProcess) {
  BoardHead head;
  Board one;
  one.head = &head;
  Board other = one;
  other.process = 1;
  EXPECT_EQ(begin_of_run(one, 0, 100), 100);
  EXPECT_EQ(begin_of_run(other, 0, 150), 100);
  // The other way round in the next run; who has looked at its clock first but told later is first.
  EXPECT_EQ(begin_of_run(other, 1, 300), 300);
  EXPECT_EQ(begin_of_run(one, 1, 290), 290);
  EXPECT_EQ(begin_of_run(one, 2, 400), 400);
  EXPECT_EQ(begin_of_run(other, 2, 410), 400);
}

TEST(Board, WhoIsAtTheEarliestOpIsLast) {
  const std::vector<RankView> ranks{running(0, 9, 7, 3), running(1, 8, 8, 0), running(2, 8, 8, 3),
                                    running(3, 4, 2, 2)};
  EXPECT_EQ(last_rank(ranks)->rank, 3);
}

TEST(Board, WhoIsStoppedOrGoneIsLastWhereverItIs) {
  std::vector<RankView> ranks{running(0, 9, 7, 1), running(1, 9, 7, 2), running(2, 11, 9, 0)};
  ranks[2].life = Life::stopped;
  EXPECT_EQ(last_rank(ranks)->rank, 2);
  ranks[1].life = Life::gone;
  EXPECT_EQ(last_rank(ranks)->rank, 1);
  // Who has come to its end is not missed.
  ranks[1].phase = Phase::leaving;
  EXPECT_EQ(last_rank(ranks)->rank, 2);
}

TEST(Board, WhoIsBusyWithItsOwnIsLastBeforeThoseInRuns) {
  std::vector<RankView> ranks{running(0, 9, 1, 1), running(1, 9, 7, 2)};
  ranks[1].phase = Phase::working;
  EXPECT_EQ(last_rank(ranks)->rank, 1);
}

TEST(Board, NobodyIsLastWhereAllHaveEnded) {
  std::vector<RankView> ranks{running(0, 9, 1, 1)};
  ranks[0].phase = Phase::leaving;
  EXPECT_EQ(last_rank(ranks), std::nullopt);
  EXPECT_EQ(describe_stuck("it is over", ranks, nullptr), "error: it is over\n");
}

TEST(Board, AReportNamesWhoWasLastAtWhichOpAndWhoWaits) {
  const Program program = ring_program(3, false);
  std::vector<RankView> ranks{running(0, 5, 5, 2), running(1, 5, 5, 0), running(2, 4, 4, 1)};
  ranks[1].phase = Phase::meeting;
  ranks[2].life = Life::stopped;
  const std::string text = describe_stuck("no process has got further for 5 s", ranks, &program);
  EXPECT_EQ(text,
            "error: no process has got further for 5 s\n"
            "  rank 2 (process 102 on node7) is stopped, last at op 4 'r2.tmp[1] <- r1.tmp[1] + "
            "r2.tmp[1] after 1'\n"
            "  rank 0 waits for rank 2 in op 5 'r0.tmp[2] <- r2.tmp[2] + r0.tmp[2] after 2'\n"
            "  rank 1 waits for all others between runs\n");
}

TEST(Board, AllWhoAreGoneAreNamed) {
  std::vector<RankView> ranks{running(0, 5, 5, 2), running(1, 5, 5, 0), running(2, 5, 5, 1)};
  for (RankView& rank : ranks) rank.phase = Phase::working;
  ranks[1].life = ranks[2].life = Life::gone;
  EXPECT_EQ(describe_stuck("one is missing", ranks, nullptr),
            "error: one is missing\n"
            "  rank 1 (process 101 on node7) has ended unexpectedly, after 3 runs\n"
            "  rank 2 (process 102 on node7) has ended unexpectedly, too, after 3 runs\n");
}

TEST(Board, NobodyIsBlamedOnAHostThatIsSilent) {
  std::vector<RankView> ranks{running(0, 5, 5, 2), running(1, 5, 5, 0), running(2, 4, 4, 1)};
  for (const std::size_t rank : {0u, 1u}) {
    ranks[rank].life = Life::silent;
    ranks[rank].host = "node6";
  }
  EXPECT_EQ(describe_stuck("stuck", ranks, nullptr),
            "error: stuck\n"
            "  nothing is heard of node6, with ranks 0, 1\n"
            "  rank 2 waits for rank 1 in op 4\n");
}

TEST(Board, AReportOfManyRanksIsShort) {
  std::vector<RankView> ranks;
  for (int rank = 0; rank < 40; ++rank) ranks.push_back(running(rank, 5, 5, 39));
  ranks.back().position = 1;
  const std::string text = describe_stuck("stuck", ranks, nullptr);
  EXPECT_THAT(text, HasSubstr("rank 7 waits for rank 39 in op 5\n  ... and 31 more ranks wait\n"));
  EXPECT_THAT(text, HasSubstr("help: if it is only slow, raise --timeout"));
  EXPECT_THAT(text, Not(HasSubstr("rank 8 waits")));
}

TEST(Board, SeesWhetherAProcessLivesIsStoppedOrGone) {
  EXPECT_EQ(life_of(getpid()), Life::alive);
  EXPECT_EQ(life_of(0), Life::unknown);
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  EXPECT_EQ(life_of(child), Life::alive);
  kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_EQ(life_of(child), Life::stopped);
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(life_of(child), Life::gone);  // nobody has collected it
  waitpid(child, &status, 0);
  EXPECT_EQ(life_of(child), Life::gone);
}

}  // namespace
}  // namespace espalier

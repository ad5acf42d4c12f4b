// SPDX-License-Identifier: Apache-2.0
// Hosts played by boards of their own in one process.
#include "exec/mpi/board_mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/exec/local_network.h"

namespace espalier {
namespace {

constexpr int kRanks = 4;
constexpr auto kTime = std::chrono::seconds(20);

/// Two processes on each of two hosts; the processes of a host share its states.
class BoardMirrorTest : public testing::Test {
 protected:
  struct Host {
    BoardHead head;
    std::vector<RankState> states{kRanks};
  };

  BoardMirrorTest() {
    for (int rank = 0; rank < kRanks; ++rank) {
      Host& host = hosts_[static_cast<std::size_t>(rank / 2)];
      Board& board = boards_[static_cast<std::size_t>(rank)];
      board.process = rank;
      board.head = &host.head;
      for (RankState& state : host.states) board.states.push_back(&state);
      board.hosts = {"node1", "node1", "node2", "node2"};
      board.groups = {0, 0, 2, 2};
      board.mine().pid = getpid();
      board.mine().phase = Phase::running;
    }
  }

  void SetUp() override {
    if (addresses_of_this_host().empty()) GTEST_SKIP() << "this host has no network";
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        mirrors_[rank] = std::make_unique<BoardMirror>(boards_[rank],
                                                       network_.transport(static_cast<int>(rank)));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  const RankState& state(int host, int rank) const {
    return hosts_[static_cast<std::size_t>(host)].states[static_cast<std::size_t>(rank)];
  }

  static bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kTime;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  LocalNetwork network_{kRanks, Buffering::all, 3};
  std::array<Host, 2> hosts_;
  std::array<Board, kRanks> boards_;
  std::array<std::unique_ptr<BoardMirror>, kRanks> mirrors_;
};

TEST_F(BoardMirrorTest, EveryHostKnowsWhatAllAreAt) {
  boards_[3].mine().op = 17;
  boards_[3].mine().progress = 5;
  boards_[1].mine().awaited = 3;
  EXPECT_TRUE(comes_true([&] { return state(0, 3).op == 17 && state(0, 3).progress == 5; }));
  EXPECT_TRUE(comes_true([&] { return state(1, 1).awaited == 3 && state(1, 1).pid == getpid(); }));
  EXPECT_EQ(state(0, 3).life, Life::alive);
  EXPECT_EQ(look_at(boards_[1]).size(), 4u);
}

TEST_F(BoardMirrorTest, WhoGoesWithLastWordsIsAtItsEnd) {
  EXPECT_TRUE(comes_true([&] { return state(0, 3).pid != 0; }));
  boards_[3].mine().phase = Phase::failing;
  mirrors_[3].reset();
  EXPECT_TRUE(comes_true([&] { return state(0, 3).phase == Phase::failing; }));
  EXPECT_FALSE(is_lost(look_at(boards_[0])[3]));
  // The other process of that host goes on.
  boards_[2].mine().progress = 99;
  EXPECT_TRUE(comes_true([&] { return state(0, 2).progress == 99; }));
}

TEST_F(BoardMirrorTest, AConnectionThatEndsWithoutLastWordsIsAProcessThatIsGone) {
  EXPECT_TRUE(comes_true([&] { return state(1, 0).pid != 0 && state(0, 2).pid != 0; }));
  // Last words that say that it is in the middle of a run are none.
  mirrors_[0].reset();
  EXPECT_TRUE(comes_true([&] { return state(1, 0).life == Life::gone; }));
  EXPECT_EQ(last_rank(look_at(boards_[2]))->rank, 0);
}

}  // namespace
}  // namespace espalier

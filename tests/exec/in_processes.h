// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "exec/mpi/processes.h"
#include "tests/exec/local_network.h"

namespace espalier {

/// Calls `work` in as many threads as there are processes, which exchange messages in memory, as on
/// one computer, or on the hosts that `groups` says (Board::groups).
inline void in_processes(int count, const std::function<void(const Processes&)>& work,
                         bool takes_gpu_memory = false, const std::vector<int>& groups = {}) {
  LocalNetwork network(count, Buffering::none, 7);
  network.takes_gpu_memory = takes_gpu_memory;
  BoardHead head;
  std::vector<RankState> states(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int process = 0; process < count; ++process) {
    threads.emplace_back([&, process] {
      Board board;
      board.process = process;
      board.head = &head;
      board.groups = groups;
      for (RankState& state : states) board.states.push_back(&state);
      const std::vector<std::string> places(static_cast<std::size_t>(count), "node7");
      work(Processes{network.transport(process), board, nullptr, 1, places, count});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(network.unmatched(), 0u);
}

}  // namespace espalier

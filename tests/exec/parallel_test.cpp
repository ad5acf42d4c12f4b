// SPDX-License-Identifier: Apache-2.0
#include "exec/host/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace espalier {
namespace {

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (const int threads : {0, 1, 3, 50}) {
    for (const std::int64_t count : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      parallel_for(count, threads, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST(ParallelFor, PassesOnAnException) {
  EXPECT_THROW(parallel_for(100, 4,
                            [](std::int64_t i) {
                              if (i == 37) throw std::runtime_error("37");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The cost models of "Optimized broadcast for deep learning" (OSU, 2017), equations 1 to 6, under
// their own assumptions: every pair of GPUs has a link of bandwidth B with start-up t_s.
//   t_s = 10 us, B = 10e9 bytes/s.
#include <fmt/format.h>

#include "tests/oracle/ask.h"

namespace espalier::oracle {
namespace {

constexpr double kB = 10e9;
constexpr double kTs = 10e-6;
constexpr std::int64_t kM = 12'600'000;
constexpr int kCounts[] = {2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 32, 64};

std::string full(int n) { return fmt::format("full:n={},gbps=10,startup_us=10", n); }

int rounds(int n, int k) {
  int count = 0;
  for (long reached = 1; reached < n; reached *= k) ++count;
  return count;
}

TEST(BroadcastModels, Equation1Direct) {
  // The root sends to one after the other. The paper counts n sends; the root needs none, so n - 1.
  for (const int n : kCounts) {
    SCOPED_TRACE(n);
    expect_time(time_s(full(n), Collective::broadcast, "direct", kM), (n - 1) * (kTs + kM / kB));
  }
}

TEST(BroadcastModels, Equation2Chain) {
  for (const int n : kCounts) {
    SCOPED_TRACE(n);
    expect_time(time_s(full(n), Collective::broadcast, "chain", kM), (n - 1) * (kTs + kM / kB));
  }
}

TEST(BroadcastModels, Equation3Knomial) {
  for (const int k : {2, 3, 4, 8}) {
    for (const int n : kCounts) {
      SCOPED_TRACE(fmt::format("n = {}, k = {}", n, k));
      expect_time(time_s(full(n), Collective::broadcast, fmt::format("knomial:k={}", k), kM),
                  rounds(n, k) * (kTs + kM / kB));
    }
  }
}

TEST(BroadcastModels, Equation4ScatterAllgather) {
  for (const int n : kCounts) {
    SCOPED_TRACE(n);
    expect_time(time_s(full(n), Collective::broadcast, "scatter_allgather", kM),
                (rounds(n, 2) + n - 1) * kTs + 2.0 * (n - 1) / n * kM / kB);
  }
}

TEST(BroadcastModels, Equation5PipelinedChain) {
  // Chunks of C bytes that divide M exactly.
  for (const std::int64_t chunk : {kM, kM / 2, kM / 7, kM / 100}) {
    for (const int n : kCounts) {
      SCOPED_TRACE(fmt::format("n = {}, C = {}", n, chunk));
      const double c = static_cast<double>(chunk);
      expect_time(time_s(full(n), Collective::broadcast, "pipelined_chain", kM, "ideal", chunk),
                  (kM / c + (n - 2)) * (kTs + c / kB));
    }
  }
}

TEST(BroadcastModels, Equation6HostStagedKnomial) {
  for (const int k : {2, 4}) {
    for (const int n : {2, 3, 4, 5, 8, 9, 16}) {
      SCOPED_TRACE(fmt::format("n = {}, k = {}", n, k));
      // Memory to memory B with start-up t_s, GPU to its memory 32e9 bytes/s without start-up.
      expect_time(time_s(fmt::format("hosts:n={},gbps=10,startup_us=10,host_gbps=32", n),
                         Collective::broadcast, fmt::format("host_staged_knomial:k={}", k), kM),
                  kM / 32e9 + rounds(n, k) * (kTs + kM / kB));
    }
  }
}

}  // namespace
}  // namespace espalier::oracle

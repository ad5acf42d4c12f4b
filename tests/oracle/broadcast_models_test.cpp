// SPDX-License-Identifier: Apache-2.0
// The cost models of "Optimized broadcast for deep learning" (OSU, 2017), equations 1 to 6, under
// their own assumptions: every pair of GPUs has a link of bandwidth B with start-up t_s.
//   t_s = 10 us, B = 10e9 bytes/s.
#include <fmt/format.h>

#include <cmath>

#include "tests/oracle/ask.h"

namespace espalier::oracle {
namespace {

constexpr double kB = 10e9;
constexpr double kTs = 10e-6;
constexpr std::int64_t kM = 12'600'000;
constexpr int kCounts[] = {2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 32, 64};

std::string full(int n) { return fmt::format("full:n={},gbps=10,latency_us=10", n); }

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

/// n hosts with one GPU and one memory each. Memory to memory B with start-up t_s in the network
/// card, GPU to its memory 32e9 bytes/s without start-up, every memory pair on wires of its own.
std::string staged_machine(int n) {
  std::string yaml =
      "schema: espalier.topology/1\nname: staged\nlink_kinds: {bus: {class: host}, net: {class: "
      "host}}\n"
      "peer_access: fabric\nnodes:\n";
  for (int i = 0; i < n; ++i) {
    yaml += fmt::format("  - {{name: gpu{0}, kind: gpu}}\n  - {{name: cpu{0}, kind: cpu}}\n", i);
  }
  yaml += "links:\n";
  for (int i = 0; i < n; ++i) {
    yaml += fmt::format("  - {{a: gpu{0}, b: cpu{0}, kind: bus, gbps: 32}}\n", i);
    for (int j = 0; j < i; ++j) {
      yaml +=
          fmt::format("  - {{a: cpu{}, b: cpu{}, kind: net, gbps: 10, latency_us: 10}}\n", i, j);
    }
  }
  return yaml;
}

TEST(BroadcastModels, Equation6HostStagedKnomial) {
  for (const int k : {2, 4}) {
    for (const int n : {2, 3, 4, 5, 8, 9, 16}) {
      SCOPED_TRACE(fmt::format("n = {}, k = {}", n, k));
      const std::string file = testing::TempDir() + fmt::format("/staged{}.yaml", n);
      FILE* out = std::fopen(file.c_str(), "w");
      ASSERT_NE(out, nullptr);
      std::fputs(staged_machine(n).c_str(), out);
      std::fclose(out);
      expect_time(
          time_s(file, Collective::broadcast, fmt::format("host_staged_knomial:k={}", k), kM),
          kM / 32e9 + rounds(n, k) * (kTs + kM / kB));
    }
  }
}

}  // namespace
}  // namespace espalier::oracle

// SPDX-License-Identifier: Apache-2.0
// Ring collectives against their closed forms (Patarasuk and Yuan 2009; Baidu ring allreduce 2017).
// B = 25e9 bytes/s per link and direction, l = 1 us per link.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/oracle/ask.h"
#include "tests/temp_file.h"

namespace espalier::oracle {
namespace {

constexpr double kB = 25e9;
constexpr double kL = 1e-6;

std::string ring(int n) { return fmt::format("ring:n={},gbps=25,latency_us=1", n); }

TEST(RingOracle, Allreduce) {
  // n - 1 steps combine, n - 1 steps tell; each moves M / n over one link.
  for (const int n : {2, 3, 4, 5, 6, 7, 8, 9, 16, 33}) {
    for (const std::int64_t bytes :
         {std::int64_t{4}, std::int64_t{1'000'003}, std::int64_t{1} << 30}) {
      SCOPED_TRACE(fmt::format("n = {}, M = {}", n, bytes));
      const double m = static_cast<double>(bytes);
      expect_time(time_s(ring(n), Collective::allreduce, "ring", bytes),
                  2 * (n - 1) * (m / n / kB + kL));
    }
  }
}

TEST(RingOracle, AllgatherAndReducescatter) {
  for (const int n : {2, 3, 7, 8, 16}) {
    const double expected = (n - 1) * (1e9 / n / kB + kL);
    expect_time(time_s(ring(n), Collective::allgather, "ring", 1'000'000'000), expected);
    expect_time(time_s(ring(n), Collective::reducescatter, "ring", 1'000'000'000), expected);
  }
}

TEST(RingOracle, LatencyIsThatOfItsLinksOnceALap) {
  // One unit per rank: the unit that begins at rank i crosses 2 (n - 1) links in turn, all of them
  // twice but the two before rank i. The slowest unit misses the two quickest neighbours.
  constexpr unsigned kSeed = 20261122;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (const int n : {3, 4, 5, 8, 13, 16}) {
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<double> latency_us;
      std::string machine = fmt::format("ring:n={},gbps=25", n);
      for (int i = 0; i < n; ++i) {
        latency_us.push_back(static_cast<double>(1 + random() % 200));
        machine += fmt::format(",gpu{}-gpu{}.latency_us={}", std::min(i, (i + 1) % n),
                               std::max(i, (i + 1) % n), latency_us.back());
      }
      SCOPED_TRACE(machine);
      double lap_us = 0;
      double least_us = 1e9;
      for (int i = 0; i < n; ++i) {
        lap_us += latency_us[i];
        least_us = std::min(least_us, latency_us[i] + latency_us[(i + 1) % n]);
      }
      expect_time(time_s(machine, Collective::allreduce, "ring", 8L * n),
                  2 * (n - 1) * 8 / kB + (2 * lap_us - least_us) * 1e-6);
    }
  }
  // The ring of eight with one link of 100 us: 2 x 107 - 2, and 14 steps of 64 bytes.
  expect_time(time_s("ring:n=8,gbps=25,latency_us=1,gpu0-gpu1.latency_us=100",
                     Collective::allreduce, "nccl_rings", 1024),
              212e-6 + 14 * 64 / kB);
}

TEST(RingOracle, AStartUpCostIsPaidByEveryStep) {
  // A machine of one link kind whose profile charges 5 us per transfer and reaches 80 %.
  // 2 (n-1) (M/n / (0.8 B) + l + 5 us) with n = 4, M = 4e6: 6 x (1e6 / 20e9 + 6e-6) = 6 x 56 us.
  const std::string machine = temp_file("ring4.yaml");
  FILE* file = std::fopen(machine.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(
      "schema: espalier.topology/1\n"
      "name: ring4\n"
      "nodes:\n"
      "  - {name: \"gpu[0-3]\", kind: gpu}\n"
      "link_kinds: {wire: {class: gpu_fabric}}\n"
      "profiles:\n"
      "  slow: {links: {wire: {efficiency: 0.8, overhead_us: 5}}}\n"
      "links:\n"
      "  - {a: gpu0, b: gpu1, kind: wire, gbps: 25, latency_us: 1}\n"
      "  - {a: gpu1, b: gpu2, kind: wire, gbps: 25, latency_us: 1}\n"
      "  - {a: gpu2, b: gpu3, kind: wire, gbps: 25, latency_us: 1}\n"
      "  - {a: gpu3, b: gpu0, kind: wire, gbps: 25, latency_us: 1}\n",
      file);
  std::fclose(file);
  expect_time(time_s(machine, Collective::allreduce, "ring", 4'000'000, "slow"), 6 * 56e-6);
}

TEST(RingOracle, OneRankTakesNoTimeUnderIdeal) {
  EXPECT_EQ(time_s("ring:n=1", Collective::allreduce, "ring", 1 << 20), 0);
}

}  // namespace
}  // namespace espalier::oracle

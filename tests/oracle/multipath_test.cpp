// SPDX-License-Identifier: Apache-2.0
// Closed forms for the algorithms of "Interconnect-aware multi-path GPU communication with UCX", on
// nodes of two sockets with two GPUs each, without start-up times unless a test says so:
//   GPU to GPU of a socket 40 GB/s, GPU to CPU 15, between sockets 20, between nodes 10.
#include <fmt/format.h>

#include <cstdio>

#include "tests/oracle/ask.h"
#include "tests/temp_file.h"

namespace espalier::oracle {
namespace {

constexpr double kDirect = 40e9;
constexpr double kHost = 15e9;
constexpr double kSockets = 20e9;
constexpr double kNodes = 10e9;
constexpr std::int64_t kM = 240'000'000;

/// GPUs of different sockets are joined as their CPUs are. CPUs add 5 GB/s.
std::string machine_file(double latency_us) {
  const std::string file = temp_file(fmt::format("sockets{}.yaml", latency_us));
  std::FILE* out = std::fopen(file.c_str(), "w");
  EXPECT_NE(out, nullptr);
  if (out == nullptr) return file;
  std::fputs(fmt::format(R"(schema: espalier.topology/1
name: sockets
nodes:
  - {{name: "gpu[0-3]", kind: gpu}}
  - {{name: "cpu[0-1]", kind: cpu, reduce_gbps: 5}}
  - {{name: nic0, kind: nic}}
  - {{name: net, kind: fabric}}
links:
  - {{a: gpu0, b: gpu1, kind: link, gbps: 40, latency_us: {0}}}
  - {{a: gpu2, b: gpu3, kind: link, gbps: 40, latency_us: {0}}}
  - {{a: gpu0, b: gpu2, kind: link, gbps: 20}}
  - {{a: "gpu[0-1]", b: cpu0, kind: link, gbps: 15, latency_us: {0}}}
  - {{a: "gpu[2-3]", b: cpu1, kind: link, gbps: 15, latency_us: {0}}}
  - {{a: cpu0, b: cpu1, kind: link, gbps: 20}}
  - {{a: nic0, b: "gpu[0,2]", kind: link, gbps: 10}}
  - {{a: nic0, b: "cpu[0-1]", kind: link, gbps: 10}}
  - {{a: nic0, b: net, kind: link, gbps: 10}}
cluster: {{nodes: 1, shared: [net]}}
)",
                         latency_us)
                 .c_str(),
             out);
  std::fclose(out);
  return file;
}

Query put(const std::string& algorithm, double latency_us = 0) {
  Query query = question(machine_file(latency_us), Collective::broadcast, algorithm, kM);
  query.gpus = {0, 1};
  query.in_place = true;
  return query;
}

TEST(Multipath, TwoPathsAtOnce) {
  // Share h through host memory in S pieces: these follow each other into host memory, the last one
  // then comes out: S + 1 steps of h M / S, and the way in and out. The direct part takes (1 - h)
  // M.
  constexpr double kAlpha = 2e-6;
  for (const int streams : {1, 2, 4, 8}) {
    for (const int share : {0, 5, 10, 25, 40, 100}) {
      SCOPED_TRACE(fmt::format("{} streams, {} percent", streams, share));
      const double direct_s = share == 100 ? 0 : kAlpha + (100 - share) * kM / 100 / kDirect;
      const double piece_s = share * kM / 100.0 / streams / kHost;
      const double host_s = share == 0 ? 0 : (streams + 1) * piece_s + 2 * kAlpha;
      const auto algorithm = fmt::format("multipath:host_share={},streams={}", share, streams);
      expect_time(run(put(algorithm, 2)).time_s, std::max(direct_s, host_s));
    }
  }
}

TEST(Multipath, TheBestShareIsFound) {
  // Both parts take equally long at (1 - h) / 40 = 9/8 h / 15, so h = 1 / 4: 30 of 55 GB/s would be
  // the ratio of the links, but the first and last piece of eight are on one link only.
  Simulator simulator;
  Study study(simulator, &simulator);
  const Outcome outcome = study.ask(put("multipath"));
  EXPECT_EQ(outcome.chosen, "multipath:host_share=25,streams=8");
  expect_time(outcome.report.time_s, 0.75 * kM / kDirect);
}

TEST(Multipath, AWindowKeepsTheHostPathFull) {
  // Messages one after the other, in two pieces each: 32 pieces in, the last one out, 33 steps.
  const double piece_s = 0.25 * kM / 16 / 2 / kHost;
  expect_time(run(put("multipath:host_share=25,streams=2,window=16,at_once=1")).time_s,
              std::max(0.75 * kM / kDirect, 33 * piece_s));
}

TEST(Hierarchical, SumOfItsStages) {
  // To the leader M; half a message each way between the leaders to reduce, and half to gather. To
  // the other GPU goes, meanwhile, the half that its leader has; the other half is left.
  expect_time(time_s(machine_file(0), Collective::allreduce, "hierarchical_leaders", kM),
              1.5 * kM / kDirect + kM / kSockets);
  // A ring of two nodes: every leader's half is cut in two, which go round twice. Both leaders
  // share the NIC: 2 x 2 x M / 4 in each direction.
  expect_time(
      time_s(machine_file(0) + ":nodes=2", Collective::allreduce, "hierarchical_leaders", kM),
      1.5 * kM / kDirect + kM / kSockets + kM / kNodes);
}

TEST(Hierarchical, NodesAllreduceInHostMemory) {
  // As on GPUs, but every leader's half goes to its CPU before and comes back after.
  expect_time(time_s(machine_file(0) + ":nodes=2", Collective::allreduce,
                     "hierarchical_leaders:host_ring=1", kM),
              1.5 * kM / kDirect + kM / kSockets + 2 * kM / 2.0 / kHost + kM / kNodes);
  // On one node there is nothing to stage.
  expect_time(
      time_s(machine_file(0), Collective::allreduce, "hierarchical_leaders:host_ring=1", kM),
      1.5 * kM / kDirect + kM / kSockets);
}

TEST(Hierarchical, NodesOfAnySizeInHostMemory) {
  // Nodes of one and two leaders, who use one CPU for two parts or two; scratch for striping
  // beside.
  for (const std::vector<int>& gpus : {std::vector{6, 1, 0, 3, 4}, std::vector{0, 2, 5, 7, 4},
                                       std::vector{1, 4}, std::vector{2, 0, 4, 5}}) {
    for (const char* algorithm : {"hierarchical_leaders", "hierarchical_leaders:host_ring=1",
                                  "hierarchical_leaders:host_ring=1,host_share=30,at_once=1"}) {
      SCOPED_TRACE(algorithm);
      Query query = question(machine_file(0) + ":nodes=2", Collective::allreduce, algorithm, kM);
      query.gpus = gpus;
      for (const std::int64_t chunk_bytes : {0, 1'000'000}) {
        query.chunk_bytes = chunk_bytes;
        EXPECT_GT(run(query).time_s, 0);  // it is verified on the way
      }
    }
  }
}

TEST(Hierarchical, StripedWithinSockets) {
  // A tenth by host memory, in and out: 2 x 24 MB / 15 are less than nine tenths straight.
  expect_time(
      time_s(machine_file(0), Collective::allreduce, "hierarchical_leaders:host_share=10", kM),
      1.5 * 0.9 * kM / kDirect + kM / kSockets);
}

TEST(HostReduced, SumOfItsSteps) {
  // In; the two messages of a socket are added; half a message goes to the other CPU, which adds
  // it; half a sum comes back; out. What a GPU's kernel takes to start is none of a CPU's.
  const double add_s = kM / 5e9;
  const double add_half_s = kM / 2.0 / 5e9;
  expect_time(
      time_s(machine_file(0), Collective::allreduce, "host_reduced", kM, "copy_engine"),
      kM / kHost + add_s + kM / 2.0 / kSockets + add_half_s + kM / 2.0 / kSockets + kM / kHost);
}

}  // namespace
}  // namespace espalier::oracle

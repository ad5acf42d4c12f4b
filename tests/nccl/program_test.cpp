// SPDX-License-Identifier: Apache-2.0
// The programs of algorithm nccl: right for every collective, algorithm and size, and as long as
// the closed form of NCCL's rings says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/algorithm.h"
#include "ir/verify.h"
#include "nccl/version.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

struct Built {
  Program program;
  LibraryCall call;
};

/// Nothing where NCCL can't.
std::optional<Built> build_for(const std::string& spec, const Router& router,
                               const Placement& placement, Collective collective,
                               std::int64_t size_bytes, bool in_place = false, int root = 0) {
  const AlgorithmChoice choice = parse_algorithm(spec);
  BuildRequest request = request_for(collective, root, in_place, router, placement);
  request.size_bytes = size_bytes;
  if (unsupported(choice, request)) return std::nullopt;
  const LibraryCall call = library_call(choice, request);
  return Built{build(decided(choice, call), request), call};
}

TEST(NcclPrograms, AreRightForEveryCollectiveAlgorithmAndSize) {
  int built_in_all = 0;
  for (const std::string name : {"dgx-a100", "dgx-h100", "dgx1-v100", "mi300x", "p2.16xlarge",
                                 "p3dn.24xlarge:nodes=2", "dgx-h100:nodes=3"}) {
    const Topology topology = load_topology(name);
    const Router router(topology, topology.profile("nccl"));
    const int gpus = static_cast<int>(topology.gpus().size());
    for (const int ranks : {1, 2, 3, 7, gpus}) {
      std::vector<int> numbers;
      for (int gpu = 0; gpu < ranks; ++gpu) numbers.push_back(gpu);
      const Placement placement = place_ranks(router, numbers);
      if (unreachable_pair(router, placement)) continue;
      for (const Collective collective : find_algorithm("nccl")->collectives) {
        for (const char* spec : {"nccl", "nccl:version=2.4", "nccl:algo=tree", "nccl:algo=nvls",
                                 "nccl:algo=nvls_tree", "nccl:proto=ll", "nccl:proto=simple"}) {
          for (const std::int64_t size : {4, 1000, 3 << 20, 100'000'000}) {
            const bool in_place = size == 1000;
            const auto built = build_for(spec, router, placement, collective, size, in_place,
                                         info(collective).rooted ? ranks - 1 : 0);
            if (!built) continue;
            ++built_in_all;
            const Verification verification = verify(built->program);
            ASSERT_TRUE(verification.ok())
                << name << " " << spec << " " << to_string(collective) << " of " << size << " on "
                << ranks << ": " << verification.problems.front().message;
          }
        }
      }
    }
  }
  EXPECT_GT(built_in_all, 2000);
}

TEST(NcclPrograms, OfOneGpuPerNodeAreAggregatedTrees) {
  for (const int nodes : {2, 3, 5, 8, 13}) {
    const Topology topology = load_topology(fmt::format("dgx-a100:nodes={}", nodes));
    const Router router(topology, topology.profile("nccl"));
    std::vector<int> first;
    for (int node = 0; node < nodes; ++node) first.push_back(8 * node);
    const Placement placement = place_ranks(router, first);
    for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
      for (const bool in_place : {false, true}) {
        const auto built =
            build_for("nccl:algo=pat", router, placement, collective, 1 << 20, in_place);
        ASSERT_TRUE(built);
        EXPECT_TRUE(verify(built->program).ok()) << nodes << " " << to_string(collective);
      }
    }
  }
}

TEST(NcclPrograms, HaveALaneForEveryChannel) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("nccl"));
  const Placement placement = place_ranks(router, {});
  for (const int channels : {1, 3, 24}) {
    const auto built = build_for(fmt::format("nccl:algo=ring,channels={}", channels), router,
                                 placement, Collective::allreduce, 64 << 20);
    std::set<int> lanes;
    for (const Op& op : built->program.ops) {
      if (op.at == 0) lanes.insert(op.lane);
    }
    EXPECT_EQ(static_cast<int>(lanes.size()), channels);
  }
}

/// T = call + sum over rounds of K x(c), K = 2 (n - 1) or n - 1, x = o + max(c / R, c C / B): see
/// tests/oracle/nccl_ring_test.cpp. On 8 A100: B = 231 GB/s.
TEST(NcclPrograms, OfRingsTakeWhatTheirClosedFormSays) {
  const Topology topology = load_topology("dgx-a100");
  Simulator simulator;
  for (const Collective collective :
       {Collective::allreduce, Collective::allgather, Collective::reducescatter}) {
    for (const double bytes : {64e6, 256e6, 1024e6}) {
      Profile profile = topology.profile("nccl:simple");
      const Router router(topology, profile);
      const Placement placement = place_ranks(router, {});
      const auto built = build_for("nccl:proto=simple,algo=ring", router, placement, collective,
                                   static_cast<std::int64_t>(bytes));
      RunOptions options;
      options.size_bytes = static_cast<std::int64_t>(bytes);
      options.blocks = built->call.blocks;
      const double time_us =
          simulator.run(built->program, {&router, placement}, options).time_s * 1e6;
      const double steps = collective == Collective::allreduce ? 14 : 7;
      double expected_us = 5.5 + 8.4;
      for (double rest = bytes; rest > 1;) {
        const double chunk = std::min(2097152.0, rest / (24 * 8));
        const double bulk_us = std::max(chunk / 20, chunk * 24 / 231) * 1e-3;
        expected_us += steps * std::max(3.4, 2 * 3.2 + bulk_us);
        rest -= chunk * 24 * 8;
      }
      EXPECT_NEAR(time_us / expected_us, 1, 0.03) << to_string(collective) << " of " << bytes;
    }
  }
}

TEST(NcclChoices, AreReadByWordsAndVersions) {
  const AlgorithmChoice choice = parse_algorithm("nccl:version=2.18.3,algo=NVLS_tree,proto=LL128");
  EXPECT_EQ(choice.parameters.at("version"), 18);
  EXPECT_EQ(spec_of(choice), "nccl:algo=nvls_tree,proto=ll128,version=2.18");
  EXPECT_EQ(spec_of(parse_algorithm(spec_of(choice))), spec_of(choice));
  EXPECT_THROW(parse_algorithm("nccl:algo=rings"), Error);
  EXPECT_THROW(parse_algorithm("nccl:version=2.3"), Error);
}

}  // namespace
}  // namespace espalier

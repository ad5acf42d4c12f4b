// SPDX-License-Identifier: Apache-2.0
// The programs of algorithm nccl: right for every collective, algorithm and size, and as long as
// the closed form of NCCL's rings says.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

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

/// T = call + sum over rounds of K x(c), K = 2 (n - 1) or n - 1, x = o + l + max(c / R, c C / B)
/// for the first 14 ops, and max(o + l + c / R, c C / B) for those after them: see
/// tests/oracle/nccl_ring_test.cpp. l = (1 us + c / R) / K: what stays in the GPU. On 8 A100: B =
/// 231 GB/s.
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
      const int steps = collective == Collective::allreduce ? 14 : 7;
      int ops = 0;
      double expected_us = 5.5 + 8.4;
      for (double rest = bytes; rest > 1;) {
        const double chunk = std::min(2097152.0, rest / (24 * 8));
        const double block_us = chunk / 20 * 1e-3;
        const double link_us = chunk * 24 / 231 * 1e-3;
        const double pause_us = 2 * 3.2 + (1 + block_us) / steps;
        const double in_step_us = pause_us + std::max(block_us, link_us);
        const double adrift_us = std::max(pause_us + block_us, link_us);
        for (int step = 0; step < steps; ++step) expected_us += ++ops > 14 ? adrift_us : in_step_us;
        rest -= chunk * 24 * 8;
      }
      EXPECT_NEAR(time_us / expected_us, 1, 0.03) << to_string(collective) << " of " << bytes;
    }
  }
}

/// All but the ends of chains: a ring's round has an op more than hops, under Simple.
TEST(NcclPrograms, OfRingsHaveOneOpMoreThanHops) {
  const Topology topology = load_topology("dgx-a100");
  const auto ops = [&](const std::string& spec, Collective collective) {
    const Router router(topology, topology.profile("nccl"));
    const auto built = build_for(spec, router, place_ranks(router, {}), collective, 64 << 20);
    return built->call.blocks.ops_per_local;
  };
  EXPECT_EQ(ops("nccl:algo=ring,proto=simple", Collective::allreduce), 14);
  EXPECT_EQ(ops("nccl:algo=ring,proto=simple", Collective::allgather), 7);
  EXPECT_EQ(ops("nccl:algo=ring,proto=simple", Collective::reducescatter), 7);
  EXPECT_EQ(ops("nccl:algo=ring,proto=ll128", Collective::allreduce), 0);
  EXPECT_EQ(ops("nccl:algo=ring,proto=simple", Collective::broadcast), 0);
  EXPECT_EQ(ops("nccl:algo=tree,proto=simple", Collective::allreduce), 0);
}

double time_us(const std::string& spec, const Topology& topology, Collective collective,
               std::int64_t bytes, const std::string& profile = "nccl:simple",
               const std::vector<int>& gpus = {}) {
  const Router router(topology, topology.profile(profile));
  const Placement placement = place_ranks(router, gpus);
  const auto built = build_for(spec, router, placement, collective, bytes);
  EXPECT_TRUE(built) << spec;
  if (!built) return 0;
  RunOptions options;
  options.size_bytes = bytes;
  options.blocks = built->call.blocks;
  Simulator simulator;
  return simulator.run(built->program, {&router, placement}, options).time_s * 1e6;
}

/// A chunk goes up and down a chain of n ranks in parts, each as much as the threads of a direction
/// hold: 0.7 x 160 threads of 60 bytes are 6720, so that 18000 bytes, 32 units, are 11, 11 and 10
/// of these. A block with all 640 threads moves 7.6 GB/s, so that a part of 11 takes t = 6187.5
/// bytes / 1.33 GB/s. The first part of a chunk pays a hop, 1.9 us, and the others come right
/// behind it: of 2 (n - 1) hops, each takes 1.9 us + t.
TEST(NcclPrograms, OfTreesGoLineByLine) {
  const Topology topology = load_topology("dgx-a100");
  const auto of = [&](const std::string& spec, const std::vector<int>& gpus) {
    return time_us(spec, topology, Collective::allreduce, 18000, "nccl:ll128", gpus);
  };
  const std::string tree = "nccl:version=2.21,algo=tree,proto=ll128,channels=1,threads=160";
  const double part_us = 18000.0 / 32 * 11 / (7.6e3 * 0.7 * 160 / 640);
  const double rest_us = part_us / 11 * (11 + 10);
  EXPECT_NEAR(of(tree, {0, 1, 2, 3, 4, 5, 6, 7}) - of(tree, {0, 1, 2, 3}), 8 * (1.9 + part_us),
              1e-3);
  EXPECT_NEAR(of(tree, {0, 1}), 5.5 + 14 + 2 * (1.9 + part_us) + rest_us, 1e-3);
}

/// So do those of chains, with all threads: 160 of 60 bytes are 9600, so that 18000 bytes are two
/// parts, each of which takes 9000 bytes / 1.9 GB/s. The second comes right behind the first.
TEST(NcclPrograms, OfChainsGoLineByLine) {
  const Topology topology = load_topology("dgx-a100");
  const std::string chain = "nccl:version=2.21,algo=ring,proto=ll128,channels=1,threads=160";
  const double part_us = 9000 / (7.6e3 * 160 / 640);
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const auto of = [&](const std::vector<int>& gpus) {
      return time_us(chain, topology, collective, 18000, "nccl:ll128", gpus);
    };
    EXPECT_NEAR(of({0, 1}), 5.5 + 14 + (1.9 + part_us) + part_us, 1e-3);
    EXPECT_NEAR(of({0, 1, 2, 3, 4, 5, 6, 7}) - of({0, 1, 2, 3}), 4 * (1.9 + part_us), 1e-3);
  }
}

/// Chains across nodes, too: four hops more inside two nodes are four parts and hops, and not whole
/// chunks. Only the hop between the nodes takes the chunk as a whole. A reduce begins behind its
/// root, with two GPUs alone in the root's node by leaving it: with more, its second part comes
/// last.
TEST(NcclPrograms, OfChainsAcrossNodesGoLineByLineInside) {
  const Topology topology = load_topology("dgx-a100:nodes=2");
  const std::string chain = "nccl:version=2.21,algo=ring,proto=ll128,channels=1,threads=160";
  const double part_us = 9000 / (7.6e3 * 160 / 640);
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const auto of = [&](const std::vector<int>& gpus) {
      return time_us(chain, topology, collective, 18000, "nccl:ll128", gpus);
    };
    const double last_us = collective == Collective::reduce ? part_us : 0;
    EXPECT_NEAR(of({0, 1, 2, 3, 8, 9, 10, 11}) - of({0, 1, 8, 9}), 4 * (1.9 + part_us) + last_us,
                1e-3);
  }
}

/// What NCCL chooses between two machines is never far from what its rings would take: its tuner,
/// whose constants are measured ones, would not have chosen trees.
TEST(NcclPrograms, OfTreesBetweenNodesAreNoMistakeOfTheTuner) {
  const Topology topology = load_topology("dgx-a100:nodes=2");
  for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{8} << 20}) {
    const auto of = [&](const std::string& algorithm) {
      return time_us("nccl:proto=ll128,algo=" + algorithm, topology, Collective::allreduce, bytes,
                     "nccl:ll128");
    };
    EXPECT_LT(of("tree"), 1.4 * of("ring")) << bytes;
  }
}

/// The slowest stage decides, as all of them overlap. A port carries the message and its own share
/// once more, 9/8 S, at 0.82 x 450 GB/s / 1.139; a NIC carries up half of its eighth of the message
/// and down the other half, S / 8, at 48 GB/s. What a round costs beside its bytes is hidden but
/// for the block's own 3.5 us.
TEST(NcclPrograms, OfNvlsTreesOverlapTheirStages) {
  const Topology topology = load_topology("dgx-h100:nodes=2");
  const double bytes = 1 << 30;
  const double port_us = 9.0 / 8 * bytes / (0.82 * 450e3 / 1.139);
  const double nic_us = bytes / 8 / 48e3;
  ASSERT_GT(port_us, nic_us);
  const double rounds = bytes / (16 * 8 * 128.0 * 1024);
  const double time =
      time_us("nccl:algo=nvls_tree", topology, Collective::allreduce, std::int64_t{1} << 30);
  EXPECT_GT(time, port_us);
  EXPECT_LT(time, port_us + rounds * 3.5 + 0.2 * port_us);
}

/// With a switch of the network that adds up, heads need no tree: every NIC carries its eighth of
/// the message once in either direction.
TEST(NcclPrograms, OfCollnetNeedASwitchOfTheNetworkAndTheirName) {
  Topology topology = load_topology("dgx-h100:nodes=4");
  for (Node& node : topology.nodes) node.combines = node.combines || node.kind == NodeKind::fabric;
  const Router router(topology, topology.profile("nccl"));
  const Placement placement = place_ranks(router, {});
  for (const char* spec : {"nccl:algo=collnet_direct", "nccl:algo=collnet_chain", "nccl:algo=nvls",
                           "nccl:algo=nvls_tree"}) {
    for (const std::int64_t size : {4, 1000, 3 << 20, 100'000'000}) {
      for (const bool in_place : {false, true}) {
        const auto built =
            build_for(spec, router, placement, Collective::allreduce, size, in_place);
        ASSERT_TRUE(built) << spec;
        const Verification verification = verify(built->program);
        EXPECT_TRUE(verification.ok())
            << spec << " of " << size << ": " << verification.problems.front().message;
      }
    }
  }
  // NCCL_COLLNET_ENABLE is off by default: nobody gets it without asking.
  BuildRequest request = request_for(Collective::allreduce, 0, false, router, placement);
  request.size_bytes = 1 << 30;
  const AlgorithmChoice choice = parse_algorithm("nccl");
  EXPECT_EQ(library_call(choice, request).parameters.at("algo"),
            static_cast<std::int64_t>(NcclAlgorithm::nvls_tree));
}

/// Each rank sends 7/8 of the message to the others, over ports of 231 GB/s; what it keeps is
/// copied by as many blocks as there are for a peer, at the same time.
TEST(NcclPrograms, OfAlltoallsAreAsFastAsPorts) {
  const double bytes = 1 << 30;
  const double port_us = 7.0 / 8 * bytes / 231e3;
  EXPECT_NEAR(
      time_us("nccl", load_topology("dgx-a100"), Collective::alltoall, std::int64_t{1} << 30) /
          port_us,
      1, 0.04);
}

/// A size of 0 is one, and none is another thing: NCCL is then asked about 64 KiB.
TEST(NcclChoices, TellNothingFromNoSize) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("nccl"));
  const AlgorithmChoice choice = parse_algorithm("nccl");
  for (const int ranks : {1, 2, 5, 8}) {
    std::vector<int> gpus;
    for (int gpu = 0; gpu < ranks; ++gpu) gpus.push_back(gpu);
    const Placement placement = place_ranks(router, gpus);
    for (const Collective collective : choice.algorithm->collectives) {
      SCOPED_TRACE(fmt::format("{} of {}", to_string(collective), ranks));
      BuildRequest request = request_for(collective, 0, false, router, placement);
      request.size_bytes = 0;
      const LibraryCall none = library_call(choice, request);
      const std::string text = explain(choice, request);
      EXPECT_TRUE(verify(build(decided(choice, none), request)).ok());
      request.size_bytes = 1;
      EXPECT_EQ(library_call(choice, request).parameters, none.parameters);
      if (ranks == 1) continue;
      EXPECT_NE(text.find(" of 0B on"), std::string::npos) << text;
      request.size_bytes.reset();
      EXPECT_NE(explain(choice, request).find(" of 64KiB on"), std::string::npos);
    }
  }
}

/// nccl-tests prints N/A for an alltoall or sendrecv in place: what one rank receives may not have
/// been sent yet.
TEST(NcclChoices, RefuseExchangesInPlace) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("nccl"));
  const AlgorithmChoice choice = parse_algorithm("nccl");
  const Placement all = place_ranks(router, {});
  const Placement one = place_ranks(router, {3});
  for (const Collective collective : choice.algorithm->collectives) {
    const bool is_exchange =
        collective == Collective::alltoall || collective == Collective::sendrecv;
    BuildRequest request = request_for(collective, 0, true, router, all);
    const std::string refusal =
        is_exchange ? fmt::format("does not support {} in place", to_string(collective)) : "";
    EXPECT_EQ(unsupported(choice, request).value_or(""), refusal);
    request = request_for(collective, 0, true, router, one);
    EXPECT_EQ(unsupported(choice, request).value_or(""), "") << "nothing moves";
  }
}

/// ncclLaunchOneRank of src/device/onerank.cu: cudaMemcpyAsync, and nothing in place. Sends to
/// itself are a kernel's.
TEST(NcclChoices, OfOneRankAreACopy) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("nccl"));
  const Placement placement = place_ranks(router, {0});
  for (const auto& [collective, apart, in_place] :
       {std::tuple(Collective::allreduce, "copy_engine", "copy_engine"),
        {Collective::broadcast, "copy_engine", "copy_engine"},
        {Collective::alltoall, "", "copy_engine"}}) {
    for (const bool is_in_place : {false, true}) {
      const auto built = build_for("nccl", router, placement, collective, 1 << 20, is_in_place);
      ASSERT_TRUE(built);
      EXPECT_EQ(built->call.runtime, is_in_place ? in_place : apart) << to_string(collective);
      EXPECT_EQ(built->program.ops.size(), is_in_place ? 0U : 1U);
    }
  }
}

TEST(NcclChoices, OfAmdHaveOneVersion) {
  const Topology topology = load_topology("mi300x");
  const Router router(topology, topology.profile("nccl"));
  const Placement placement = place_ranks(router, {});
  BuildRequest request = request_for(Collective::allgather, 0, false, router, placement);
  request.size_bytes = 1 << 20;
  for (const char* spec : {"nccl", "nccl:version=2.21"}) {
    const AlgorithmChoice choice = parse_algorithm(spec);
    EXPECT_FALSE(unsupported(choice, request)) << spec;
    const LibraryCall call = library_call(choice, request);
    EXPECT_EQ(call.version, 202105);
    EXPECT_FALSE(call.parameters.contains("version"));
  }
  for (const char* spec : {"nccl:version=2.4", "nccl:version=2.30"}) {
    EXPECT_EQ(unsupported(parse_algorithm(spec), request).value_or(""),
              "is RCCL 2.21.5 on AMD's GPUs, of which no other version is known");
  }
}

TEST(NcclChoices, RefuseWhatNcclDoesNotTake) {
  const Topology topology = load_topology("dgx-a100");
  const Router router(topology, topology.profile("nccl"));
  const Placement placement = place_ranks(router, {});
  const auto why_not = [&](const char* spec, Collective collective) {
    BuildRequest request = request_for(collective, 0, false, router, placement);
    request.size_bytes = 1 << 20;
    return unsupported(parse_algorithm(spec), request).value_or("");
  };
  EXPECT_EQ(why_not("nccl:threads=33,proto=simple", Collective::allreduce),
            "NCCL's blocks have multiples of 32 threads, from 64 to 512 with simple");
  EXPECT_EQ(why_not("nccl:threads=128,proto=ll128", Collective::allreduce),
            "NCCL's blocks have multiples of 32 threads, from 160 to 640 with ll128");
  EXPECT_EQ(why_not("nccl:channels=33,version=2.18", Collective::allreduce),
            "NCCL 2.18 has 32 channels at most");
  EXPECT_EQ(why_not("nccl:version=2.6", Collective::alltoall),
            "sends and receives came with NCCL 2.7");
  EXPECT_EQ(why_not("nccl:threads=256,channels=32", Collective::allreduce), "");
}

/// A hop through shared memory costs NCCL what its tuner counts for one over PCIe, 1.0 us under
/// LL, or as long as its wires where these are longer: 2 x 0.5 us within a socket, 0.3 us more
/// between two. A ring of four on two sockets goes round twice but for two hops, every other one
/// of which is between sockets: 5.5 + 6.6 + 3 x 1.0 + 3 x 1.3 = 19.0 us.
TEST(NcclPrograms, PayOneHopThroughHostMemory) {
  const Topology topology = load_topology("v100-pcie");
  const Router router(topology, topology.profile("nccl:ll"));
  const Placement placement = place_ranks(router, {});
  const auto built = build_for("nccl:version=2.26", router, placement, Collective::allreduce, 8);
  ASSERT_TRUE(built);
  RunOptions options;
  options.size_bytes = 8;
  options.blocks = built->call.blocks;
  Simulator simulator;
  const double time_us = simulator.run(built->program, {&router, placement}, options).time_s * 1e6;
  EXPECT_NEAR(time_us, 19.0, 0.1);
}

TEST(NcclChoices, AreReadByWordsAndVersions) {
  const AlgorithmChoice choice = parse_algorithm("nccl:version=2.18.3,algo=NVLS_tree,proto=LL128");
  EXPECT_EQ(choice.parameters.at("version"), 201803);
  EXPECT_EQ(spec_of(choice), "nccl:algo=nvls_tree,proto=ll128,version=2.18.3");
  EXPECT_EQ(spec_of(parse_algorithm("nccl:version=2.18.5")), "nccl:version=2.18");
  EXPECT_EQ(spec_of(parse_algorithm(spec_of(choice))), spec_of(choice));
  EXPECT_THROW(parse_algorithm("nccl:algo=rings"), Error);
  EXPECT_THROW(parse_algorithm("nccl:version=2.3"), Error);
}

}  // namespace
}  // namespace espalier

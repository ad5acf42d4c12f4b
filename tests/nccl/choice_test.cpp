// SPDX-License-Identifier: Apache-2.0
// What NCCL chooses, by version: the tables of NVIDIA/nccl src/graph/tuning.cc and src/enqueue.cc,
// worked out by hand where arithmetic is shown.
#include "nccl/choice.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/nccl/chooser.h"

namespace espalier {
namespace {

constexpr double kKib = 1024;
constexpr double kMib = 1024 * kKib;

/// The last power of two for which a choice holds, from 1 KiB to 1 GiB.
std::map<std::string, double> last_sizes(const Chooser& chooser, Collective collective,
                                         int version) {
  std::map<std::string, double> last;
  for (double bytes = kKib; bytes <= 1024 * kMib; bytes *= 2) {
    last[chooser.word(collective, bytes, version)] = bytes;
  }
  return last;
}

TEST(NcclChoice, OnEightA100IsLlThenLl128ThenSimple) {
  const Chooser a100("dgx-a100");
  auto last = last_sizes(a100, Collective::allreduce, 10);
  EXPECT_EQ(last.size(), 3U);
  EXPECT_EQ(last["ring ll"], 1 * kMib);
  EXPECT_EQ(last["ring ll128"], 16 * kMib);
  last = last_sizes(a100, Collective::allreduce, 21);
  EXPECT_EQ(last["ring ll"], 2 * kMib) << "since 2.21 LL counts half of the graph, not a quarter";
  EXPECT_EQ(last["ring ll128"], 16 * kMib);
}

TEST(NcclChoice, OnEightV100TurnsEarlier) {
  auto last = last_sizes(Chooser("dgx1-v100"), Collective::allreduce, 10);
  EXPECT_EQ(last["ring ll"], 512 * kKib);
  EXPECT_EQ(last["ring ll128"], 8 * kMib);
  EXPECT_EQ(last.size(), 3U);
}

TEST(NcclChoice, OnEightH100IsNvlsFromTwoMebibytesOn) {
  auto last = last_sizes(Chooser("dgx-h100"), Collective::allreduce, 27);
  EXPECT_EQ(last["ring ll"], 1 * kMib);
  EXPECT_EQ(last["nvls simple"], 1024 * kMib);
  EXPECT_EQ(last.size(), 2U);
  last = last_sizes(Chooser("dgx-h100"), Collective::allreduce, 16);
  EXPECT_FALSE(last.contains("nvls simple")) << "NVLS came with 2.17";
}

TEST(NcclChoice, OfRootedCollectivesIsSimpleFromOneMebibyteOn) {
  const Chooser a100("dgx-a100");
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    EXPECT_EQ(a100.word(collective, 512 * kKib, 10), "ring ll");
    EXPECT_EQ(a100.word(collective, 1 * kMib, 10), "ring simple");
  }
}

TEST(NcclChoice, HasLatenciesOfItsVersion) {
  const Chooser a100("dgx-a100");
  const auto latency_us = [&](int version, NcclProtocol protocol) {
    const NcclChoice choice = a100.choose({Collective::allreduce, kMib, version});
    return a100.cell(choice, NcclAlgorithm::ring, protocol).latency_s * 1e6;
  };
  // base + 14 hops.
  EXPECT_NEAR(latency_us(6, NcclProtocol::ll), 3.6 + 14 * 0.4, 1e-9);
  EXPECT_NEAR(latency_us(10, NcclProtocol::ll), 3.6 + 14 * 0.47, 1e-9);
  EXPECT_NEAR(latency_us(18, NcclProtocol::ll), 6.6 + 14 * 0.6, 1e-9);
  EXPECT_NEAR(latency_us(6, NcclProtocol::ll128), 3.6 + 14 * 2.5, 1e-9);
  EXPECT_NEAR(latency_us(10, NcclProtocol::ll128), 10 + 14 * 1.9, 1e-9);
  EXPECT_NEAR(latency_us(27, NcclProtocol::ll128), 14 + 14 * 1.9, 1e-9);
  EXPECT_NEAR(latency_us(6, NcclProtocol::simple), 8.4 + 14 * 5.7, 1e-9);
  EXPECT_NEAR(latency_us(27, NcclProtocol::simple), 8.4 + 14 * 3.4, 1e-9);
}

TEST(NcclChoice, HasBandwidthsOfItsVersion) {
  const Chooser a100("dgx-a100");
  const auto gbps = [&](int version, NcclAlgorithm algorithm, NcclProtocol protocol) {
    const NcclChoice choice = a100.choose({Collective::allreduce, 1024 * kMib, version});
    return a100.cell(choice, algorithm, protocol).gbps;
  };
  const auto ring = NcclAlgorithm::ring;
  // 2.6: ten channels of 24 are 240, twelve of 21 are 252, of which 235 count on sm80. Times
  // n / 2(n-1) = 4/7.
  EXPECT_NEAR(gbps(6, ring, NcclProtocol::simple), 235 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(gbps(6, ring, NcclProtocol::ll), 235 / 4.0 * 4 / 7, 1e-9);
  EXPECT_NEAR(gbps(6, ring, NcclProtocol::ll128), 100 * 4.0 / 7, 1e-9);
  // 2.10: 12 x 22 = 264, of which 235 count on sm80.
  EXPECT_NEAR(gbps(10, ring, NcclProtocol::simple), 235 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(gbps(10, ring, NcclProtocol::ll), 235 / 4.0 * 4 / 7, 1e-9);
  EXPECT_NEAR(gbps(10, ring, NcclProtocol::ll128), 0.92 * 235 * 4 / 7, 1e-9);
  // 2.18: 12 x 20. 2.21: LL counts half of that, up to 87.7.
  EXPECT_NEAR(gbps(18, ring, NcclProtocol::simple), 240 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(gbps(18, ring, NcclProtocol::ll), 60 * 4.0 / 7, 1e-9);
  EXPECT_NEAR(gbps(21, ring, NcclProtocol::ll), 87.7 * 4 / 7, 1e-9);
  // A tree's factor is 1 at 1 GiB.
  EXPECT_NEAR(gbps(21, NcclAlgorithm::tree, NcclProtocol::simple), 0.92 * 240 / 2, 1e-9);
}

TEST(NcclChoice, CountsNvlsByItsVersion) {
  const Chooser h100("dgx-h100");
  const auto gbps = [&](int version) {
    const NcclChoice choice = h100.choose({Collective::allreduce, 1024 * kMib, version});
    return h100.cell(choice, NcclAlgorithm::nvls, NcclProtocol::simple).gbps;
  };
  EXPECT_NEAR(gbps(21), 8 * 40 * 5 / 6.0, 1e-9);
  EXPECT_NEAR(gbps(27), 8 * 40 * 5 / 6.0, 1e-9);
  // 320 x 0.85 x 7/8 x 2 x 8/14.
  EXPECT_NEAR(gbps(28), 272, 1e-9);
}

TEST(NcclChoice, RulesOutWhatAMachineLacks) {
  const NcclChoice p100 = Chooser("dgx1-p100").choose({Collective::allreduce, kMib, 21});
  for (const NcclCell& cell : p100.cells) {
    if (cell.protocol == NcclProtocol::ll128 && cell.algorithm == NcclAlgorithm::ring) {
      EXPECT_EQ(cell.why_not, "needs sm70 or later");
    }
  }
  const Chooser a100("dgx-a100");
  const NcclChoice forced = a100.choose({Collective::allreduce, kMib, 27, NcclAlgorithm::nvls});
  EXPECT_EQ(forced.why_not, "NCCL 2.27 cannot use nvls with simple here (no NVSwitch combines)");
}

TEST(NcclChoice, DoesWhatTheEnvironmentForces) {
  const Chooser a100("dgx-a100");
  const NcclChoice choice = a100.choose(
      {Collective::allreduce, kMib, 21, NcclAlgorithm::tree, NcclProtocol::simple, 5, 256});
  EXPECT_EQ(choice.algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(choice.protocol, NcclProtocol::simple);
  EXPECT_EQ(choice.work.channels, 5);
  EXPECT_EQ(choice.work.threads, 256);
  // "Tree now uses all threads always" (src/enqueue.cc of 2.22); under Simple 128 of 640 only wait.
  const auto tree = [&](NcclProtocol protocol, int version, int threads) {
    return a100.choose(
        {Collective::allreduce, kKib, version, NcclAlgorithm::tree, protocol, 0, threads});
  };
  EXPECT_EQ(tree(NcclProtocol::simple, 21, 0).work.threads, 64);
  EXPECT_EQ(tree(NcclProtocol::simple, 22, 0).work.threads, 512);
  EXPECT_EQ(tree(NcclProtocol::ll, 22, 0).work.threads, 640);
  EXPECT_EQ(tree(NcclProtocol::ll, 22, 640).why_not, "");
  EXPECT_EQ(tree(NcclProtocol::ll, 22, 512).why_not,
            "NCCL 2.22 has 640 threads for tree with ll, whatever NCCL_NTHREADS says");
}

TEST(NcclChoice, HasOneChannelForEvery32KibibytesUnderLl) {
  const Chooser a100("dgx-a100");
  // 512 threads x 8 bytes x 8 ranks.
  for (const auto& [kib, channels] : std::map<int, int>{{32, 1}, {64, 2}, {512, 16}, {1024, 24}}) {
    const NcclChoice choice =
        a100.choose({Collective::allreduce, kib * kKib, 27, {}, NcclProtocol::ll});
    EXPECT_EQ(choice.work.channels, channels) << kib << " KiB";
    EXPECT_EQ(choice.work.threads, 512);
  }
  const NcclChoice tiny = a100.choose({Collective::allreduce, 8, 27});
  EXPECT_EQ(tiny.work.channels, 1);
  EXPECT_EQ(tiny.work.threads, 64);
}

TEST(NcclChoice, OfNccl24GoesBySizesAlone) {
  const Chooser two("p3dn.24xlarge:nodes=2");
  // Two channels x 256 threads x 16 ranks x 64 bytes, twice between nodes: 1 MiB. Between two nodes
  // its model prefers trees for every size.
  const auto forced = [&](double bytes) {
    return two.choose({Collective::allreduce, bytes, 4, NcclAlgorithm::ring});
  };
  EXPECT_EQ(two.choose({Collective::allreduce, kMib, 4}).algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(forced(kMib).algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(forced(kMib).protocol, NcclProtocol::ll);
  EXPECT_EQ(forced(2 * kMib).protocol, NcclProtocol::simple);
}

TEST(NcclChoice, MakesAlltoallOfSendsAndReceives) {
  const Chooser a100("dgx-a100");
  EXPECT_EQ(a100.word(Collective::alltoall, 64 * kKib, 27), "p2p ll");
  EXPECT_EQ(a100.word(Collective::alltoall, 64 * kMib, 27), "p2p simple");
  const NcclChoice wrong = a100.choose({Collective::alltoall, kMib, 27, NcclAlgorithm::ring});
  EXPECT_EQ(wrong.why_not, "NCCL makes alltoall of sends and receives, not of ring");
}

/// Bytes that one of 8 ranks sends to each, for the last power of two of them under LL.
double last_p2p_ll(const Chooser& chooser, NcclVersion version, double ranks = 8) {
  double last = 0;
  for (double bytes = 1; bytes <= 64 * kMib; bytes *= 2) {
    if (chooser.word(Collective::alltoall, ranks * bytes, version) == "p2p ll") last = bytes;
  }
  return last;
}

/// src/enqueue.cc, NCCL_P2P_LL_THRESHOLD = 16 KiB for a channel: of those in use, which have 64 KiB
/// at least over NVLink then; from 2.22 to 2.28 of all that a pair may have, 32 behind NVSwitches
/// and 2 where it has one link.
TEST(NcclChoice, SendsUnderLlFrom214On) {
  const Chooser a100("dgx-a100");
  EXPECT_EQ(a100.word(Collective::sendrecv, kKib, 7), "p2p simple");
  EXPECT_EQ(last_p2p_ll(a100, 13), 0);
  EXPECT_EQ(last_p2p_ll(a100, 14), 16 * kKib);
  EXPECT_EQ(last_p2p_ll(a100, 21), 16 * kKib);
  EXPECT_EQ(last_p2p_ll(a100, 22), 32 * 16 * kKib);
  EXPECT_EQ(last_p2p_ll(a100, 28), 32 * 16 * kKib);
  EXPECT_EQ(last_p2p_ll(a100, 29), 16 * kKib);
  EXPECT_EQ(last_p2p_ll(a100, 30), 16 * kKib);
  const Chooser v100("dgx1-v100");
  EXPECT_EQ(last_p2p_ll(v100, 21), 16 * kKib);
  EXPECT_EQ(last_p2p_ll(v100, 26), 2 * 16 * kKib);
  const NcclChoice asked = a100.choose({Collective::sendrecv, kKib, 10, {}, NcclProtocol::ll});
  EXPECT_EQ(asked.why_not, "sends and receives have ll since NCCL 2.14");
}

/// scheduleP2pTasksToPlan and calcP2pChunkSize of src/enqueue.cc: 32 blocks for 8 ranks leave every
/// pair 4 channels; twice as many for more than 16 MiB each (32 steps of 512 KiB), up to the 32
/// that a pair may have. From 64 KiB on (an eighth of a step) for each; from 2.22 to 2.28 from 4
/// KiB on. Up to 2.18 a block had 4 sends at most if all ranks sent to all: 4 * 32 / 8 = 16
/// channels.
TEST(NcclChoice, ChannelsOfSends) {
  const Chooser a100("dgx-a100");
  const auto channels = [](const Chooser& chooser, Collective collective, double bytes,
                           int version) {
    return chooser.choose({collective, bytes, version}).work.channels;
  };
  const auto sent = [&](double bytes, int version) {
    return channels(a100, Collective::sendrecv, bytes, version);
  };
  EXPECT_EQ(sent(64 * kKib, 21), 1);
  EXPECT_EQ(sent(128 * kKib, 21), 2);
  EXPECT_EQ(sent(kMib, 21), 4);
  EXPECT_EQ(sent(64 * kMib, 21), 4);
  EXPECT_EQ(sent(65 * kMib, 21), 8);
  EXPECT_EQ(sent(1024 * kMib, 21), 32);
  EXPECT_EQ(sent(1024 * kMib, 18), 16);
  EXPECT_EQ(sent(4 * kKib, 27), 1);
  EXPECT_EQ(sent(16 * kKib, 27), 4);
  EXPECT_EQ(sent(16 * kKib, 30), 1);
  EXPECT_EQ(sent(256 * kKib, 30), 4);
  EXPECT_EQ(channels(a100, Collective::alltoall, 8 * 64 * kMib, 21), 4);
  EXPECT_EQ(channels(a100, Collective::alltoall, 8 * 128 * kMib, 21), 4) << "blocks are full";
  // Two over a network, or one where 16 blocks are too few for 2 * 16 ranks, or 2 * 128 are more
  // than 4 times the blocks.
  const Chooser two("dgx-a100:nodes=2");
  EXPECT_EQ(channels(two, Collective::sendrecv, 1024 * kMib, 27), 2);
  EXPECT_EQ(channels(two, Collective::alltoall, 16 * kMib, 27), 1);
  const Chooser sixteen("dgx-a100:nodes=16");
  EXPECT_EQ(channels(sixteen, Collective::sendrecv, 1024 * kMib, 27), 1);
  // Pairs of one NVLink each.
  const Chooser v100("dgx1-v100");
  EXPECT_EQ(channels(v100, Collective::sendrecv, 1024 * kMib, 27), 2);
}

TEST(NcclChoice, SendsOverNetworksWithoutLl) {
  const Chooser two("dgx-a100:nodes=2");
  EXPECT_EQ(last_p2p_ll(two, 30, 16), 0);
  const NcclChoice asked = two.choose({Collective::alltoall, kKib, 30, {}, NcclProtocol::ll});
  EXPECT_EQ(asked.why_not, "sends and receives over a network have no buffers for ll");
}

TEST(NcclChoice, SaysWhereTheVersionIsOlderThanTheGpus) {
  const auto note = [](const char* machine, int version) {
    return Chooser(machine).choose({Collective::allreduce, kMib, version}).note();
  };
  EXPECT_EQ(note("dgx-h100", 6),
            "NCCL 2.6 is older than these GPUs (sm90): its rules for older ones are applied");
  EXPECT_EQ(note("dgx-h100", 17), "");
  EXPECT_NE(note("dgx-a100", 6), "");
  EXPECT_EQ(note("dgx-a100", 7), "");
  EXPECT_EQ(note("dgx1-v100", 4), "");
  EXPECT_EQ(note("mi300x", 4), "");
  EXPECT_EQ(note("full:n=4", 4), "") << "GPUs of no known model";
}

TEST(NcclChoice, IsRcclsOnGpusOfAmd) {
  const Chooser mi300x("mi300x");
  for (const int version : {4, 17, 30}) {
    const NcclCall call{Collective::allreduce, 64 * kMib, version};
    const NcclChoice choice = mi300x.choose(call);
    EXPECT_EQ(choice.library(), "RCCL 2.21.5");
    const std::string text = explain(call, choice);
    EXPECT_TRUE(text.starts_with("RCCL 2.21.5 for allreduce of 64MiB on 8 ranks, 1 node\n"))
        << text;
    EXPECT_NE(text.find("latency (us)"), std::string::npos) << "2.4 has no table, RCCL has\n"
                                                            << text;
  }
}

/// Between nodes, with the constants of src/graph/tuning.cc: hops of an allreduce over a network
/// are as many as nodes twice (2.12 to 2.22; before and after one less each time round), LL is
/// slower inside nodes up to 2.17, and large messages meet a plateau: 65536 / 16 bytes for every
/// rank up to 2.17, 64 bytes for every rank and channel after.
TEST(NcclChoice, CountsHopsBetweenNodesAsTheLibraryDoes) {
  const Chooser two("dgx-a100:nodes=2");
  const auto latency_us = [&](NcclProtocol protocol, double bytes, int version) {
    const NcclChoice choice =
        two.choose({Collective::allreduce, bytes, version, NcclAlgorithm::ring, protocol});
    return two.cell(choice, NcclAlgorithm::ring, protocol).latency_s * 1e6;
  };
  // 30 hops; 2.10: 2 of them over the network; 2.17: 4.
  EXPECT_NEAR(latency_us(NcclProtocol::ll, 8, 10), 3.6 + 28 * 1.8 * 0.47 + 2 * 2.7, 1e-9);
  EXPECT_NEAR(latency_us(NcclProtocol::ll, 8, 17), 3.6 + 26 * 1.8 * 0.47 + 4 * 2.7, 1e-9);
  // AMD hosts: a post costs 2 us.
  EXPECT_NEAR(latency_us(NcclProtocol::ll, 8, 21), 6.6 + 26 * 2.0 + 4 * 2.7, 1e-9);
  EXPECT_NEAR(latency_us(NcclProtocol::simple, 60e3, 17), 8.4 + 26 * 3.4 + 4 * 9.6, 1e-9);
  EXPECT_NEAR(latency_us(NcclProtocol::simple, 70e3, 17), 1.9 * (8.4 + 26 * 3.4 + 4 * 9.6), 1e-9);
  EXPECT_NEAR(latency_us(NcclProtocol::simple, 70e3, 22), 1.4 * (8.4 + 26 * 6 + 4 * 14), 1e-9);
  EXPECT_NEAR(latency_us(NcclProtocol::simple, 70e3, 27), 1.4 * (8.4 + 28 * 6 + 2 * 14), 1e-9);
}

TEST(NcclChoice, CountsTheNicsThatRanksUse) {
  const Topology topology = load_topology("dgx-a100:nodes=2");
  const Router router(topology, topology.profile("nccl"));
  EXPECT_EQ(nccl_machine(router, place_ranks(router, {})).nics, 8);
  const NcclMachine single = nccl_machine(router, place_ranks(router, {0, 8}));
  EXPECT_EQ(single.nics, 1);
  EXPECT_NEAR(single.nics_gbps, 24, 1);
  EXPECT_EQ(single.node_of_rank, (std::vector<int>{0, 1}));
}

/// 72 ports of 18 x 40.1 GB/s carry one share more than there are heads, of which there are 32: 20
/// GB/s is the first rate of the table with 33 x 20 < 722.
TEST(NcclChoice, HasNoMoreHeadsThanChannels) {
  const Topology topology = load_topology("gb200-nvl72");
  const Router router(topology, topology.profile("nccl"));
  const NcclChoice choice =
      nccl_choice({Collective::allreduce, 64 * kMib, 28}, router, place_ranks(router, {}));
  EXPECT_EQ(choice.algorithm, NcclAlgorithm::nvls);
  EXPECT_EQ(choice.graph.nvls_channels, 32);
  EXPECT_EQ(choice.graph.nvls_rate_gbps, 20);
}

/// Who asks the same question again has the same answer; another question has its own, and so have
/// other ranks.
TEST(NcclChoice, IsKeptForWhoAsksAgain) {
  const Topology topology = load_topology("dgx1-v100");
  const Router router(topology, topology.profile("kernel"));
  const Router under_ll(topology, topology.profile("kernel:ll"));
  const Placement all = place_ranks(router, {});
  const Placement few = place_ranks(router, {0, 1, 2});
  NcclSurvey survey;
  const NcclCall small{Collective::allreduce, 8 * 1024.0};
  const NcclCall large{Collective::allreduce, 64 * kMib};
  const auto first = nccl_choice(small, router, all, survey);
  EXPECT_EQ(nccl_choice(small, under_ll, all, survey), first);
  const auto other = nccl_choice(large, router, all, survey);
  EXPECT_NE(other, first);
  EXPECT_EQ(other->protocol, nccl_choice(large, router, all).protocol);
  const auto of_few = nccl_choice(large, router, few, survey);
  EXPECT_EQ(of_few->machine.ranks, 3);
  EXPECT_EQ(of_few->work.channels, nccl_choice(large, router, few).work.channels);
}

TEST(NcclChoice, LetsReduceHaveAQuarterUnderLl) {
  const Chooser a100("dgx-a100");
  const auto ll_gbps = [&](Collective collective) {
    const NcclChoice choice = a100.choose({collective, kMib, 10, {}, NcclProtocol::ll});
    return a100.cell(choice, NcclAlgorithm::ring, NcclProtocol::ll).gbps;
  };
  // 235 GB/s at most; a quarter, a third.
  EXPECT_NEAR(ll_gbps(Collective::reduce), 235 / 4.0, 1e-9);
  EXPECT_NEAR(ll_gbps(Collective::broadcast), 235 / 3.0, 1e-9);
}

TEST(NcclChoice, ExplainsItsTable) {
  const Chooser h100("dgx-h100");
  const NcclCall call{Collective::allreduce, 64 * kMib, 28};
  const std::string text = explain(call, h100.choose(call));
  for (const char* part :
       {"NCCL 2.28 for allreduce of 64MiB on 8 ranks, 1 node",
        "graph: 12 channels of 30 GB/s, 24 blocks at most, all in one order",
        "NVLS graph: 8 channels of 40 GB/s",
        "  nvls            simple         25.00           272.00       271.72  chosen",
        "  nvls_tree       simple  between nodes only",
        "nvls with simple (the shortest time): 16 channels"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace espalier

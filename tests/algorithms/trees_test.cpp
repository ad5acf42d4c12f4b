// SPDX-License-Identifier: Apache-2.0
// Rounds and bytes of chains and k-nomial trees: the closed forms of "Optimized broadcast for deep
// learning" (OSU 2017), equations 2 to 6, on a machine where nothing contends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "algorithms/schedules.h"
#include "ir/chunk.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using namespace programs;

TEST(KnomialEdges, ReachEveryRankOnceThroughHolders) {
  for (const int k : {2, 3, 4, 7}) {
    for (int n = 1; n <= 70; ++n) {
      SCOPED_TRACE(fmt::format("n = {}, k = {}", n, k));
      std::vector<int> round_of(static_cast<std::size_t>(n), -2);
      round_of[0] = -1;  // holds the message before round 0
      std::set<std::array<int, 3>> sends;
      for (const KnomialEdge& edge : knomial_edges(n, k)) {
        ASSERT_LT(edge.child, n);
        ASSERT_EQ(round_of[static_cast<std::size_t>(edge.child)], -2);
        ASSERT_NE(round_of[static_cast<std::size_t>(edge.parent)], -2);
        EXPECT_LT(round_of[static_cast<std::size_t>(edge.parent)], edge.round);
        EXPECT_LT(edge.round, ceil_log(n, k));
        EXPECT_LT(edge.branch, k - 1);
        EXPECT_TRUE(sends.insert({edge.round, edge.parent, edge.branch}).second);
        round_of[static_cast<std::size_t>(edge.child)] = edge.round;
      }
      EXPECT_EQ(std::count(round_of.begin(), round_of.end(), -2), 0);
    }
  }
}

TEST(KnomialEdges, SpansAreSubtrees) {
  for (int n = 2; n <= 40; ++n) {
    std::vector<int> size(static_cast<std::size_t>(n), 1);
    const std::vector<KnomialEdge> edges = knomial_edges(n, 3);
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      EXPECT_EQ(size[static_cast<std::size_t>(edge->child)], edge->span);
      size[static_cast<std::size_t>(edge->parent)] += edge->span;
    }
  }
}

TEST(Knomial, BroadcastAndReduceTakeCeilLogRounds) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    for (const int k : {2, 3, 4, 8}) {
      for (const int n : {2, 3, 4, 5, 8, 9, 16, 17, 33}) {
        SCOPED_TRACE(fmt::format("{} n = {}, k = {}", to_string(collective), n, k));
        const Program program = make(fmt::format("knomial:k={}", k), request(collective, n, n / 2));
        EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), ceil_log(n, k) * (kAlpha + kBeta));
        EXPECT_EQ(traffic(program).size(), static_cast<std::size_t>(n - 1));
      }
    }
  }
}

TEST(Chain, HopsFromRankToRank) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    const Program program = make("chain", request(collective, 6, 4));
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 5 * (kAlpha + kBeta));
  }
  const Program there_and_back = make("chain", request(Collective::allreduce, 6));
  EXPECT_DOUBLE_EQ(time_s(there_and_back, kAlpha, kBeta), 10 * (kAlpha + kBeta));
}

TEST(PipelinedChain, ChunksFollowOneAnother) {
  // Equation 5: (M/C + n - 2) (t_s + C/B), here with M/C = c chunks.
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    for (const int n : {2, 3, 8}) {
      for (const int c : {1, 2, 5, 32}) {
        SCOPED_TRACE(fmt::format("{} n = {}, {} chunks", to_string(collective), n, c));
        const Program whole = make("pipelined_chain", request(collective, n, 1));
        EXPECT_DOUBLE_EQ(time_s(chunk(whole, {c, 1}), kAlpha, kBeta),
                         (c + n - 2) * (kAlpha + kBeta / c));
      }
    }
  }
}

TEST(PipelinedChain, AllreduceGoesDownWhileLaterChunksComeUp) {
  // 2 (n - 1) hops for the first chunk, one more step for each of the others.
  for (const bool in_place : {false, true}) {
    const Program whole = make("pipelined_chain", request(Collective::allreduce, 5, 0, in_place));
    EXPECT_DOUBLE_EQ(time_s(chunk(whole, {32, 1}), kAlpha, kBeta),
                     (2 * 4 + 31) * (kAlpha + kBeta / 32));
  }
}

TEST(ScatterAllgather, IsEquation4ForAnyCount) {
  for (int n = 2; n <= 40; ++n) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(n);
      const Program program =
          make("scatter_allgather", request(Collective::broadcast, n, n / 2, in_place));
      EXPECT_NEAR(time_s(program, kAlpha, kBeta),
                  (ceil_log(n, 2) + n - 1) * kAlpha + 2.0 * (n - 1) / n * kBeta, 1e-12 * n * n);
      // Nobody is sent a block twice.
      const std::vector<double> received = load(program).received;
      for (int rank = 0; rank < n; ++rank) {
        EXPECT_LE(received[static_cast<std::size_t>(rank)], 1 + 1e-12);
      }
      EXPECT_EQ(received[static_cast<std::size_t>(n / 2)], 0);
    }
  }
}

/// Depth of the binomial tree over 0..n-1: a node is one level under the node without its lowest
/// bit.
int most_bits_set(int n) {
  int maximum = 0;
  for (int node = 0; node < n; ++node) maximum = std::max(maximum, std::popcount(unsigned(node)));
  return maximum;
}

TEST(Binomial, GatherAndScatterTakeLogRounds) {
  for (const Collective collective : {Collective::gather, Collective::scatter}) {
    for (const int n : {2, 3, 4, 5, 8, 9, 16, 17}) {
      for (const bool in_place : {false, true}) {
        SCOPED_TRACE(fmt::format("{} {}", to_string(collective), n));
        // The root of a scatter sends to one child per round; those of a gather all push at once,
        // as soon as their own subtrees are in.
        const Program program = make("binomial", request(collective, n, 0, in_place));
        EXPECT_EQ(rounds(program),
                  collective == Collective::scatter ? ceil_log(n, 2) : most_bits_set(n));
        EXPECT_EQ(traffic(program).size(), static_cast<std::size_t>(n - 1));
        const auto moved =
            collective == Collective::gather ? load(program).received[0] : load(program).sent[0];
        EXPECT_NEAR(moved, (n - 1.0) / n, 1e-12);
      }
    }
  }
}

TEST(Binomial, ASubtreePastTheLastRankIsTwoSlicesAtTheRoot) {
  // Root 6 of 8: positions 0..7 are ranks 6 7 0 1 2 3 4 5. Children of the root: positions 4 (ranks
  // 2..5), 2 (ranks 0, 1), 1 (rank 7): none wraps. Root 5: position 2 is ranks 7, 0: two slices.
  const auto transfers = [](int root) {
    const Program program = make("binomial", request(Collective::scatter, 8, root));
    return std::count_if(program.ops.begin(), program.ops.end(),
                         [&](const Op& op) { return programs::is_remote(program, op); });
  };
  EXPECT_EQ(transfers(6), 7);
  EXPECT_EQ(transfers(5), 8);
}

TEST(HostStagedKnomial, OneRankPerHostStagesOnceAndForwards) {
  // Hosts 0..3 (places 4..7), k = 2. Root to its memory; memory 0 to memory 2 (inner) and to GPU 1
  // (leaf, written at once); memory 2 to GPU 3 (leaf) and to its own GPU 2.
  BuildRequest asked = request(Collective::broadcast, 4);
  use_hosts(asked, 4);
  const std::map<std::pair<PlaceId, PlaceId>, double> expected = {
      {{0, 4}, 1}, {{4, 6}, 1}, {{4, 1}, 1}, {{6, 3}, 1}, {{6, 2}, 1}};
  EXPECT_EQ(traffic(make("host_staged_knomial", asked)), expected);
}

TEST(HostStagedKnomial, IsEquation6WithOneRankPerHost) {
  // One round for the copy to host memory, which the paper counts without start-up.
  for (const int k : {2, 3, 4}) {
    for (const int n : {2, 3, 4, 5, 8, 9, 16, 17}) {
      BuildRequest asked = request(Collective::broadcast, n, n - 1);
      use_hosts(asked, n);
      const Program program = make(fmt::format("host_staged_knomial:k={}", k), asked);
      EXPECT_EQ(rounds(program), 1 + ceil_log(n, k)) << n << " " << k;
    }
  }
}

TEST(HostStagedKnomial, SeveralRanksAreServedAtOnce) {
  // 8 ranks on 2 hosts: to memory, to the other memory, to the GPUs.
  BuildRequest asked = request(Collective::broadcast, 8, 5);
  use_hosts(asked, 2);
  const Program program = make("host_staged_knomial", asked);
  EXPECT_EQ(rounds(program), 3);
  EXPECT_EQ(traffic(program).size(), 1U + 1U + 3U + 4U);
}

}  // namespace
}  // namespace espalier

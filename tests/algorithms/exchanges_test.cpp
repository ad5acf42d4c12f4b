// SPDX-License-Identifier: Apache-2.0
// Steps and bytes of rings, direct exchanges, servers and halving-doubling, counted by hand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/chunk.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using namespace programs;

TEST(Ring, AllreduceTakesTwiceNMinusOneSteps) {
  for (const int n : {2, 3, 4, 5, 8, 13}) {
    SCOPED_TRACE(n);
    const Program program = make("ring", request(Collective::allreduce, n));
    // n ranks, n - 1 combines and n - 1 copies each.
    EXPECT_EQ(program.ops.size(), static_cast<std::size_t>(2 * n * (n - 1)));
    EXPECT_EQ(rounds(program), 2 * (n - 1));
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 2 * (n - 1) * (kAlpha + kBeta / n));
    // All bytes to the next rank: 2 (n - 1) / n of the message.
    const auto sent = traffic(program);
    EXPECT_EQ(sent.size(), static_cast<std::size_t>(n));
    for (const auto& [pair, messages] : sent) {
      EXPECT_EQ(pair.second, (pair.first + 1) % n);
      EXPECT_DOUBLE_EQ(messages, 2.0 * (n - 1) / n);
    }
  }
}

TEST(Ring, TwoDirectionsCarryHalfEach) {
  const int n = 6;
  const Program program = make("ring:directions=2", request(Collective::allreduce, n));
  EXPECT_EQ(program.ops.size(), 4U * n * (n - 1));
  EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 2 * (n - 1) * (kAlpha + kBeta / (2 * n)));
  for (const auto& [pair, messages] : traffic(program)) {
    EXPECT_TRUE(pair.second == (pair.first + 1) % n || pair.first == (pair.second + 1) % n);
    EXPECT_DOUBLE_EQ(messages, 1.0 * (n - 1) / n);
  }
}

TEST(Ring, AllgatherAndReducescatterAreHalfOfAllreduce) {
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    for (const bool in_place : {false, true}) {
      const Program program = make("ring", request(collective, 5, 0, in_place));
      EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 4 * (kAlpha + kBeta / 5));
      for (const double sent : load(program).sent) EXPECT_DOUBLE_EQ(sent, 4.0 / 5);
    }
  }
}

TEST(Ring, BroadcastGoesBothWaysWhenAsked) {
  const Program both = make("ring:directions=2", request(Collective::broadcast, 5, 3));
  // 3 -> 4 -> 0 -> 1 -> 2 and 3 -> 2 -> 1 -> 0 -> 4, half of the message each.
  const std::map<std::pair<PlaceId, PlaceId>, double> expected = {
      {{3, 4}, 0.5}, {{4, 0}, 0.5}, {{0, 1}, 0.5}, {{1, 2}, 0.5},
      {{3, 2}, 0.5}, {{2, 1}, 0.5}, {{1, 0}, 0.5}, {{0, 4}, 0.5}};
  EXPECT_EQ(traffic(both), expected);
  EXPECT_EQ(rounds(both), 4);
}

TEST(Direct, BroadcastIsASerialLoop) {
  const Program program = make("direct", request(Collective::broadcast, 7, 2));
  EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 6 * (kAlpha + kBeta));
  EXPECT_EQ(load(program).sent[2], 6);
}

TEST(Direct, ReduceReadsAsManySourcesAtOnceAsAllowed) {
  const BuildRequest asked = request(Collective::reduce, 8, 5);
  EXPECT_EQ(make("direct", asked).ops.size(), 1U);
  EXPECT_EQ(rounds(make("direct", asked)), 1);
  // 7 remote sources, 3 at once: 3 + 3 + 1.
  EXPECT_EQ(make("direct:at_once=3", asked).ops.size(), 3U);
  EXPECT_EQ(make("direct:at_once=3", asked).sources.size(), 4U + 4U + 2U);
}

TEST(Direct, ExchangesTakeOneRoundPerLaneful) {
  for (const Collective collective : {Collective::allgather, Collective::alltoall}) {
    for (const bool in_place : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(collective), in_place));
      const BuildRequest asked = request(collective, 7, 0, in_place);
      const Program program = make("direct", asked);
      EXPECT_EQ(traffic(program).size(), 42U);  // every ordered pair
      EXPECT_EQ(rounds(program), 1);
      EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), kAlpha + kBeta / 7);
      // 6 peers over 4 lanes: two rounds.
      EXPECT_EQ(rounds(make("direct:at_once=4", asked)), 2);
      EXPECT_EQ(rounds(make("direct:at_once=1", asked)), 6);
    }
  }
}

TEST(Direct, EveryStepOfASerialExchangeMeetsEveryRankOnce) {
  const int n = 6;
  const Program program = make("direct:at_once=1", request(Collective::alltoall, n));
  std::map<PlaceId, int> step;  // transfers sent so far, by rank
  std::map<std::pair<int, PlaceId>, int> arrivals;
  for (const Op& op : program.ops) {
    if (!programs::is_remote(program, op)) continue;
    ++arrivals[{step[op.at]++, op.dst.place}];
  }
  EXPECT_EQ(arrivals.size(), static_cast<std::size_t>((n - 1) * n));
  for (const auto& [key, count] : arrivals) EXPECT_EQ(count, 1);
}

TEST(Direct, SendrecvIsOneTransferPerRank) {
  for (const bool in_place : {false, true}) {
    const Program program = make("direct", request(Collective::sendrecv, 5, 0, in_place));
    EXPECT_EQ(rounds(program), 1);
    for (const auto& [pair, messages] : traffic(program)) {
      EXPECT_EQ(pair.second, (pair.first + 1) % 5);
      EXPECT_EQ(messages, 1);
    }
  }
}

TEST(FlatTwoStage, TakesTwoRoundsAndTheBytesOfARing) {
  for (const bool in_place : {false, true}) {
    const Program program = make("flat_two_stage", request(Collective::allreduce, 8, 0, in_place));
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 2 * (kAlpha + kBeta / 8));
    EXPECT_EQ(program.ops.size(), 8U + 8U * 7U);
    for (const double sent : load(program).sent) EXPECT_DOUBLE_EQ(sent, 2.0 * 7 / 8);
    // Cut in four, the second stage of a piece overlaps the first stage of the next.
    EXPECT_DOUBLE_EQ(time_s(chunk(program, {4, 1}), kAlpha, kBeta), 5 * (kAlpha + kBeta / 32));
  }
}

TEST(AllPairs, TakesOneRound) {
  for (const bool in_place : {false, true}) {
    const Program program = make("all_pairs", request(Collective::allreduce, 8, 0, in_place));
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), kAlpha + kBeta);
    for (const double received : load(program).received) EXPECT_EQ(received, 7);
  }
}

TEST(ParameterServer, OneServerMovesEverything) {
  const int n = 6;
  const Program on_gpu = make("parameter_server", request(Collective::allreduce, n));
  EXPECT_EQ(load(on_gpu).received[0], n - 1);
  EXPECT_EQ(load(on_gpu).sent[0], n - 1);
  EXPECT_DOUBLE_EQ(time_s(on_gpu, kAlpha, kBeta), 2 * (kAlpha + kBeta));

  const Program on_host = make("parameter_server:host=1", request(Collective::allreduce, n));
  EXPECT_EQ(on_host.hosts, 1);
  EXPECT_EQ(load(on_host).received[n], n);
  EXPECT_EQ(load(on_host).sent[n], n);
}

TEST(ParameterServer, ShardsShareTheLoad) {
  const int n = 6;
  const Program on_gpus = make("parameter_server:sharded=1", request(Collective::allreduce, n));
  for (const double sent : load(on_gpus).sent) EXPECT_DOUBLE_EQ(sent, 2.0 * (n - 1) / n);

  BuildRequest asked = request(Collective::allreduce, n);
  use_hosts(asked, 3);
  const Program on_hosts = make("parameter_server:host=1,sharded=1", asked);
  ASSERT_EQ(on_hosts.hosts, 3);
  for (int host = n; host < n + 3; ++host) {
    EXPECT_DOUBLE_EQ(load(on_hosts).received[static_cast<std::size_t>(host)], n / 3.0);
    EXPECT_DOUBLE_EQ(load(on_hosts).sent[static_cast<std::size_t>(host)], n / 3.0);
  }
}

TEST(HalvingDoubling, PowersOfTwoTakeTwiceLog2Rounds) {
  for (const int log : {1, 2, 3, 4, 5}) {
    const int n = 1 << log;
    const Program program = make("halving_doubling", request(Collective::allreduce, n));
    // Halves, quarters, ... and back: 2 (n - 1) / n of the message in 2 log2 n rounds.
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 2 * log * kAlpha + 2.0 * (n - 1) / n * kBeta);
    for (const double sent : load(program).sent) EXPECT_DOUBLE_EQ(sent, 2.0 * (n - 1) / n);
    // Half of the message goes to the neighbour, back and forth.
    EXPECT_DOUBLE_EQ((traffic(program)[{0, 1}]), 1.0);
  }
}

TEST(HalvingDoubling, OtherCountsFoldTheExtraRanks) {
  // 11 = 8 + 3: ranks 1, 3 and 5 hand in a whole message and get one back.
  const Program program = make("halving_doubling", request(Collective::allreduce, 11));
  EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta),
                   2 * (kAlpha + kBeta) + 6 * kAlpha + 2 * 7 / 8.0 * kBeta);
  for (const std::size_t folded : {1U, 3U, 5U}) {
    EXPECT_EQ(load(program).sent[folded], 1);
    EXPECT_EQ(load(program).received[folded], 1);
  }
}

TEST(HalvingDoubling, AllgatherAndReducescatterAreHalfOfIt) {
  for (const Collective collective : {Collective::allgather, Collective::reducescatter}) {
    const Program program = make("halving_doubling", request(collective, 8));
    EXPECT_DOUBLE_EQ(time_s(program, kAlpha, kBeta), 3 * kAlpha + 7 / 8.0 * kBeta);
  }
}

}  // namespace
}  // namespace espalier

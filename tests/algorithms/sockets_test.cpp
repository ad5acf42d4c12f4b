// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom in the algorithms that know sockets, counted by hand.
#include <gtest/gtest.h>

#include "ir/verify.h"
#include "tests/algorithms/programs.h"

namespace espalier {
namespace {

using namespace programs;
using Traffic = std::map<std::pair<PlaceId, PlaceId>, double>;

/// Four ranks, two per host memory. Places 4 and 5 are the host memories.
BuildRequest two_sockets(Collective collective) {
  BuildRequest asked = request(collective, 4);
  use_hosts(asked, 2);
  return asked;
}

TEST(Multipath, OnlyCopiesWithinASocketPassThroughHostMemory) {
  // Every rank sends to the next one: 0 to 1 and 2 to 3 within their sockets.
  const Program program =
      make("multipath:host_share=25,streams=2", two_sockets(Collective::sendrecv));
  EXPECT_EQ(traffic(program), (Traffic{{{0, 1}, 0.75},
                                       {{0, 4}, 0.25},
                                       {{4, 1}, 0.25},
                                       {{1, 2}, 1},
                                       {{2, 3}, 0.75},
                                       {{2, 5}, 0.25},
                                       {{5, 3}, 0.25},
                                       {{3, 0}, 1}}));
}

TEST(Multipath, AWindowIsSoManyMessages) {
  // Each of the four messages has a direct part, and two pieces that go in and out.
  BuildRequest asked = request(Collective::broadcast, 2, 0, true);
  use_hosts(asked, 1);
  const Program program = make("multipath:window=4,streams=2", asked);
  EXPECT_EQ(program.ops.size(), 4U * (1 + 2 * 2));
  EXPECT_EQ(traffic(program), (Traffic{{{0, 1}, 0.75}, {{0, 2}, 0.25}, {{2, 1}, 0.25}}));
  // Scratch for one message of the pair, however many there are.
  EXPECT_EQ(tmp_units(program)[2], program.contract.units);
}

TEST(Multipath, ManyRanksAndMessagesShareLanes) {
  // 69 peers x 64 lanes are more than there are.
  const Program program = make("multipath:host_share=0,window=64,at_once=64",
                               request(Collective::broadcast, 70, 0, true));
  EXPECT_EQ(program.ops.size(), 69U * 64);
  EXPECT_TRUE(verify(program).ok());
}

TEST(FlatTwoStage, SocketsShareTheWayThroughHostMemory) {
  // Everybody sends everybody a quarter to reduce and a quarter of the result.
  const Program program =
      make("flat_two_stage:host_share=50,streams=2", two_sockets(Collective::allreduce));
  const Traffic sent = traffic(program);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a == b) continue;
      EXPECT_DOUBLE_EQ(sent.at({a, b}), a / 2 == b / 2 ? 0.25 : 0.5) << a << " to " << b;
    }
    // Once to the one neighbour to be reduced, once of the result; and the same back.
    EXPECT_DOUBLE_EQ(sent.at({a, 4 + a / 2}), 0.25);
    EXPECT_DOUBLE_EQ(sent.at({4 + a / 2, a}), 0.25);
  }
}

TEST(Hierarchical, LeadersExchangeWhatSocketsReduced) {
  // A message to the leader and one back in each socket. The leaders send each other half a message
  // to reduce and half a result, which are the bytes of the paper's exchange.
  const Program program = make("hierarchical_leaders", two_sockets(Collective::allreduce));
  EXPECT_EQ(
      traffic(program),
      (Traffic{{{1, 0}, 1}, {{0, 1}, 1}, {{3, 2}, 1}, {{2, 3}, 1}, {{0, 2}, 1}, {{2, 0}, 1}}));
}

TEST(Hierarchical, SocketsOfDifferentSizes) {
  // Sockets {0, 3}, {1} and {2, 4, 5}; rank 5's neighbours are not next to it. Three leaders: each
  // gets a third from the two others and sends them a third of the result.
  BuildRequest asked = request(Collective::allreduce, 6);
  asked.hosts = 3;
  asked.host_of_rank = {0, 1, 2, 0, 2, 2};
  for (const char* spec : {"hierarchical_leaders", "hierarchical_leaders:at_once=1"}) {
    const Program program = make(spec, asked);
    EXPECT_TRUE(verify(program).ok());
    const Traffic sent = traffic(program);
    EXPECT_EQ(sent.size(), 6U + 6U);
    for (const auto& [pair, messages] : sent) {
      EXPECT_NEAR(messages, pair.first < 3 && pair.second < 3 ? 2.0 / 3 : 1, 1e-12);
    }
  }
}

TEST(Hierarchical, ManySocketsShareLanes) {
  BuildRequest asked = request(Collective::allreduce, 100);
  use_hosts(asked, 100);
  EXPECT_TRUE(verify(make("hierarchical_leaders:at_once=1024", asked)).ok());
}

TEST(Hierarchical, RefusesRingsWithoutEnd) {
  // A machine with a thousand sockets among a thousand others with one: every part of a thousand
  // would go round a thousand machines.
  BuildRequest asked = request(Collective::allreduce, 2000);
  Placement placement;
  for (int rank = 0; rank < asked.ranks; ++rank) {
    placement.machine_of_rank.push_back(std::max(0, rank - 999));
    asked.host_of_rank.push_back(rank);
  }
  asked.hosts = asked.ranks;
  asked.placement = &placement;
  EXPECT_EQ(
      unsupported(parse_algorithm("hierarchical_leaders"), asked),
      "its program would be too large: there are too many machines, one of which has too many "
      "sockets");
}

TEST(HostReduced, CpusAddUpWhatTheirRanksCopied) {
  // Every rank copies its message in and the result out; two host memories in a ring exchange half
  // a message each way to add and half to keep.
  Traffic expected = {{{4, 5}, 1}, {{5, 4}, 1}};
  for (int rank = 0; rank < 4; ++rank) {
    expected[{rank, 4 + rank / 2}] = 1;
    expected[{4 + rank / 2, rank}] = 1;
  }
  const Program program = make("host_reduced", two_sockets(Collective::allreduce));
  EXPECT_EQ(traffic(program), expected);
  for (const Op& op : program.ops) {
    if (op.src_count > 1) {
      EXPECT_GE(op.at, 4) << "a GPU adds";
    }
  }
}

TEST(HostReduced, NeedsHostMemory) {
  BuildRequest asked = request(Collective::allreduce, 2);
  asked.host_of_rank = {0, -1};
  EXPECT_EQ(unsupported(parse_algorithm("host_reduced"), asked),
            "rank 1 cannot reach a host memory");
  EXPECT_EQ(unsupported(parse_algorithm("hierarchical_leaders:host_ring=1"), asked),
            "rank 1 cannot reach a host memory");
  EXPECT_EQ(unsupported(parse_algorithm("hierarchical_leaders"), asked), std::nullopt);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// A leader for every machine, a chain inside: who sends to whom, and in how many rounds.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tests/algorithms/machines.h"

namespace espalier::programs {
namespace {

using Traffic = std::map<std::pair<PlaceId, PlaceId>, double>;

TEST(TwoLevel, TakesTheRoundsOfBothLevels) {
  // The last leader has the message after ceil(log_k hosts) rounds, or hosts - 1 in a chain; the
  // last of its g ranks g - 1 rounds later.
  for (const int hosts : {1, 2, 3, 4, 8}) {
    for (const int g : {1, 2, 5}) {
      for (const int k : {1, 2, 4}) {
        SCOPED_TRACE(fmt::format("{} hosts of {}, k = {}", hosts, g, k));
        BuildRequest asked = request(Collective::broadcast, hosts * g);
        use_hosts(asked, hosts);
        const Program program = make(fmt::format("two_level:k={}", k), asked);
        EXPECT_EQ(rounds(program), (k == 1 ? hosts - 1 : ceil_log(hosts, k)) + g - 1);
        EXPECT_EQ(traffic(program).size(), static_cast<std::size_t>(hosts * g - 1));
      }
    }
  }
}

TEST(TwoLevel, BeginsWithTheRootWhereverItIs) {
  // Hosts {0, 1, 2}, {3, 4} and {5, 6}, root 4: the hosts follow in the order 1, 2, 0, their
  // leaders are 4, 5 and 0. Of three holders the first serves the third, then the second.
  BuildRequest asked = request(Collective::broadcast, 7, 4);
  asked.hosts = 3;
  asked.host_of_rank = {0, 0, 0, 1, 1, 2, 2};
  EXPECT_EQ(
      traffic(make("two_level", asked)),
      (Traffic{{{4, 0}, 1}, {{4, 5}, 1}, {{4, 3}, 1}, {{5, 6}, 1}, {{0, 1}, 1}, {{1, 2}, 1}}));
  // One after the other: 4 to 5, 5 to 0.
  EXPECT_EQ(
      traffic(make("two_level:k=1", asked)),
      (Traffic{{{4, 5}, 1}, {{5, 0}, 1}, {{4, 3}, 1}, {{5, 6}, 1}, {{0, 1}, 1}, {{1, 2}, 1}}));
}

TEST(TwoLevel, CountsMachinesNotSockets) {
  // A node of KESCH has two sockets with a memory each, and gets the message once.
  Machine machine("kesch:nodes=3", {}, LinkScope::all);
  const Program program = machine.make("two_level", Collective::broadcast, 17);
  expect_right_on(machine, program, true);
  int crossing = 0;
  for (const auto& [pair, messages] : traffic(program)) {
    crossing += machine.placement.machine_of_rank[pair.first] !=
                machine.placement.machine_of_rank[pair.second];
  }
  EXPECT_EQ(crossing, 2);
}

TEST(TwoLevel, PiecesOverlapTheLevels) {
  // Three hosts of two ranks in a chain: 2 hops among leaders and one inside. In p pieces the
  // pipeline takes p + 2 steps of alpha + beta / p.
  BuildRequest asked = request(Collective::broadcast, 6);
  use_hosts(asked, 3);
  const Program program = make("two_level:k=1", asked);
  for (const int pieces : {1, 4, 16}) {
    EXPECT_NEAR(time_s(chunk(program, {pieces, 1}), kAlpha, kBeta),
                (pieces + 2) * (kAlpha + kBeta / pieces), 1e-9);
  }
}

}  // namespace
}  // namespace espalier::programs

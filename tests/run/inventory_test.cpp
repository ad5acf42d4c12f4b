// SPDX-License-Identifier: Apache-2.0
// Processes on hosts and sockets that exist nowhere.
#include "run/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(InventoryOfProcesses, TellsRanksOfASocketOfAHostAndOfOtherHosts) {
  // 2 hosts x 2 sockets x 2 ranks. Sockets have the numbers that Linux gives them.
  const Inventory inventory =
      inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  EXPECT_TRUE(inventory.has_messages);
  EXPECT_EQ(inventory.hosts, 2);
  EXPECT_EQ(inventory.ranks_of_a_host(), 4);
  EXPECT_THAT(inventory.sockets, ElementsAre(0, 0, 1, 1, 0, 0, 1, 1));
  EXPECT_THAT(inventory.ranks_by_socket(), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(inventory.paired_ranks(), ElementsAre(0, 1));
}

TEST(InventoryOfProcesses, TakesSocketsInTurnAndWhateverTheirNumbersAre) {
  const Inventory inventory =
      inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {3, 1, 3, 1, 1, 3, 1, 3});
  EXPECT_THAT(inventory.sockets, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(inventory.ranks_by_socket(), ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(inventory.paired_ranks(), ElementsAre(0, 2));
}

TEST(InventoryOfProcesses, PairsRanksOfTheFirstSocketThatHasTwo) {
  const Inventory uneven = inventory_of_processes({0, 0, 0}, {0, 1, 1});
  EXPECT_THAT(uneven.ranks_by_socket(), ElementsAre(ElementsAre(0), ElementsAre(1, 2)));
  EXPECT_THAT(uneven.paired_ranks(), ElementsAre(1, 2));
  const Inventory alone = inventory_of_processes({0, 0}, {0, 1});
  EXPECT_THAT(alone.paired_ranks(), ElementsAre(0));
}

TEST(InventoryOfProcesses, KnowsOfOneSocketWhereOneRankIsBoundToNone) {
  const Inventory inventory = inventory_of_processes({0, 0, 0, 0}, {0, 0, 1, -1});
  EXPECT_THAT(inventory.sockets, IsEmpty());
  EXPECT_THAT(inventory.ranks_by_socket(), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(inventory_of_processes({0, 0}, {1, 1}).sockets, IsEmpty());
}

TEST(InventoryOfProcesses, HostsNeedAsManyRanksOneAfterTheOther) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 2}, {0, 1, 1}, {0, 1, 0, 1}, {0, 0, 2, 3}, {0, 0, 0, 3, 3}}) {
    const std::vector<int> sockets(hosts.size(), 0);
    EXPECT_THAT(error_of([&] { inventory_of_processes(hosts, sockets); }, ErrorKind::unsupported),
                HasSubstr("with the same number of ranks each"));
  }
}

}  // namespace
}  // namespace espalier

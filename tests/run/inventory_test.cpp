// SPDX-License-Identifier: Apache-2.0
// Processes on hosts and sockets that exist nowhere.
#include "run/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

ProbedProcess on_gpu(int host, const std::string& bus_id, std::vector<bool> can_map = {}) {
  ProbedProcess process;
  process.host = host;
  process.device.name = "GPU " + bus_id;
  process.bus_id = bus_id;
  process.can_map = std::move(can_map);
  return process;
}

TEST(InventoryOfGpuProcesses, HasAGpuForEachRank) {
  const Inventory inventory = inventory_of_gpu_processes(
      {on_gpu(0, "3b", {true, true, false, false}), on_gpu(0, "3c", {true, true, false, false}),
       on_gpu(2, "3b", {false, false, true, false}), on_gpu(2, "3c", {false, false, false, true})});
  EXPECT_TRUE(inventory.has_messages);
  EXPECT_FALSE(inventory.is_host);
  EXPECT_FALSE(inventory.is_shared());
  EXPECT_EQ(inventory.hosts, 2);
  EXPECT_EQ(inventory.ranks(), 4);
  EXPECT_EQ(inventory.ranks_of_a_memory(), 1);
  EXPECT_THAT(inventory.paired_ranks(), ElementsAre(0, 1));  // of the first host
  EXPECT_EQ(inventory.devices[3].name, "GPU 3c");
  EXPECT_EQ(inventory.can_access[0], (std::vector<bool>{true, true, false, false}));
}

TEST(InventoryOfGpuProcesses, AllOfAHostMayShareOne) {
  const Inventory inventory = inventory_of_gpu_processes(
      {on_gpu(0, "3b"), on_gpu(0, "3b"), on_gpu(2, "5e"), on_gpu(2, "5e")});
  EXPECT_TRUE(inventory.is_shared());
  EXPECT_EQ(inventory.sharing, 4);
  EXPECT_EQ(inventory.ranks_of_a_memory(), 2);
  EXPECT_EQ(inventory.devices.size(), 1U);
  EXPECT_THAT(inventory.paired_ranks(), ElementsAre(0, 1));
}

TEST(InventoryOfGpuProcesses, AloneOnItsHostNobodyShares) {
  EXPECT_FALSE(inventory_of_gpu_processes({on_gpu(0, "3b"), on_gpu(1, "3b")}).is_shared());
}

TEST(InventoryOfGpuProcesses, SomeThatShareAreRefused) {
  const auto refused = [](const std::vector<ProbedProcess>& processes) {
    return error_of([&] { inventory_of_gpu_processes(processes); }, ErrorKind::unsupported);
  };
  EXPECT_THAT(refused({on_gpu(0, "1"), on_gpu(0, "1"), on_gpu(0, "2")}),
              HasSubstr("some ranks share a GPU, and others do not"));
  EXPECT_THAT(refused({on_gpu(0, "1"), on_gpu(0, "1"), on_gpu(2, "1"), on_gpu(2, "2")}),
              HasSubstr("some ranks share a GPU, and others do not"));
  EXPECT_THAT(refused({on_gpu(0, "1"), on_gpu(1, "1"), on_gpu(1, "2")}),
              HasSubstr("with the same number of ranks each"));
}

}  // namespace
}  // namespace espalier

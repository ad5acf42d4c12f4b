// SPDX-License-Identifier: Apache-2.0
#include "exec/cuda/wiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Row = std::tuple<int, int, int, int>;

std::vector<Row> bundles(const std::vector<std::string>& bus_ids,
                         const std::vector<std::vector<NvlinkEnd>>& links) {
  std::vector<Row> rows;
  for (const ProbedNvlink& link : bundle_nvlinks(bus_ids, links)) {
    rows.emplace_back(link.device, link.peer, link.count, link.generation);
  }
  return rows;
}

const std::vector<std::string> kThree{"0000:1a:00.0", "0000:1b:00.0", "0000:1c:00.0"};
NvlinkEnd to(const std::string& bus_id, int generation = 2) { return {false, bus_id, generation}; }

TEST(BundleNvlinks, CountsParallelLinksOnce) {
  EXPECT_THAT(bundles(kThree, {{to(kThree[1]), to(kThree[1]), to(kThree[2])},
                               {to(kThree[0]), to(kThree[0])},
                               {to(kThree[0])}}),
              ElementsAre(Row{0, 1, 2, 2}, Row{0, 2, 1, 2}));
}

TEST(BundleNvlinks, BelievesTheEndWithFewerLinks) {
  EXPECT_THAT(bundles(kThree, {{to(kThree[1]), to(kThree[1])}, {to(kThree[0])}, {}}),
              ElementsAre(Row{0, 1, 1, 2}));
  EXPECT_THAT(bundles(kThree, {{}, {to(kThree[0])}, {}}), ElementsAre(Row{0, 1, 1, 2}));
}

TEST(BundleNvlinks, JoinsSwitchesAndForgetsStrangersAndSelves) {
  const NvlinkEnd sw{true, "0000:c4:00.0", 4};
  const NvlinkEnd other{true, "0000:c5:00.0", 4};
  EXPECT_THAT(
      bundles(kThree, {{sw, sw, other}, {sw, to("0000:99:00.0")}, {to(kThree[2])}}),
      ElementsAre(Row{0, ProbedNvlink::kSwitch, 3, 4}, Row{1, ProbedNvlink::kSwitch, 1, 4}));
  EXPECT_THAT(bundles(kThree, {}), IsEmpty());
}

TEST(PcieSwitches, AreTheUpstreamPortsBetweenRootPortAndDevice) {
  EXPECT_THAT(pcie_switches("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/"
                            "0000:3d:00.0"),
              ElementsAre("0000:3b:00.0"));
  EXPECT_THAT(pcie_switches("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/"
                            "0000:3d:00.0/0000:3e:00.0/0000:3f:00.0"),
              ElementsAre("0000:3d:00.0", "0000:3b:00.0"));
  EXPECT_THAT(pcie_switches("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"), IsEmpty());
  EXPECT_THAT(pcie_switches("/sys/devices/pci0000:00/0000:00:05.0"), IsEmpty());
  EXPECT_THAT(pcie_switches(""), IsEmpty());
}

TEST(PcieLink, IsNamedByGenerationAndLanes) {
  EXPECT_EQ(pcie_link(3, 16).kind, "pcie3x16");
  EXPECT_NEAR(pcie_link(3, 16).gbps, 15.75, 0.02);
  EXPECT_NEAR(pcie_link(5, 8).gbps, 31.5, 0.02);
  EXPECT_EQ(pcie_link(9, 16).kind, "");
  EXPECT_EQ(pcie_link(0, 0).gbps, 0);
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/machine_fixture.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

using testing::Builder;
using ::testing::ElementsAre;
using testing::Machine;
using testing::numbered;

std::vector<std::string> names(const Machine& machine, const std::vector<NodeId>& nodes) {
  std::vector<std::string> all;
  for (const NodeId node : nodes) {
    all.push_back(machine.topology().node(node).name);
  }
  return all;
}

TEST(PlaceRanks, NumbersGpusAsTheMachineDoes) {
  const Machine machine("dgx1-v100");
  const Placement placement = place_ranks(machine.router(), {6, 0, 3});
  EXPECT_THAT(names(machine, placement.ranks), ElementsAre("gpu6", "gpu0", "gpu3"));
  EXPECT_THAT(names(machine, placement.hosts), ElementsAre("cpu1", "cpu0"));
  EXPECT_THAT(placement.host_of_rank, ElementsAre(0, 1, 1));
  EXPECT_THAT(placement.machine_of_rank, ElementsAre(0, 0, 0));
}

TEST(PlaceRanks, TakesAllWhenNoneAreNamed) {
  const Machine machine("mist:nodes=2");
  const Placement placement = place_ranks(machine.router(), {});
  EXPECT_THAT(names(machine, placement.ranks),
              ElementsAre("n0.gpu0", "n0.gpu1", "n0.gpu2", "n0.gpu3", "n1.gpu0", "n1.gpu1",
                          "n1.gpu2", "n1.gpu3"));
  EXPECT_THAT(names(machine, placement.hosts),
              ElementsAre("n0.cpu0", "n0.cpu1", "n1.cpu0", "n1.cpu1"));
  EXPECT_THAT(placement.host_of_rank, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(placement.machine_of_rank, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
}

TEST(PlaceRanks, HasNoHostsWhereNoCpuIsReached) {
  const Machine fabric("dgx1-v100", "ideal", LinkScope::fabric);
  const Placement placement = place_ranks(fabric.router(), {0, 1});
  EXPECT_TRUE(placement.hosts.empty());
  EXPECT_THAT(placement.host_of_rank, ElementsAre(-1, -1));
}

TEST(PlaceRanks, RelaysAreGpusBesideTheRanks) {
  const Machine machine("dgx1-v100");
  const Placement placement = place_ranks(machine.router(), {6, 0, 3}, {7, 1});
  EXPECT_THAT(names(machine, placement.ranks), ElementsAre("gpu6", "gpu0", "gpu3"));
  EXPECT_THAT(names(machine, placement.relays), ElementsAre("gpu7", "gpu1"));
  EXPECT_THAT(idle_gpus(machine.topology(), {6, 0, 3}), ElementsAre(1, 2, 4, 5, 7));
  EXPECT_THAT(idle_gpus(machine.topology(), {}), ElementsAre());
}

TEST(PlaceRanks, ReportsEveryWrongRelayWithEveryWrongRank) {
  const Machine machine("p3.8xlarge");
  try {
    place_ranks(machine.router(), {0, 0}, {4, 0, 2, 2});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    ASSERT_EQ(error.diagnostics().size(), 4U);
    EXPECT_EQ(error.diagnostics()[0].message, "GPU 0 is given twice");
    EXPECT_EQ(error.diagnostics()[1].message, "'p3.8xlarge' has no GPU 4 that could relay");
    EXPECT_EQ(error.diagnostics()[1].suggestion, "its GPUs are 0 to 3");
    EXPECT_EQ(error.diagnostics()[2].message, "GPU 0 is a rank, so it cannot be a relay");
    EXPECT_EQ(error.diagnostics()[2].suggestion, "name GPUs that are not ranks");
    EXPECT_EQ(error.diagnostics()[3].message, "relay GPU 2 is given twice");
  }
}

/// On a DGX-1 gpu0 and gpu5 share no NVLink, but both have one to gpu1.
TEST(UnreachablePair, RelaysJoin) {
  const Machine fabric("dgx1-v100", "ideal", LinkScope::fabric);
  EXPECT_EQ(unreachable_pair(fabric.router(), place_ranks(fabric.router(), {0, 5})),
            std::pair(0, 1));
  EXPECT_EQ(unreachable_pair(fabric.router(), place_ranks(fabric.router(), {0, 5}, {1})),
            std::nullopt);
  // One that reaches nobody does no harm.
  EXPECT_EQ(unreachable_pair(fabric.router(), place_ranks(fabric.router(), {0, 1}, {6})),
            std::nullopt);
}

TEST(PlaceRanks, ReportsEveryWrongNumber) {
  const Machine machine("p3.8xlarge");
  try {
    place_ranks(machine.router(), {0, 4, 0, -1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    ASSERT_EQ(error.diagnostics().size(), 3U);
    EXPECT_EQ(error.diagnostics()[0].message, "'p3.8xlarge' has no GPU 4");
    EXPECT_EQ(error.diagnostics()[0].suggestion, "its GPUs are 0 to 3");
    EXPECT_EQ(error.diagnostics()[1].message, "GPU 0 is given twice");
    EXPECT_EQ(error.diagnostics()[2].message, "'p3.8xlarge' has no GPU -1");
  }
}

TEST(UnreachablePair, NothingOnAConnectedMachine) {
  for (const char* spec : {"dgx1-v100", "kesch:nodes=3", "switch:n=16", "p2.16xlarge"}) {
    const Machine machine{std::string(spec)};
    const Placement placement = place_ranks(machine.router(), {});
    EXPECT_EQ(unreachable_pair(machine.router(), placement), std::nullopt) << spec;
  }
}

TEST(UnreachablePair, AChainOfRanksIsEnough) {
  // On the fabric alone GPUs 0 and 7 have no route, but 0-4-7 joins them.
  const Machine machine("dgx1-v100", "ideal", LinkScope::fabric);
  ASSERT_EQ(machine.route("gpu0", "gpu7"), nullptr);
  const auto pair = [&](const std::vector<int>& gpus) {
    return unreachable_pair(machine.router(), place_ranks(machine.router(), gpus));
  };
  EXPECT_EQ(pair({0, 7, 4}), std::nullopt);
  EXPECT_EQ(pair({0, 7}), (std::pair<int, int>{0, 1}));
  EXPECT_EQ(machine.route("gpu1", "gpu4"), nullptr);  // but 1-5-4, and 1-3
  EXPECT_EQ(pair({1, 5, 3, 4}), std::nullopt);
}

TEST(UnreachablePair, NamesTheLowestRankCutOff) {
  const Machine machine("mist", "ideal", LinkScope::fabric);  // two islands: 0 1 and 2 3
  const auto pair = [&](const std::vector<int>& gpus) {
    return unreachable_pair(machine.router(), place_ranks(machine.router(), gpus));
  };
  EXPECT_EQ(pair({}), (std::pair<int, int>{0, 2}));
  EXPECT_EQ(pair({2, 0, 3}), (std::pair<int, int>{0, 1}));
  EXPECT_EQ(pair({2, 3}), std::nullopt);
  EXPECT_EQ(pair({1}), std::nullopt);
}

TEST(UnreachablePair, HandlesAThousandRanks) {
  const Machine ring("ring:n=1024");
  EXPECT_EQ(unreachable_pair(ring.router(), place_ranks(ring.router(), {})), std::nullopt);
  Builder build;  // a ring of 511 and a chain of 513
  std::vector<NodeId> gpus;
  for (int i = 0; i < 1024; ++i) gpus.push_back(build.add(numbered("g", i), NodeKind::gpu));
  for (std::size_t i = 0; i < 511; ++i) {
    build.link(gpus[i], gpus[(i + 1) % 511], LinkClass::gpu_fabric);
  }
  for (std::size_t i = 511; i + 1 < 1024; ++i) {
    build.link(gpus[i], gpus[i + 1], LinkClass::gpu_fabric);
  }
  const Machine split(build.done());
  EXPECT_EQ(unreachable_pair(split.router(), place_ranks(split.router(), {})),
            (std::pair<int, int>{0, 511}));
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
// The hierarchical allreduce on machines of four GPUs around a switch of 100 GB/s, each with a NIC
// of 10 GB/s of its own in a network plane of its own.
#include <fmt/format.h>

#include <cstdio>

#include "tests/oracle/ask.h"
#include "tests/temp_file.h"

namespace espalier::oracle {
namespace {

constexpr double kSwitch = 100e9;
constexpr double kNic = 10e9;
constexpr std::int64_t kM = 240'000'000;

std::string machine_file() {
  const std::string file = temp_file("rails.yaml");
  std::FILE* out = std::fopen(file.c_str(), "w");
  EXPECT_NE(out, nullptr);
  if (out == nullptr) return file;
  std::fputs(R"(schema: espalier.topology/1
name: rails
nodes:
  - {name: "gpu[0-3]", kind: gpu}
  - {name: "nic[0-3]", kind: nic}
  - {name: hub, kind: nvswitch}
  - {name: "net[0-3]", kind: fabric}
links:
  - {a: "gpu[0-3]", b: hub, kind: link, gbps: 100}
  - {a: gpu0, b: nic0, kind: host_link, gbps: 20}
  - {a: gpu1, b: nic1, kind: host_link, gbps: 20}
  - {a: gpu2, b: nic2, kind: host_link, gbps: 20}
  - {a: gpu3, b: nic3, kind: host_link, gbps: 20}
  - {a: nic0, b: net0, kind: link, gbps: 10}
  - {a: nic1, b: net1, kind: link, gbps: 10}
  - {a: nic2, b: net2, kind: link, gbps: 10}
  - {a: nic3, b: net3, kind: link, gbps: 10}
cluster: {nodes: 1, shared: ["net[0-3]"]}
)",
             out);
  std::fclose(out);
  return file;
}

/// Until a machine has added up the second unit of its order, counted in u, a unit over the switch.
/// The first step along the rail waits for it.
double second_unit_u(int nodes, bool is_direct) {
  // Three quarters of all units come in at once: 3 u for every unit of each GPU.
  if (is_direct) return 2 * 3;
  // Units follow each other around the machine in three hops, and the hops under way share what a
  // GPU sends: 1 + 2 + 3 for the first unit, then as many more as hops are under way.
  if (nodes == 2) return 1 + 2 + 2 + 1;
  return nodes == 3 ? 1 + 2 + 3 + 2 : 1 + 2 + 3 + 3;
}

TEST(HierarchicalRails, StagesOverlapUnitByUnit) {
  // A quarter of the message goes around every rail, in 2 (m - 1) steps of a unit, an m-th of it.
  // A unit takes ten times as long there as over the switch, so that machines add up all others
  // meanwhile, and hand out all but the last one, which takes 3 u.
  const std::string machine = machine_file();
  for (const int nodes : {2, 3, 5, 8}) {
    for (const bool is_direct : {false, true}) {
      SCOPED_TRACE(fmt::format("{} machines, direct={}", nodes, is_direct));
      const double u_s = kM / 4.0 / nodes / kSwitch;
      const double across_s = 2.0 * (nodes - 1) / nodes * kM / 4 / kNic;
      expect_time(time_s(fmt::format("{}:nodes={}", machine, nodes), Collective::allreduce,
                         fmt::format("hierarchical:direct={}", is_direct ? 1 : 0), kM),
                  second_unit_u(nodes, is_direct) * u_s + across_s + 3 * u_s);
    }
  }
}

TEST(HierarchicalRails, OneMachineOnlyScattersAndGathers) {
  expect_time(time_s(machine_file(), Collective::allreduce, "hierarchical:direct=1", kM),
              1.5 * kM / kSwitch);
}

TEST(HierarchicalRails, MachinesOfUnlikeSizeAreRefused) {
  Query query = question(machine_file() + ":nodes=2", Collective::allreduce, "hierarchical", kM);
  query.gpus = {0, 1, 2, 4};
  Simulator simulator;
  Study study(simulator, &simulator);
  EXPECT_EQ(study.ask(query).skipped,
            "every machine needs as many ranks as the others, but one has 1 and one 3");
}

TEST(HierarchicalRails, RailsJoinGpusOfThePositionWhateverTheirRanks) {
  // No network joins GPUs that stand at different positions.
  Query query =
      question(machine_file() + ":nodes=2", Collective::allreduce, "hierarchical:direct=1", kM);
  query.gpus = {0, 1, 2, 3, 5, 4, 6, 7};
  expect_time(run(query).time_s, (6 + 3) * kM / 8.0 / kSwitch + kM / 4.0 / kNic);
}

TEST(HierarchicalRails, EqualSubsetsOfMachines) {
  for (const std::vector<int>& gpus :
       {std::vector{1, 3, 7, 5}, std::vector{7, 0, 4, 3}, std::vector{0, 4}}) {
    for (const bool in_place : {false, true}) {
      Query query =
          question(machine_file() + ":nodes=2", Collective::allreduce, "hierarchical", kM);
      query.gpus = gpus;
      query.in_place = in_place;
      query.chunk_bytes = 1'000'000;
      EXPECT_GT(run(query).time_s, 0);  // it is verified on the way
    }
  }
}

}  // namespace
}  // namespace espalier::oracle

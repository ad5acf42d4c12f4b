// SPDX-License-Identifier: Apache-2.0
// Platform files are loaded by SimGrid itself, each in a process of its own, and take as long there
// as the simulator here says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "core/file.h"
#include "formats/format.h"
#include "ir/builder.h"
#include "sim/simulator.h"
#include "tests/error_of.h"
#include "tests/temp_file.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr double kBytes = 1e9;

Written write(const Topology& machine) {
  for (const Format* format : all_formats()) {
    if (format->name == "simgrid-platform") return format->write_machine(machine);
  }
  throw std::logic_error("no such format");
}

using Flow = std::pair<std::string, std::string>;

/// Hosts of a platform, and seconds that flows of kBytes take that begin together.
struct Result {
  std::size_t hosts = 0;
  double time_s = 0;
};

Result load(const std::string& file, const std::vector<Flow>& flows) {
  namespace s4u = simgrid::s4u;
  std::array<std::string, 4> words = {"test", "--log=root.thres:error",
                                      "--cfg=surf/precision:1e-12", "--cfg=maxmin/precision:1e-9"};
  std::array<char*, words.size() + 1> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  int count = static_cast<int>(words.size());
  s4u::Engine engine(&count, arguments.data());
  engine.load_platform(file);
  for (const auto& [from, to] : flows) {
    const auto actor =
        s4u::Actor::create("flow", engine.host_by_name(from), [from = from, to = to] {
          s4u::Comm::sendto(s4u::Host::by_name(from), s4u::Host::by_name(to),
                            static_cast<std::uint64_t>(kBytes));
        });
  }
  engine.run();
  return {engine.get_host_count(), s4u::Engine::get_clock()};
}

/// In a child, since a process has one engine.
Result in_simgrid(const Topology& machine, const std::vector<Flow>& flows) {
  const std::string file = temp_file("simgrid_platform_test.xml");
  write_file(file, write(machine).text);
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // Without what the parent has to clean up, and without its tests.
    try {
      const Result result = load(file, flows);
      _exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  close(ends[1]);
  Result result;
  const auto got = ::read(ends[0], &result, sizeof result);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(got, static_cast<ssize_t>(sizeof result));
  return result;
}

/// The same here: ranks on the ends of the flows, each flow an op.
double here(const Topology& machine, const std::vector<Flow>& flows) {
  const Profile profile = machine.profile("ideal");
  const Router router(machine, profile);
  Placement placement;
  Contract contract;
  contract.collective = Collective::broadcast;
  contract.ranks = static_cast<int>(2 * flows.size());
  contract.units = 1;
  Builder builder("flows", contract);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const int from = static_cast<int>(2 * f), to = from + 1;
    builder.copy(builder.tmp(to, 0, 1), f == 0 ? builder.input(0, 0, 1) : builder.tmp(from, 0, 1));
    placement.ranks.push_back(*machine.find(flows[f].first));
    placement.ranks.push_back(*machine.find(flows[f].second));
  }
  RunOptions options;
  options.size_bytes = static_cast<std::int64_t>(kBytes);
  options.engine = SimEngine::classes;
  return Simulator().run(builder.finish(), {&router, placement}, options).time_s;
}

std::size_t memories(const Topology& machine) {
  return static_cast<std::size_t>(std::ranges::count_if(machine.nodes, [](const Node& node) {
    return node.kind == NodeKind::gpu || node.kind == NodeKind::cpu;
  }));
}

struct Case {
  const char* machine;
  std::vector<Flow> flows;
};

TEST(SimgridPlatform, TakesAsLongInSimGrid) {
  const std::vector<Case> cases = {
      {"dgx1-v100", {{"gpu0", "gpu3"}}},
      {"dgx1-v100", {{"gpu0", "gpu5"}}},                    // staged
      {"dgx1-v100", {{"gpu0", "gpu5"}, {"gpu1", "gpu6"}}},  // over one PCIe link
      {"dgx-a100", {{"gpu0", "gpu7"}, {"gpu1", "gpu7"}}},
      {"dgx-a100", {{"gpu0", "gpu7"}, {"gpu7", "gpu0"}}},  // a direction each
      {"dgx-a100", {{"gpu7", "gpu0"}, {"gpu7", "gpu1"}}},
      {"dgx1-v100", {{"gpu5", "gpu0"}, {"gpu6", "gpu1"}}},  // both down the same PCIe link
      {"mist", {{"gpu0", "gpu2"}, {"gpu3", "gpu1"}}},       // over a half-duplex link
      {"mist:nodes=3", {{"n0.gpu0", "n2.gpu3"}}},
      {"dgx-a100:nodes=16", {{"n3.gpu4", "n9.gpu4"}}},
      {"dgx-a100:nodes=2", {{"n0.gpu0", "n1.gpu0"}, {"n0.gpu0", "n1.gpu1"}}},
      {"gb200-nvl72", {{"n0.gpu0", "n17.gpu3"}, {"n1.gpu0", "n17.gpu3"}}},
      {"gb200-nvl72:nodes=2", {{"n0.cpu0", "n1.gpu1"}}},
      {"torus:forward=1", {{"gpu0", "gpu2"}}},
      {"hosts:n=4", {{"gpu0", "gpu1"}, {"gpu2", "gpu1"}}}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.machine);
    const Topology machine = load_topology(one.machine);
    const Result result = in_simgrid(machine, one.flows);
    EXPECT_EQ(result.hosts, memories(machine));
    const double expected_s = here(machine, one.flows);
    EXPECT_GT(expected_s, 0);
    EXPECT_NEAR(result.time_s / expected_s, 1, 1e-8) << one.flows.front().first;
  }
}

/// Three links of one medium: 12 GB/s for two flows together, and the latency of each.
TEST(SimgridPlatform, MediaAreShared) {
  const Topology machine = parse_topology(R"(schema: espalier.topology/1
name: bus
nodes: [{name: "gpu[0-2]", kind: gpu}, {name: cpu0, kind: cpu}]
links:
  - {a: gpu0, b: cpu0, kind: pcie3x16, gbps: 12, latency_us: 100, duplex: shared, medium: bus}
  - {a: gpu1, b: cpu0, kind: pcie3x16, gbps: 12, duplex: shared, medium: bus}
  - {a: gpu2, b: cpu0, kind: pcie3x16, gbps: 12, duplex: shared, medium: bus}
)",
                                          "bus.yaml");
  EXPECT_NEAR(in_simgrid(machine, {{"gpu0", "cpu0"}}).time_s, 1e-4 + 1.0 / 12, 1e-9);
  EXPECT_NEAR(in_simgrid(machine, {{"gpu1", "cpu0"}, {"gpu2", "cpu0"}}).time_s, 2.0 / 12, 1e-9);
}

TEST(SimgridPlatform, EveryMachineOfTheCatalogueLoads) {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const char* nodes : {"", ":nodes=2"}) {
      SCOPED_TRACE(entry.name + nodes);
      const Topology machine = load_topology(entry.name + nodes);
      EXPECT_EQ(in_simgrid(machine, {}).hosts, memories(machine));
    }
  }
}

TEST(SimgridPlatform, LargeMachinesHaveZonesAndLimits) {
  EXPECT_LT(write(load_topology("dgx-a100:nodes=16")).text.size(), 1'000'000U);
  EXPECT_LT(write(load_topology("gb200-nvl72")).text.size(), 2'500'000U);
  EXPECT_LT(write(load_topology("switch:n=128")).text.size(), 2'500'000U);
  EXPECT_THAT(error_of([] { write(load_topology("switch:n=2000")); }, ErrorKind::unsupported),
              testing::HasSubstr("has 2000 GPUs and CPUs; a platform file holds 1024 at most"));
  EXPECT_THAT(error_of([] { write(load_topology("switch:n=600")); }, ErrorKind::unsupported),
              testing::HasSubstr("a platform file holds 512 at most"));
  const Written written = write(load_topology("dgx-h100"));
  EXPECT_THAT(written.notes, testing::Contains(testing::HasSubstr("profile ideal")));
  EXPECT_THAT(written.notes, testing::Contains(testing::HasSubstr("combine")));
}

}  // namespace
}  // namespace espalier

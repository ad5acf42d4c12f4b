// SPDX-License-Identifier: Apache-2.0
// Surveys of simulated machines, exact and disturbed: the fit must find the machine again, and
// whatever it finds must be one that the loader takes.
#include "probe/fit_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "ir/builder.h"
#include "probe/doubts.h"
#include "probe/figure_check.h"
#include "probe/fit_figures.h"
#include "sim/simulator.h"
#include "tests/exec/test_programs.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kFootprint = std::int64_t{64} << 20;
// What launching a graph takes.
constexpr double kCall_s = 2.3e-6;

/// A machine that exists in the simulator only, as a meter.
struct SimulatedMachine {
  /// A program's launch takes `call_s` beside its ops.
  explicit SimulatedMachine(const std::string& yaml, double call_s = 0)
      : machine(parse_topology(yaml, "simulated.yaml")),
        kernel(machine, op_by_op(machine, call_s)) {}

  Meter meter(bool copy_engines) {
    Meter made;
    made.footprint_bytes = kFootprint;
    made.piece_bytes = kFootprint / 16;
    made.copy_engines = copy_engines;
    made.rounds = rounds;
    made.progress = [this](const std::string&) { ++steps; };
    made.time_s = [this](const Program& program, std::int64_t bytes, CopyMethod method) {
      Router& router = method == CopyMethod::kernel ? kernel : engines;
      RunOptions options;
      options.size_bytes = bytes;
      const bool disturbed = ++calls % disturbed_every == 0;
      const double disturbance =
          (disturbed ? 5 : 1) + noise * std::uniform_real_distribution<>(-1, 1)(random);
      return disturbance *
             simulator.run(program, {&router, place_ranks(router, {})}, options).time_s;
    };
    return made;
  }

  /// A kernel for every op, not one for all: what probing measures.
  static Profile op_by_op(const Topology& machine, double call_s) {
    Profile profile = machine.profile("kernel");
    profile.forget_blocks();
    profile.call_overhead_s = call_s;
    for (auto& [kind, link] : profile.links) {
      if (link.overhead_s > 0) continue;
      link.overhead_s = kind.starts_with("nvlink") ? 3.1e-6 : kind.starts_with("pcie") ? 5e-6 : 0;
    }
    return profile;
  }

  Topology machine;
  Router kernel;
  Router engines{machine, machine.profile("copy_engine")};
  Simulator simulator;
  double noise = 0;
  int disturbed_every = 1 << 30;  ///< one of so many programs takes five times as long
  int calls = 0;
  int rounds = 1;
  std::mt19937 random{7};
  std::size_t steps = 0;
};

Inventory gpus(int count, bool access) {
  Inventory inventory;
  inventory.name = "probed";
  for (int i = 0; i < count; ++i) inventory.devices.emplace_back().name = "TEST GPU";
  const auto size = static_cast<std::size_t>(count);
  inventory.can_access.assign(size, std::vector<bool>(size, access));
  return inventory;
}

/// The fitted machine, as the loader reads what is written.
Topology found(SimulatedMachine& simulated, const Inventory& inventory, bool copy_engines) {
  const Meter meter = simulated.meter(copy_engines);
  const Survey survey = take_survey(inventory, meter);
  EXPECT_EQ(simulated.steps, survey_steps(inventory, meter));
  const Topology fitted = fit_machine(survey, "2026-01-02");
  EXPECT_THAT(check_topology(fitted), IsEmpty());
  return parse_topology(print_topology(fitted), "found.yaml");
}

double allreduce_time_s(const Topology& machine, const Profile& profile) {
  const Router router(machine, profile);
  RunOptions options;
  options.size_bytes = kFootprint;
  const Program program = ring_program(static_cast<int>(machine.gpus().size()), false);
  return Simulator()
      .run(program, {const_cast<Router*>(&router), place_ranks(router, {})}, options)
      .time_s;
}

const Link& link_between(const Topology& machine, const char* a, const char* b) {
  for (const Link& link : machine.links) {
    if (machine.node(link.a).name == a && machine.node(link.b).name == b) return link;
  }
  ADD_FAILURE() << "no link " << a << "-" << b;
  return machine.links.front();
}

constexpr const char* kShared = R"(
schema: espalier.topology/1
name: shared
link_kinds: {memory: {class: gpu_fabric}, host_memory: {class: host}}
memories: {ram: {gbps: 40, reduce_gbps: 10}}
nodes:
  - {name: "gpu[0-3]", kind: gpu, memory: ram, access_gbps: 24, reduce_gbps: 6}
  - {name: hub, kind: nvswitch}
  - {name: cpu0, kind: cpu, memory: ram}
links:
  - {a: "gpu[0-3]", b: hub, kind: memory, gbps: 1000}
  - {a: "gpu[0-3]", b: cpu0, kind: host_memory, gbps: 1000}
profiles:
  kernel:
    local_overhead_us: 2
    links: {memory: {overhead_us: 5}, host_memory: {overhead_us: 3}}
)";

TEST(FitMachine, WhatIsSentIsAddedAfterItHasCome) {
  SimulatedMachine simulated(kShared);
  const Meter meter = simulated.meter(false);
  Survey survey = take_survey(host_inventory(4), meter);
  EXPECT_EQ(fit_machine(survey, "").profile("kernel").reduction, ReductionMode::fused);
  survey.inventory.has_messages = true;
  EXPECT_EQ(fit_machine(survey, "").profile("kernel").reduction, ReductionMode::separate);
}

constexpr const char* kProcesses = R"(
schema: espalier.topology/1
name: processes
link_kinds: {memory: {class: gpu_fabric}, host_memory: {class: host}}
memories:
  ram:
    gbps: 40
    exchange_gbps: {fresh: 12, unchanged: 18, passed_on: 6}
    working_sets:
      - mib: 1
        all: {gbps: 200, exchange_gbps: {fresh: 50, unchanged: 75, passed_on: 20}}
        one: {gbps: 60, exchange_gbps: {fresh: 20, unchanged: 30, passed_on: 8}}
      - mib: 8
        all: {gbps: 100, exchange_gbps: {fresh: 24, unchanged: 36, passed_on: 12}}
        one: {gbps: 40, exchange_gbps: {fresh: 12, unchanged: 18, passed_on: 6}}
nodes:
  - {name: "gpu[0-3]", kind: gpu, memory: ram, access_gbps: 24,
     exchange_gbps: {fresh: 6, unchanged: 9, passed_on: 3}}
  - {name: hub, kind: nvswitch}
  - {name: cpu0, kind: cpu, memory: ram}
links:
  - {a: "gpu[0-3]", b: hub, kind: memory, gbps: 1000}
  - {a: "gpu[0-3]", b: cpu0, kind: host_memory, gbps: 1000}
profiles:
  kernel:
    links:
      memory: {overhead_us: 1,
               longer: [{above_kib: 4, overhead_us: 2}, {above_kib: 32, overhead_us: 3}]}
      host_memory: {overhead_us: 1}
)";

void expect_near(Arrival arrival, const ExchangeRates& found, const ExchangeRates& real,
                 double mib) {
  EXPECT_NEAR(found.of(arrival), real.of(arrival), 0.06 * real.of(arrival))
      << mib << " MiB, " << static_cast<int>(arrival);
}

TEST(FitMachine, FindsCachesAndWhatProcessesExchange) {
  SimulatedMachine simulated(kProcesses);
  Inventory inventory = host_inventory(4);
  inventory.has_messages = true;
  const Topology machine = found(simulated, inventory, false);
  const SharedMemory& memory = machine.memories.begin()->second;
  const Node& node = machine.node(0);
  EXPECT_NEAR(memory.gbps, 40, 2);
  for (const Arrival arrival : {Arrival::unchanged, Arrival::passed_on}) {
    expect_near(arrival, memory.exchange, {12, 18, 6}, 128);
    expect_near(arrival, node.exchange, {6, 9, 3}, 128);
  }
  EXPECT_NEAR(node.access_gbps, 24, 1.2);
  // Half of the footprint, and halves of that down to a quarter of a MiB.
  ASSERT_EQ(memory.working_sets.size(), 8U);
  EXPECT_EQ(memory.working_sets.front().bytes, 0x1p18);
  EXPECT_EQ(memory.working_sets.back().bytes, 0x1p25);
  const SharedMemory& real = simulated.machine.memories.at("ram");
  const MemoryRates own{node.access_gbps, 0, node.exchange};
  for (const double mib : {0.25, 1.0, 3.0, 8.0, 64.0}) {
    const double bytes = mib * 0x1p20;
    const MemoryRates all = memory.all_at(bytes);
    const MemoryRates one = memory.one_at(bytes, own);
    const MemoryRates real_all = real.all_at(bytes);
    const MemoryRates real_one = real.one_at(bytes, {24, 0, {6, 9, 3}});
    EXPECT_NEAR(all.gbps, real_all.gbps, 0.06 * real_all.gbps) << mib;
    EXPECT_NEAR(one.gbps, real_one.gbps, 0.06 * real_one.gbps) << mib;
    for (const Arrival arrival : {Arrival::unchanged, Arrival::passed_on}) {
      expect_near(arrival, all.exchange, real_all.exchange, mib);
      expect_near(arrival, one.exchange, real_one.exchange, mib);
    }
  }
  // A message of 8 KiB, and such of 64 and 512.
  const StartUp start_up = machine.profile("kernel").links.at("memory").start_up();
  EXPECT_NEAR(start_up.of(4096), 1e-6, 0.05e-6);
  EXPECT_NEAR(start_up.of(8192), 2e-6, 0.1e-6);
  EXPECT_NEAR(start_up.of(64 << 10), 3e-6, 0.15e-6);
  EXPECT_NEAR(start_up.of(1 << 20), 3e-6, 0.15e-6);
}

// Where operands are added when they have come, what fetching and adding take less adding is what
// fresh ones take to come.
TEST(FitMachine, FindsWhatProcessesFetchThatIsFresh) {
  SimulatedMachine simulated(std::string(kProcesses) + "    reduction: separate\n");
  Inventory inventory = host_inventory(4);
  inventory.has_messages = true;
  const Topology machine = found(simulated, inventory, false);
  const SharedMemory& memory = machine.memories.begin()->second;
  const SharedMemory& real = simulated.machine.memories.at("ram");
  expect_near(Arrival::fresh, memory.exchange, {12, 18, 6}, 128);
  expect_near(Arrival::fresh, machine.node(0).exchange, {6, 9, 3}, 128);
  for (const double mib : {0.25, 1.0, 3.0, 8.0, 64.0}) {
    const double bytes = mib * 0x1p20;
    expect_near(Arrival::fresh, memory.all_at(bytes).exchange, real.all_at(bytes).exchange, mib);
  }
}

std::vector<std::string> changed_names(const std::vector<CheckedFigure>& figures) {
  std::vector<std::string> names;
  for (const CheckedFigure& figure : figures) {
    if (!figure.has_changed()) continue;
    names.push_back(figure.name + ", MiB: " + std::to_string(figure.bytes >> 20));
  }
  return names;
}

struct ProbedProcesses {
  std::string yaml = std::string(kProcesses) + "    reduction: separate\n";
  SimulatedMachine simulated{yaml};
  Inventory inventory = host_inventory(4);
  Topology machine = [this] {
    inventory.has_messages = true;
    return found(simulated, inventory, false);
  }();
};

TEST(FigureCheck, FindsAMachineAsItWasProbed) {
  ProbedProcesses probed;
  ASSERT_TRUE(can_check(probed.machine, probed.inventory));
  const auto figures =
      check_figures(probed.machine, probed.inventory, probed.simulated.meter(false));
  EXPECT_EQ(figures.size(), 8U);  // four, with 2 MiB and with 32
  for (const CheckedFigure& figure : figures) {
    EXPECT_LT(figure.factor(), 1.1) << figure.name << ", " << figure.bytes;
  }
}

// Memory from which others get what is passed on becomes half as fast in caches, and nothing else.
TEST(FigureCheck, NamesWhatIsNotAsProbed) {
  ProbedProcesses probed;
  std::string yaml = probed.yaml;
  for (const auto& [was, is] :
       {std::pair<std::string, std::string>{"passed_on: 20}", "passed_on: 10}"},
        {"passed_on: 12}", "passed_on: 6}"}}) {
    yaml.replace(yaml.find(was), was.size(), is);
  }
  SimulatedMachine now(yaml);
  const auto figures = check_figures(probed.machine, probed.inventory, now.meter(false));
  EXPECT_THAT(changed_names(figures), testing::ElementsAre("exchange of data passed on, MiB: 2"));
}

TEST(FigureCheck, LooksTwiceAtWhatHasChanged) {
  ProbedProcesses probed;
  // Every second program takes five times as long, but none twice in a row.
  probed.simulated.disturbed_every = 2;
  probed.simulated.calls = 0;
  const auto figures =
      check_figures(probed.machine, probed.inventory, probed.simulated.meter(false));
  EXPECT_THAT(changed_names(figures), IsEmpty());
}

TEST(FigureCheck, NeedsAMachineThatWasProbedWithAsManyRanks) {
  ProbedProcesses probed;
  EXPECT_FALSE(can_check(probed.machine, host_inventory(2)));
  EXPECT_FALSE(can_check(probed.simulated.machine, probed.inventory));  // not probed
  Topology without = probed.machine;
  without.memories.begin()->second.working_sets.clear();
  EXPECT_FALSE(can_check(without, probed.inventory));
}

TEST(FitMachine, FindsTheNetworkBetweenHosts) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: cluster
link_kinds: {memory: {class: gpu_fabric}, host_memory: {class: host}, network: {class: network}}
memories: {ram: {gbps: 40}}
nodes:
  - {name: "gpu[0-3]", kind: gpu, memory: ram, access_gbps: 24}
  - {name: hub, kind: nvswitch}
  - {name: cpu0, kind: cpu, memory: ram}
  - {name: nic0, kind: nic}
  - {name: switch, kind: fabric}
links:
  - {a: "gpu[0-3]", b: hub, kind: memory, gbps: 1000}
  - {a: "gpu[0-3]", b: cpu0, kind: host_memory, gbps: 1000}
  - {a: cpu0, b: nic0, kind: host_memory, gbps: 1000}
  - {a: nic0, b: switch, kind: network, gbps: 3}
cluster: {nodes: 3, shared: [switch]}
profiles:
  kernel:
    local_overhead_us: 2
    links: {memory: {overhead_us: 5}, host_memory: {overhead_us: 3}, network: {overhead_us: 30}}
)");
  Inventory inventory = inventory_of_one_memory("mpi", "processes", 12);
  inventory.hosts = 3;
  const Topology machine = found(simulated, inventory, false);
  EXPECT_EQ(machine.hosts, 3);
  EXPECT_EQ(machine.gpus().size(), 12U);
  EXPECT_EQ(machine.node(machine.gpus()[4]).name, "n1.gpu0");
  const auto network = std::ranges::find(machine.links, "network", &Link::kind);
  ASSERT_NE(network, machine.links.end());
  EXPECT_NEAR(network->gbps, 3, 0.1);
  EXPECT_EQ(network->duplex, Duplex::full);
  EXPECT_NEAR(machine.profile("kernel").links.at("network").overhead_s, 30e-6, 1e-6);
  EXPECT_NEAR(machine.memories.begin()->second.gbps, 40, 2);
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.machine.profile("kernel"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.05 * wanted_s);
}

/// Two hosts of two sockets with two ranks each.
constexpr const char* kSockets = R"(
schema: espalier.topology/1
name: sockets
link_kinds:
  memory: {class: gpu_fabric}
  host_memory: {class: host}
  socket: {class: host}
  network: {class: network}
memories:
  near0: {gbps: 40, exchange_gbps: 12}
  near1: {gbps: 40, exchange_gbps: 12}
nodes:
  - {name: "gpu[0-1]", kind: gpu, numa: 0, memory: near0, access_gbps: 24, exchange_gbps: 8}
  - {name: "gpu[2-3]", kind: gpu, numa: 1, memory: near1, access_gbps: 24, exchange_gbps: 8}
  - {name: "hub[0-1]", kind: nvswitch}
  - {name: cpu0, kind: cpu, numa: 0, memory: near0}
  - {name: cpu1, kind: cpu, numa: 1, memory: near1}
  - {name: "upi[0-1]", kind: pcie_switch}
  - {name: nic0, kind: nic}
  - {name: switch, kind: fabric}
links:
  - {a: "gpu[0-1]", b: hub0, kind: memory, gbps: 1000}
  - {a: "gpu[2-3]", b: hub1, kind: memory, gbps: 1000}
  - {a: "gpu[0-1]", b: cpu0, kind: host_memory, gbps: 1000}
  - {a: "gpu[2-3]", b: cpu1, kind: host_memory, gbps: 1000}
  - {a: "gpu[0-1]", b: upi0, kind: socket, gbps: 5}
  - {a: "gpu[2-3]", b: upi1, kind: socket, gbps: 5}
  - {a: upi0, b: upi1, kind: socket, gbps: 9, duplex: half}
  - {a: "cpu[0-1]", b: nic0, kind: host_memory, gbps: 1000}
  - {a: nic0, b: switch, kind: network, gbps: 3}
cluster: {nodes: 2, shared: [switch]}
profiles:
  kernel:
    reduction: separate
    links:
      memory: {overhead_us: 2}
      host_memory: {overhead_us: 2}
      socket: {overhead_us: 6}
      network: {overhead_us: 30}
)";

TEST(FitMachine, FindsTheSocketsOfHosts) {
  SimulatedMachine simulated(kSockets);
  const Topology machine = found(
      simulated, inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1}), false);
  EXPECT_EQ(machine.hosts, 2);
  const std::vector<NodeId> gpus = machine.gpus();
  ASSERT_EQ(gpus.size(), 8U);
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    const Node& node = machine.node(gpus[rank]);
    EXPECT_EQ(node.numa, rank % 4 < 2 ? 0 : 1);
    EXPECT_EQ(node.memory, rank % 4 < 2 ? "shared0" : "shared1");
    EXPECT_NEAR(node.exchange.gbps, 8, 0.2);
  }
  for (const char* name : {"shared0", "shared1"}) {
    EXPECT_NEAR(machine.memories.at(name).gbps, 40, 2) << name;
    EXPECT_NEAR(machine.memories.at(name).exchange.gbps, 12, 0.3) << name;
  }
  // One rank alone, and all of a socket.
  EXPECT_NEAR(link_between(machine, "n1.gpu1", "n1.socket0").measured_gbps, 5, 0.1);
  EXPECT_EQ(link_between(machine, "n1.gpu1", "n1.socket0").duplex, Duplex::full);
  EXPECT_NEAR(link_between(machine, "n1.socket0", "n1.socket1").measured_gbps, 9, 0.2);
  EXPECT_EQ(link_between(machine, "n1.socket0", "n1.socket1").duplex, Duplex::half);
  const auto& links = machine.profile("kernel").links;
  EXPECT_NEAR(links.at("memory").overhead_s, 2e-6, 0.1e-6);
  EXPECT_NEAR(links.at("socket").overhead_s, 6e-6, 0.1e-6);
  EXPECT_NEAR(links.at("network").overhead_s, 30e-6, 1e-6);
  // What a message takes, by the class of its pair.
  const Router wanted(simulated.machine, simulated.machine.profile("kernel"));
  const Router router(machine, machine.profile("kernel"));
  const auto time_s = [&](const Router& of, int to) {
    Builder builder("copy", {.ranks = 8, .units = 1});
    builder.copy(builder.output(to, 0, 1), builder.input(0, 0, 1));
    RunOptions options;
    options.size_bytes = kFootprint;
    return Simulator()
        .run(builder.finish(), {const_cast<Router*>(&of), place_ranks(of, {})}, options)
        .time_s;
  };
  for (const int to : {1, 2, 4}) {
    EXPECT_NEAR(time_s(router, to), time_s(wanted, to), 0.04 * time_s(wanted, to)) << to;
  }
  EXPECT_LT(1.5 * time_s(router, 1), time_s(router, 2));
  EXPECT_LT(1.5 * time_s(router, 2), time_s(router, 4));
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.machine.profile("kernel"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.05 * wanted_s);
}

TEST(FitMachine, TakesRanksThatAreAloneOnTheirSockets) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: alone
link_kinds: {host_memory: {class: host}, socket: {class: host}}
nodes:
  - {name: "gpu[0-1]", kind: gpu, memory_gbps: 24, access_gbps: 24}
  - {name: "cpu[0-1]", kind: cpu}
links:
  - {a: gpu0, b: cpu0, kind: host_memory, gbps: 1000}
  - {a: gpu1, b: cpu1, kind: host_memory, gbps: 1000}
  - {a: cpu0, b: cpu1, kind: socket, gbps: 5}
profiles:
  kernel: {reduction: separate, links: {host_memory: {overhead_us: 2}, socket: {overhead_us: 6}}}
)");
  const Topology machine = found(simulated, inventory_of_processes({0, 0}, {0, 1}), false);
  EXPECT_EQ(machine.node(machine.gpus()[0]).exchange.gbps, 0);
  EXPECT_EQ(machine.memories.at("shared1").exchange.gbps, 0);
  EXPECT_NEAR(machine.memories.at("shared1").gbps, 24, 1);
  EXPECT_NEAR(link_between(machine, "gpu0", "socket0").measured_gbps, 5, 0.1);
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.machine.profile("kernel"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.05 * wanted_s);
}

TEST(Doubts, NameHostsWhoseRanksAreOnOtherSockets) {
  Survey survey;
  survey.inventory = inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 0, 1, 0, 1});
  EXPECT_THAT(doubts_about(survey),
              testing::ElementsAre(HasSubstr("the ranks of host 1 are on its sockets in another")));
  survey.inventory = inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 1, 1, 0, 0});
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  // Who is not bound to a socket is not on it in another order.
  survey.inventory = inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 0, 0, 1, -1});
  EXPECT_THAT(doubts_about(survey), testing::ElementsAre(HasSubstr(
                                        "the ranks of host 1 are on one socket, or not bound to "
                                        "single ones, other than those of host 0")));
  survey.inventory = inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, -1, 0, 0, 1, 1});
  EXPECT_THAT(doubts_about(survey),
              testing::ElementsAre(HasSubstr("the ranks of host 1 are bound to several sockets")));
}

TEST(Doubts, CompareSocketsThatAreAsLarge) {
  Survey survey;
  const GroupFigures two{.to = {1e-6, 5}, .from = {1e-6, 5}, .all_gbps = 10, .pairs = 2};
  GroupFigures one = two;
  one.all_gbps = 5;
  one.pairs = 1;
  survey.to_sockets = {two, one};
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  one.pairs = 2;
  survey.to_sockets = {two, one};
  EXPECT_THAT(doubts_about(survey), testing::ElementsAre(HasSubstr("sockets 0 and 2, all ranks")));
}

TEST(Doubts, NameCachesThatHoldMuchOfWhatWasProbed) {
  Survey survey;
  survey.inventory = host_inventory(2);
  survey.inventory.cache_bytes = std::int64_t{300} << 20;
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  // Half of what is free, for two.
  survey.inventory.devices[0].free_bytes = std::int64_t{400} << 20;
  EXPECT_THAT(doubts_about(survey),
              testing::ElementsAre(HasSubstr("the caches of a host hold more than half of what")));
}

TEST(Doubts, NameHostsThatAreReachedMoreSlowly) {
  const auto host = [](double gbps, double all_gbps, double latency_s) {
    return GroupFigures{.to = {latency_s, gbps},
                        .from = {latency_s, gbps},
                        .both_gbps = gbps,
                        .all_gbps = all_gbps};
  };
  Survey survey;
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  survey.to_hosts = {host(3, 10, 30e-6), host(2.5, 9, 40e-6)};
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  survey.to_hosts.push_back(host(1.2, 2, 30e-6));
  survey.to_hosts.push_back(host(3, 4, 30e-6));
  survey.to_hosts.push_back(host(3, 10, 90e-6));
  EXPECT_THAT(doubts_about(survey),
              testing::ElementsAre(
                  "between hosts 0 and 3, a rank sends fewer GB/s: 1.2, 3 to another host; the "
                  "topology says what most hosts reach",
                  HasSubstr("hosts 0 and 4, all ranks together send fewer GB/s: 4, 10 to another"),
                  HasSubstr("hosts 0 and 5, a message takes longer to start, in us: 90, 30 to")));
}

TEST(FitMachine, FindsRanksThatShareAMemory) {
  SimulatedMachine simulated(kShared);
  const Topology machine = found(simulated, host_inventory(4), false);
  const auto memory = machine.memories.begin()->second;
  // The grid between the ends has steps of a few percent at most.
  EXPECT_NEAR(memory.gbps, 40, 2);
  EXPECT_NEAR(memory.reduce_gbps, 10, 0.5);
  EXPECT_EQ(machine.gpus().size(), 4U);
  for (const NodeId gpu : machine.gpus()) {
    EXPECT_NEAR(machine.node(gpu).access_gbps, 24, 1.2);
    EXPECT_NEAR(machine.node(gpu).reduce_gbps, 6, 0.3);
  }
  const Profile& kernel = machine.profile("kernel");
  EXPECT_NEAR(kernel.local_overhead_s, 2e-6, 0.01e-6);
  EXPECT_NEAR(kernel.links.at("memory").overhead_s, 5e-6, 0.05e-6);
  EXPECT_NEAR(kernel.links.at("host_memory").overhead_s, 3e-6, 0.05e-6);
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.machine.profile("kernel"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.05 * wanted_s);
}

TEST(FitMachine, StandsNoise) {
  SimulatedMachine simulated(kShared);
  simulated.noise = 0.1;
  const Topology machine = found(simulated, host_inventory(4), false);
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.machine.profile("kernel"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.15 * wanted_s);
}

TEST(FitMachine, StandsDisturbancesThatAreOverInTheNextRound) {
  SimulatedMachine simulated(kShared);
  simulated.disturbed_every = 10;
  simulated.rounds = 3;
  const Topology machine = found(simulated, host_inventory(4), false);
  // A tenth of all programs was disturbed, none in two rounds.
  const int programs = simulated.calls / simulated.rounds;
  EXPECT_NE(programs % 10, 0);
  EXPECT_NE(2 * programs % 10, 0);
  SimulatedMachine undisturbed(kShared);
  EXPECT_EQ(print_topology(machine), print_topology(found(undisturbed, host_inventory(4), false)));
}

TEST(FitMachine, SaysHowMuchRoundsDiffer) {
  SimulatedMachine simulated(kShared);
  simulated.rounds = 3;
  EXPECT_EQ(take_survey(host_inventory(4), simulated.meter(false)).spread, 0);
  // The largest and the least of three errors from -10 % to 10 % are half of that interval apart in
  // the mean.
  simulated.noise = 0.1;
  EXPECT_NEAR(take_survey(host_inventory(4), simulated.meter(false)).spread, 0.1, 0.04);
}

/// A back end whose runs are short, with long waits between them.
class WaitingBackend : public Backend {
 public:
  WaitingBackend(double time_s, double interval_s) : time_s_(time_s), interval_s_(interval_s) {}
  std::string name() const override { return "waiting"; }
  std::optional<std::string> unsupported(const Program&, const Target&) const override {
    return std::nullopt;
  }
  RunReport run(const Program&, const Target&, const RunOptions& options) override {
    runs.push_back(options.iterations);
    RunReport report;
    ExecutedPart& executed = report.executed.emplace();
    executed.median_time_s = time_s_;
    executed.interval_s = interval_s_;
    return report;
  }
  std::vector<int> runs;

 private:
  const double time_s_;
  const double interval_s_;
};

TEST(BackendMeter, FillsItsTimeWithRunsAndTheWaitsBetweenThem) {
  const auto runs_of = [](double time_s, double interval_s) {
    WaitingBackend backend(time_s, interval_s);
    const Meter meter = backend_meter(backend, {.window_s = 0x1p-4});
    EXPECT_EQ(meter.time_s(ring_program(2, false), 1024, CopyMethod::kernel), time_s);
    return backend.runs;
  };
  // A 16th of a second: 64 runs of a 1024th; no more than a thousand; 32 runs with the waits.
  EXPECT_EQ(runs_of(0x1p-10, 0), (std::vector<int>{7, 64}));
  EXPECT_EQ(runs_of(0x1p-20, 0x1p-20), (std::vector<int>{7, 1000}));
  EXPECT_EQ(runs_of(0x1p-20, 0x1p-9), (std::vector<int>{7, 32}));
  // Half of the time is filled already.
  EXPECT_EQ(runs_of(0x1p-20, 0x1p-7), (std::vector<int>{7}));
  EXPECT_EQ(runs_of(0x1p-7, 0), (std::vector<int>{7}));
}

TEST(FitMachine, TakesOneRank) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: one
nodes:
  - {name: gpu0, kind: gpu, memory_gbps: 1000, reduce_gbps: 300}
  - {name: cpu0, kind: cpu}
links: [{a: gpu0, b: cpu0, kind: pcie4x16, gbps: 25}]
)");
  EXPECT_EQ(found(simulated, host_inventory(1), false).gpus().size(), 1U);
  simulated.steps = 0;
  const Topology gpu = found(simulated, gpus(1, true), true);
  EXPECT_NEAR(gpu.nodes[0].memory_gbps, 1000, 30);
  ASSERT_EQ(gpu.links.size(), 1U);
  EXPECT_NEAR(gpu.links[0].measured_gbps, 25 * 0.76, 0.5);  // what the profile reaches
}

/// Eight GPUs, NVLinks in uneven counts between neighbours of two islands, two sockets.
constexpr const char* kUneven = R"(
schema: espalier.topology/1
name: uneven
peer_access: socket
nodes:
  - {name: "gpu[0-3]", kind: gpu, numa: 0, memory_gbps: 800, reduce_gbps: 250}
  - {name: "gpu[4-7]", kind: gpu, numa: 1, memory_gbps: 800, reduce_gbps: 250}
  - {name: "plx[0-1]", kind: pcie_switch}
  - {name: cpu0, kind: cpu, numa: 0}
  - {name: cpu1, kind: cpu, numa: 1}
links:
  - {a: gpu0, b: gpu1, kind: nvlink2, count: 2, gbps: 25}
  - {a: gpu1, b: gpu2, kind: nvlink2, count: 1, gbps: 25}
  - {a: gpu4, b: gpu7, kind: nvlink2, count: 3, gbps: 25}
  - {a: "gpu[0-3]", b: plx0, kind: pcie3x16, gbps: 15.75}
  - {a: "gpu[4-7]", b: plx1, kind: pcie3x16, gbps: 15.75}
  - {a: plx0, b: cpu0, kind: pcie3x16, gbps: 15.75}
  - {a: plx1, b: cpu1, kind: pcie3x16, gbps: 15.75}
  - {a: cpu0, b: cpu1, kind: upi_skylake, gbps: 15}
)";

Inventory uneven_inventory() {
  Inventory inventory = gpus(8, false);
  for (int i = 0; i < 8; ++i) {
    ProbedDevice& device = inventory.devices[static_cast<std::size_t>(i)];
    device.numa = i / 4;
    device.switches = {i < 4 ? "0000:3b:00.0" : "0000:ab:00.0"};
    device.pcie_kind = "pcie3x16";
    device.pcie_gbps = 15.75;
    for (int j = 0; j < 8; ++j) {
      inventory.can_access[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] =
          i / 4 == j / 4;
    }
  }
  inventory.nvlinks = {{0, 1, 2, 2}, {1, 2, 1, 2}, {4, 7, 3, 2}};
  return inventory;
}

TEST(FitMachine, FindsUnevenNvlinksAndThePcieTree) {
  SimulatedMachine simulated(kUneven, kCall_s);
  const Topology machine = found(simulated, uneven_inventory(), true);
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::socket);
  const Link& twice = link_between(machine, "gpu0", "gpu1");
  EXPECT_EQ(twice.kind, "nvlink2");
  EXPECT_EQ(twice.count, 2);
  EXPECT_EQ(twice.gbps, 25);
  // 0.96 of theory by copy engines, 0.853 by kernels, as the profiles say. Latency counts a
  // little.
  EXPECT_NEAR(twice.measured_gbps, 48, 1);
  EXPECT_NEAR(link_between(machine, "gpu4", "gpu7").measured_gbps, 72, 2);
  EXPECT_NEAR(machine.profile("kernel").links.at("nvlink2").efficiency, 0.853, 0.02);
  EXPECT_NEAR(machine.profile("kernel").links.at("nvlink2").overhead_s, 3.1e-6, 0.1e-6);
  EXPECT_NEAR(machine.profile("kernel").call_overhead_s, kCall_s, 0.02 * kCall_s);
  EXPECT_NEAR(machine.profile("copy_engine").call_overhead_s, 0, 1e-15);
  EXPECT_NEAR(machine.profile("copy_engine").links.at("nvlink2").overhead_s, 8.7e-6, 0.1e-6);
  EXPECT_NEAR(link_between(machine, "gpu2", "plx0").measured_gbps, 15.75 * 0.76, 0.5);
  EXPECT_NEAR(machine.nodes[3].memory_gbps, 800, 30);
  for (const char* name : {"kernel", "copy_engine"}) {
    Profile profile = simulated.machine.profile(name);
    if (!profile.protocols.empty())
      profile = SimulatedMachine::op_by_op(simulated.machine, kCall_s);
    const double wanted_s = allreduce_time_s(simulated.machine, profile);
    EXPECT_NEAR(allreduce_time_s(machine, machine.profile(name)), wanted_s, 0.1 * wanted_s) << name;
  }
}

/// Processes with a GPU each: two hosts with two pairs of NVLinks, and a NIC.
TEST(FitMachine, FindsHostsOfGpusAndTheirNetwork) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: gpus
nodes:
  - {name: "gpu[0-3]", kind: gpu, memory_gbps: 800, reduce_gbps: 250}
  - {name: cpu0, kind: cpu}
  - {name: nic0, kind: nic}
  - {name: switch, kind: fabric}
links:
  - {a: gpu0, b: gpu1, kind: nvlink2, count: 2, gbps: 25}
  - {a: gpu2, b: gpu3, kind: nvlink2, count: 2, gbps: 25}
  - {a: gpu0, b: gpu2, kind: nvlink2, count: 1, gbps: 25}
  - {a: gpu1, b: gpu3, kind: nvlink2, count: 1, gbps: 25}
  - {a: "gpu[0-3]", b: cpu0, kind: pcie3x16, gbps: 15.75}
  - {a: cpu0, b: nic0, kind: pcie3x16, gbps: 15.75}
  - {a: nic0, b: switch, kind: ib, gbps: 6}
cluster: {nodes: 2, shared: [switch]}
link_kinds: {ib: {class: network}}
profiles:
  kernel: {reduction: separate, links: {ib: {overhead_us: 20}}}
)",
                             kCall_s);
  Inventory inventory = gpus(8, true);
  inventory.has_messages = true;
  inventory.hosts = 2;
  inventory.nvlinks = {{0, 1, 2, 2}, {2, 3, 2, 2}, {0, 2, 1, 2}, {1, 3, 1, 2}};
  for (ProbedDevice& device : inventory.devices) {
    device.pcie_kind = "pcie3x16";
    device.pcie_gbps = 15.75;
  }
  const Topology machine = found(simulated, inventory, false);
  EXPECT_EQ(machine.hosts, 2);
  ASSERT_EQ(machine.gpus().size(), 8U);
  EXPECT_EQ(machine.node(machine.gpus()[4]).name, "n1.gpu0");
  // As kernels reach, since nothing else copies messages.
  EXPECT_NEAR(link_between(machine, "n1.gpu0", "n1.gpu1").measured_gbps, 50 * 0.853, 1);
  EXPECT_NEAR(link_between(machine, "n0.nic0", "network").measured_gbps, 6, 0.2);
  EXPECT_NEAR(machine.profile("kernel").links.at("network").overhead_s, 20e-6, 1e-6);
  EXPECT_EQ(machine.profile("kernel").reduction, ReductionMode::separate);
  const double wanted_s = allreduce_time_s(simulated.machine, simulated.kernel.profile());
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("kernel")), wanted_s, 0.05 * wanted_s);
}

TEST(Doubts, NameHostsWithOtherGpus) {
  Survey survey;
  survey.inventory = gpus(4, true);
  survey.inventory.hosts = 2;
  EXPECT_THAT(doubts_about(survey), IsEmpty());
  survey.inventory.devices[3].name = "OTHER GPU";
  EXPECT_THAT(doubts_about(survey),
              testing::ElementsAre("rank 3 is on OTHER GPU, and rank 1 of host 0 on TEST GPU; the "
                                   "topology says what host 0 has"));
}

TEST(FitMachine, FindsTwoGpusThatReachEachOtherThroughTheHostAlone) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: staged
peer_access: fabric
nodes:
  - {name: "gpu[0-1]", kind: gpu, numa: 0, memory_gbps: 500, reduce_gbps: 150}
  - {name: cpu0, kind: cpu, numa: 0}
links: [{a: "gpu[0-1]", b: cpu0, kind: pcie4x16, gbps: 31.5}]
)");
  const Topology machine = found(simulated, gpus(2, false), true);
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::fabric);
  const Router router(machine, machine.profile("kernel"));
  EXPECT_EQ(router.route(0, 1)->kind, RouteKind::staged);
  EXPECT_NEAR(machine.profile("copy_engine").staging_overhead_s, 8.6e-6, 0.2e-6);
  const double wanted_s =
      allreduce_time_s(simulated.machine, simulated.machine.profile("copy_engine"));
  EXPECT_NEAR(allreduce_time_s(machine, machine.profile("copy_engine")), wanted_s, 0.1 * wanted_s);
}

TEST(FitMachine, FindsNvswitchesAndEightRanksOnOneGpu) {
  SimulatedMachine simulated(R"(
schema: espalier.topology/1
name: switched
nodes:
  - {name: "gpu[0-3]", kind: gpu, numa: 0, memory_gbps: 3000, reduce_gbps: 1000}
  - {name: switch, kind: nvswitch}
  - {name: cpu0, kind: cpu, numa: 0}
links:
  - {a: "gpu[0-3]", b: switch, kind: nvlink4, count: 18, gbps: 25}
  - {a: "gpu[0-3]", b: cpu0, kind: pcie5x16, gbps: 63}
)");
  Inventory inventory = gpus(4, true);
  for (int gpu = 0; gpu < 4; ++gpu) {
    inventory.nvlinks.push_back({gpu, ProbedNvlink::kSwitch, 18, 4});
  }
  const Topology machine = found(simulated, inventory, true);
  const Link& link = link_between(machine, "gpu0", "nvswitch");
  EXPECT_EQ(link.count, 18);
  EXPECT_NEAR(link.measured_gbps, 450 * 0.83, 10);
  EXPECT_EQ(machine.peer_access, Topology::PeerAccess::all);
  EXPECT_TRUE(machine.nodes[4].combines);  // from the fourth generation on
  for (ProbedNvlink& nvlink : inventory.nvlinks) nvlink.generation = 3;
  EXPECT_FALSE(fit_machine(take_survey(inventory, simulated.meter(false)), "").nodes[4].combines);
  EXPECT_EQ(machine.nodes[0].model, "test-gpu");

  SimulatedMachine one(kShared);
  Inventory shared = gpus(1, true);
  shared.sharing = 4;
  shared.devices[0].pcie_gbps = 63;
  shared.devices[0].name = "NVIDIA H100 80GB HBM3";
  shared.devices[0].place = "GPU 2, PCI 0000:3b:00.0";
  const Topology eight = found(one, shared, true);
  EXPECT_EQ(eight.gpus().size(), 4U);
  EXPECT_EQ(eight.title, "4 ranks on NVIDIA H100 80GB HBM3");
  // As profiles have it, whose figures are by model.
  EXPECT_EQ(eight.nodes[eight.gpus().front()].model, "h100");
  EXPECT_EQ(eight.sources, (std::vector<std::string>{"measured by espalier probe, 2026-01-02",
                                                     "all ranks: GPU 2, PCI 0000:3b:00.0"}));
  EXPECT_EQ(link_between(eight, "port", "cpu0").gbps, 63);
}

TEST(FitMachine, MakesSomethingOfFiguresThatMakeNoSense) {
  for (const double time_s : {0.0, 1e-30, 1e30}) {
    Meter meter;
    meter.footprint_bytes = 1 << 20;
    meter.piece_bytes = 1 << 18;
    meter.copy_engines = true;
    meter.progress = [](const std::string&) {};
    meter.time_s = [&](const Program&, std::int64_t, CopyMethod) { return time_s; };
    for (const Inventory& inventory : {gpus(2, false), host_inventory(2), uneven_inventory()}) {
      const Topology fitted = fit_machine(take_survey(inventory, meter), "today");
      EXPECT_THAT(check_topology(fitted), IsEmpty()) << time_s;
      EXPECT_NO_THROW(parse_topology(print_topology(fitted), "fitted.yaml"));
    }
  }
}

/// As on a machine where something else runs most of the time: a fit of it is poor, and a machine
/// all the same.
TEST(FitMachine, MakesSomethingOfTimesThatAreDisturbedAtRandom) {
  Inventory messages = host_inventory(4);
  messages.has_messages = true;
  Inventory hosts = inventory_of_one_memory("mpi", "processes", 12);
  hosts.hosts = 3;
  Inventory hosts_of_gpus = gpus(8, true);
  hosts_of_gpus.has_messages = true;
  hosts_of_gpus.hosts = 2;
  const std::vector<Inventory> inventories{
      gpus(2, false),
      host_inventory(4),
      messages,
      hosts,
      hosts_of_gpus,
      uneven_inventory(),
      inventory_of_processes({0, 0, 0, 0, 4, 4, 4, 4}, {0, 0, 1, 1, 0, 0, 1, 1})};
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 chance(seed);
  std::lognormal_distribution<double> time_s(std::log(1e-4), 3);
  for (int trial = 0; trial < 100; ++trial) {
    Meter meter;
    meter.footprint_bytes = 1 << 20;
    meter.piece_bytes = 1 << 18;
    meter.copy_engines = trial % 2 == 0;
    meter.progress = [](const std::string&) {};
    meter.time_s = [&](const Program&, std::int64_t, CopyMethod) { return time_s(chance); };
    for (const Inventory& inventory : inventories) {
      const Topology fitted = fit_machine(take_survey(inventory, meter), "today");
      for (const Diagnostic& problem : check_topology(fitted)) {
        FAIL() << "trial " << trial << ": " << problem.message;
      }
      ASSERT_NO_THROW(parse_topology(print_topology(fitted), "fitted.yaml"));
    }
  }
}

TEST(FitMachine, LinksThatShareBothWaysAreHalfDuplex) {
  Link link;
  link.count = 2;
  set_capacity(link, 10, 18, 17, 20);  // 20 together, of 35
  EXPECT_EQ(link.duplex, Duplex::half);
  EXPECT_EQ(link.measured_gbps, 20);
  EXPECT_EQ(link.gbps, 10);
  Link full;
  set_capacity(full, 0, 18, 17, 33);  // theory is not known
  EXPECT_EQ(full.duplex, Duplex::full);
  EXPECT_EQ(full.measured_gbps, 17);
  EXPECT_NEAR(full.gbps, 17, 0.05);
  EXPECT_GE(full.gbps, full.measured_gbps);
  // Both carry as much and the slower decides: 2 x 14, which is all that there could be.
  Link uneven;
  set_capacity(uneven, 0, 25, 14, 28);
  EXPECT_EQ(uneven.duplex, Duplex::full);
  EXPECT_EQ(uneven.measured_gbps, 14);
  Link unknown;
  set_capacity(unknown, 0, 18, 17, 0);  // both at once were not measured
  EXPECT_EQ(unknown.duplex, Duplex::full);
}

TEST(FitMemory, ExplainsCopiesAndCombinesWhateverLimitsThem) {
  // Only additions count: 1 ns each and byte; copies at 2 accesses of 0.1 ns.
  const MemoryRates slow_adds = fit_memory({0.2e-9, {1e-9, 3e-9, 7e-9}});
  EXPECT_NEAR(slow_adds.gbps, 10, 0.5);
  EXPECT_NEAR(slow_adds.reduce_gbps, 1, 0.03);
  // Only accesses count, 0.1 ns each: how fast additions are shows nowhere.
  const MemoryRates fast_adds = fit_memory({0.2e-9, {0.3e-9, 0.5e-9, 0.9e-9}});
  EXPECT_NEAR(fast_adds.gbps, 10, 0.3);
  EXPECT_EQ(fast_adds.reduce_gbps, 0);
  // Nor is it known when the combine of 8 took 4 % more than its accesses: that is noise.
  EXPECT_EQ(fit_memory({0.2e-9, {0.3e-9, 0.5e-9, 0.936e-9}}).reduce_gbps, 0);
  // Additions of 0.15 ns show with 8 operands: 7 x 0.15 = 1.05 ns.
  EXPECT_NEAR(fit_memory({0.2e-9, {0.3e-9, 0.5e-9, 1.05e-9}}).reduce_gbps, 1 / 0.15, 0.3);
}

TEST(FitMemory, StandsAMeasurementThatWasDisturbed) {
  const ArithmeticFigures exact{0.2e-9, {0.3e-9, 0.5e-9, 0.9e-9}};
  for (std::size_t disturbed = 0; disturbed < 4; ++disturbed) {
    ArithmeticFigures figures = exact;
    (disturbed == 3 ? figures.copy_s : figures.combine_s[disturbed]) *= 5;
    EXPECT_NEAR(fit_memory(figures).gbps, 10, 0.5) << disturbed;
  }
}

}  // namespace
}  // namespace espalier

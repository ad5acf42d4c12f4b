// SPDX-License-Identifier: Apache-2.0
// What processes with a GPU each have to probe, and a survey of them, on stand-ins.
#include "exec/mpi_cuda/gpu_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/fit_machine.h"
#include "probe/survey.h"
#include "tests/error_of.h"
#include "tests/exec/on_gpus.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using fake_cuda::Behaviour;
using testing::HasSubstr;

/// What all processes find alike.
Inventory inventory_of(int processes, const Asked& asked) {
  std::optional<Inventory> found;
  with_gpus(processes, asked, [&](const Processes& all) {
    Inventory mine = gpu_inventory(all, asked.choice);
    if (all.transport.process() == 0) found = std::move(mine);
  });
  return found.value();
}

std::string refusal_of_inventory(int processes, const Asked& asked, ErrorKind kind) {
  std::string told;
  with_gpus(processes, asked, [&](const Processes& all) {
    const auto attempt = [&] { gpu_inventory(all, asked.choice); };
    if (all.transport.process() == 0) {
      told = error_of(attempt, kind);
    } else {
      EXPECT_THROW(attempt(), Error);
    }
  });
  return told;
}

TEST(GpuInventory, HasTheGpuOfEachProcess) {
  const auto behaviour = [](int rank) {
    return Behaviour{.model = rank == 1 ? "Other GPU" : "Fake GPU"};
  };
  const Inventory inventory = inventory_of(3, {.behaviour = behaviour});
  ASSERT_EQ(inventory.ranks(), 3);
  EXPECT_EQ(inventory.hosts, 1);
  EXPECT_TRUE(inventory.has_messages);
  EXPECT_EQ(inventory.devices[1].name, "Other GPU");
  EXPECT_THAT(inventory.devices[2].place, HasSubstr("GPU 2, PCI "));
  EXPECT_EQ(inventory.devices[2].free_bytes, 1 << 28);
  EXPECT_TRUE(inventory.can_access[0][2]);  // by CUDA IPC
}

/// The other host's GPUs have their own buses, as this is one computer.
Behaviour on_two_hosts(int rank) {
  return rank < 2 ? Behaviour{} : Behaviour{.buses = {4, 5, 6, 7}};
}

TEST(GpuInventory, KnowsHostsAndWhatGoesThroughTheirMemory) {
  const Inventory two = inventory_of(4, {.behaviour = on_two_hosts, .groups = {0, 0, 2, 2}});
  EXPECT_EQ(two.hosts, 2);
  EXPECT_EQ(two.can_access[0], (std::vector<bool>{false, true, false, false}));
  const Inventory staged = inventory_of(2, {.choice = {.transport = GpuTransport::staged}});
  EXPECT_FALSE(staged.can_access[0][1]);
  const auto refusing = [](int rank) { return Behaviour{.maps_others = rank != 1}; };
  const Inventory half = inventory_of(2, {.behaviour = refusing});
  EXPECT_TRUE(half.can_access[0][1]);
  EXPECT_FALSE(half.can_access[1][0]);
}

TEST(GpuInventory, RanksShareAGpuOrNoneDoes) {
  const Inventory shared = inventory_of(3, {.choice = {.devices = {1, 1, 1}}});
  EXPECT_EQ(shared.sharing, 3);
  EXPECT_THAT(shared.devices.front().place, HasSubstr("GPU 1, PCI "));
  EXPECT_THAT(refusal_of_inventory(3, {.choice = {.devices = {1, 1, 0}}}, ErrorKind::unsupported),
              HasSubstr("some ranks share a GPU, and others do not"));
  const auto two = [](int) { return Behaviour{.gpus = 2}; };
  EXPECT_THAT(refusal_of_inventory(3, {.behaviour = two}, ErrorKind::usage),
              HasSubstr("there are too few GPUs: ranks 0 and 2 would share one"));
  EXPECT_THAT(refusal_of_inventory(2, {.choice = {.devices = {0, 7}}}, ErrorKind::usage),
              HasSubstr("rank 1: there is no GPU 7 on"));
}

TEST(GpuInventory, AllHaveToBeAskedTheSame) {
  in_processes(2, [](const Processes& all) {
    fake_cuda::begin_process();
    fake_cuda::reset({});
    const bool is_first = all.transport.process() == 0;
    const GpuChoice choice{.transport = is_first ? GpuTransport::nccl : GpuTransport::automatic};
    if (is_first) {
      EXPECT_THAT(error_of([&] { gpu_inventory(all, choice); }, ErrorKind::usage),
                  HasSubstr("rank 1"));
    } else {
      EXPECT_THROW(gpu_inventory(all, choice), ToldElsewhere);
    }
  });
}

/// Every program of a survey runs, over every route; what its times are does not matter here.
TEST(GpuInventory, IsSurveyed) {
  const auto on_other_bus = [](int rank) {
    return rank == 0 ? Behaviour{} : Behaviour{.buses = {4, 5, 6, 7}};
  };
  const std::vector<std::pair<int, Asked>> all = {
      {2, {}},
      {2, {.choice = {.transport = GpuTransport::staged}}},
      {2, {.choice = {.devices = {1, 1}}}},
      {2, {.behaviour = on_other_bus, .groups = {0, 1}}},
      {4, {.choice = {.devices = {1, 1, 0, 0}}, .groups = {0, 0, 2, 2}}}};
  for (const auto& [ranks, asked] : all) {
    const Asked& how = asked;
    const auto count = static_cast<std::size_t>(ranks);
    with_gpus(ranks, how, [&](const Processes& processes) {
      const Inventory inventory = gpu_inventory(processes, how.choice);
      MpiBackend backend(processes, make_gpu_memory(processes, how.choice));
      Meter meter;
      meter.footprint_bytes = 1 << 16;
      meter.piece_bytes = 1 << 14;
      meter.time_s = [&](const Program& program, std::int64_t bytes, CopyMethod) {
        const RunOptions once{.size_bytes = bytes, .iterations = 1, .warmup = 0, .check = false};
        return backend.run(program, {}, once).executed->median_time_s;
      };
      std::size_t steps = 0;
      meter.progress = [&](const std::string&) { ++steps; };
      const Survey survey = take_survey(inventory, meter);
      EXPECT_EQ(steps, survey_steps(inventory, meter));
      EXPECT_EQ(survey.network.has_value(), inventory.hosts > 1);
      EXPECT_FALSE(survey.copy_engine.has_value());
      const Topology machine = fit_machine(survey, "today");
      for (const Diagnostic& problem : check_topology(machine)) ADD_FAILURE() << problem.message;
      EXPECT_EQ(machine.gpus().size(), count);
      EXPECT_EQ(machine.profile("kernel").reduction, ReductionMode::separate);
    });
  }
}

}  // namespace
}  // namespace espalier

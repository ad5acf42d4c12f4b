// SPDX-License-Identifier: Apache-2.0
// Processes with a GPU each, played by threads that have a stand-in for CUDA's runtime of their
// own.
#include "exec/mpi_cuda/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/process_memory.h"
#include "tests/error_of.h"
#include "tests/exec/every_type.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/in_processes.h"
#include "tests/exec/on_gpus.h"
#include "tests/exec/test_programs.h"
#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using fake_cuda::Behaviour;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(GpuMemory, EveryTypeAndOperator) {
  expect_every_type_and_operator([](const Program& program, const RunOptions& options) {
    return run_on_gpus(program, options);
  });
}

TEST(GpuMemory, EachProcessHasTheGpuOfItsNumber) {
  const RunReport report =
      run_on_gpus(ring_program(3, true), {.size_bytes = 4 * 1031, .iterations = 3});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_THAT(report.executed->notes,
              ElementsAre("rank 0: node7, GPU 0 (Fake GPU)", "rank 1: node7, GPU 1 (Fake GPU)",
                          "rank 2: node7, GPU 2 (Fake GPU)", "messages from GPU to GPU: CUDA IPC"));
  EXPECT_EQ(report.executed->rank_times_s.size(), 3U);
}

/// As one in a container of its own, which counts itself only.
TEST(GpuMemory, TheLauncherKnowsTheNumberOnTheHost) {
  in_processes(2, [](const Processes& processes) {
    const int rank = processes.transport.process();
    fake_cuda::begin_process();
    fake_cuda::reset({});
    MpiBackend backend(processes, make_gpu_memory(processes, {.local_rank = 3 - rank}));
    const RunReport report = backend.run(ring_program(2, false), {}, {.size_bytes = 1 << 12});
    EXPECT_THAT(report.executed->notes, Contains("rank 0: node7, GPU 3 (Fake GPU)"));
    EXPECT_THAT(report.executed->notes, Contains("rank 1: node7, GPU 2 (Fake GPU)"));
  });
}

TEST(GpuMemory, RanksMayShareAGpuThatIsNamed) {
  const RunReport report = run_on_gpus(tree_program(4, false), {.size_bytes = 4 * 1031},
                                       {.choice = {.devices = {2, 2, 0, 2}}});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_EQ(report.executed->notes.front(), "ranks 0-1: node7, GPU 2 (Fake GPU)");
}

TEST(GpuMemory, AMachineSaysWhichGpuARankHas) {
  const Topology topology = load_topology("dgx1-v100");
  const Router router(topology, topology.profile("kernel"));
  Asked asked{.choice = {.as_placed = true}, .behaviour = [](int) { return Behaviour{.gpus = 8}; }};
  asked.target = {&router, place_ranks(router, {5, 2}), nullptr};
  EXPECT_THAT(run_on_gpus(ring_program(2, false), {.size_bytes = 1 << 12}, asked).executed->notes,
              ElementsAre("rank 0: node7, GPU 5 (Fake GPU)", "rank 1: node7, GPU 2 (Fake GPU)",
                          "messages from GPU to GPU: CUDA IPC",
                          HasSubstr("was not checked: there is no NVML")));
  asked.behaviour = [](int) { return Behaviour{.gpus = 3}; };
  EXPECT_THAT(refusal(2, asked, ErrorKind::usage), HasSubstr("rank 0: there is no GPU 5 on node7"));
}

TEST(GpuMemory, TransportsAreThoseAskedFor) {
  const auto route_of = [](GpuTransport transport, bool takes_gpu_memory) {
    const RunReport report =
        run_on_gpus(ring_program(2, false), {.size_bytes = 1 << 12},
                    {.choice = {.transport = transport}, .takes_gpu_memory = takes_gpu_memory});
    EXPECT_EQ(report.executed->wrong, 0);
    return report.executed->notes.back();
  };
  EXPECT_EQ(route_of(GpuTransport::staged, true), "messages from GPU to GPU: pinned memory");
  EXPECT_EQ(route_of(GpuTransport::mpi, true), "messages from GPU to GPU: MPI on GPU memory");
  EXPECT_THAT(refusal(2, {.choice = {.transport = GpuTransport::mpi}}, ErrorKind::unsupported),
              HasSubstr("this library of MPI does not take GPU memory"));
}

/// A pinned piece is smaller than the message, and a block that is mapped larger.
TEST(GpuMemory, LargeMessagesGoByEveryRoute) {
  for (const GpuTransport transport : {GpuTransport::automatic, GpuTransport::staged}) {
    const RunReport report = run_on_gpus(ring_program(2, false), {.size_bytes = (5 << 20) + 4},
                                         {.choice = {.transport = transport}});
    EXPECT_EQ(report.executed->wrong, 0);
  }
}

TEST(GpuMemory, WhatCannotBeMappedGoesThroughPinnedMemory) {
  const auto refusing = [](int rank) { return Behaviour{.maps_others = rank != 1}; };
  const RunReport report =
      run_on_gpus(ring_program(3, false), {.size_bytes = 1 << 12}, {.behaviour = refusing});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_THAT(report.executed->notes,
              Contains("messages from GPU to GPU: CUDA IPC (4 pairs), pinned memory (2 pairs)"));
  EXPECT_THAT(report.executed->notes.back(),
              HasSubstr("rank 1 cannot map the memory of rank 0: cudaIpcOpenMemHandle on GPU 1"));
}

TEST(GpuMemory, ProgramsWithHostMemoriesMapNothing) {
  const RunReport report = run_on_gpus(flat_program(3, false), {.size_bytes = 4 * 1031});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_EQ(report.executed->notes.back(), "messages from GPU to GPU: pinned memory");
}

TEST(GpuMemory, WrongElementsAreCountedByGpus) {
  Builder builder("forgetful", test_contract(Collective::allgather, 3, 3));
  for (int to = 0; to < 3; ++to) {
    for (int from = 0; from < 2; ++from) {
      builder.copy(builder.output(to, from, 1), builder.input(from, 0, 1));
    }
  }
  const RunReport report = run_on_gpus(builder.finish(), {.size_bytes = 3 * 100 * 4});
  EXPECT_EQ(report.executed->wrong, 2 * 3 * 100);  // in both checks
}

TEST(GpuMemory, TooFewGpusAreRefused) {
  const auto two = [](int) { return Behaviour{.gpus = 2}; };
  EXPECT_THAT(refusal(3, {.behaviour = two}, ErrorKind::usage),
              HasSubstr("there are too few GPUs: ranks 0 and 2 would share one (node7, GPU 0"));
}

TEST(GpuMemory, AProcessWithoutAGpuIsNamed) {
  const auto driverless = [](int rank) {
    return Behaviour{.driver_version = rank == 2 ? 0 : 99000};
  };
  EXPECT_THAT(refusal(3, {.behaviour = driverless}, ErrorKind::unsupported),
              HasSubstr("rank 2: there is no NVIDIA driver on this computer"));
}

TEST(GpuMemory, DevicesHaveToExistAndToBeAsManyAsProcesses) {
  EXPECT_THAT(refusal(2, {.choice = {.devices = {0, 9}}}, ErrorKind::usage),
              HasSubstr("rank 1: there is no GPU 9 on node7\n  help: it has GPUs 0 to 3"));
  EXPECT_THAT(refusal(2, {.choice = {.devices = {0, 1, 2}}}, ErrorKind::usage),
              HasSubstr("--devices names 3 GPUs for 2 processes"));
}

/// Counted before, or found out when it is allocated: nobody runs.
TEST(GpuMemory, AProcessThatLacksMemoryIsNamed) {
  const auto small = [](int rank) {
    return Behaviour{.memory_bytes = std::size_t{rank == 1 ? 1U : 256U} << 20};
  };
  EXPECT_THAT(refusal(3, {.behaviour = small}, ErrorKind::unsupported),
              HasSubstr("rank 1: a message of 4KiB needs"));
  const auto unpinned = [](int rank) {
    return Behaviour{.pinned_bytes = rank == 2 ? 1U << 20 : 1U << 28};
  };
  EXPECT_THAT(refusal(3, {.choice = {.transport = GpuTransport::staged}, .behaviour = unpinned},
                      ErrorKind::unsupported),
              HasSubstr("rank 2: cudaHostAlloc on GPU 2"));
}

TEST(GpuMemory, OtherMemoryOrTransportIsNoticed) {
  in_processes(3, [&](const Processes& processes) {
    const int rank = processes.transport.process();
    fake_cuda::begin_process();
    fake_cuda::reset({});
    GpuChoice choice;
    if (rank == 2) choice.transport = GpuTransport::staged;
    MpiBackend backend(
        processes, rank == 1 ? make_host_memory(processes) : make_gpu_memory(processes, choice));
    const auto attempt = [&] { backend.run(ring_program(3, false), {}, {.size_bytes = 1 << 12}); };
    if (rank > 0) {
      EXPECT_THROW(attempt(), ToldElsewhere);
      return;
    }
    EXPECT_THAT(error_of(attempt, ErrorKind::usage),
                HasSubstr("ranks 1, 2 have another memory or transport than rank 0"));
  });
}

}  // namespace
}  // namespace espalier

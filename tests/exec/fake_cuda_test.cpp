// SPDX-License-Identifier: Apache-2.0
// exec/cuda/ on a stand-in for CUDA: what it asks CUDA for, and what it makes of the answers. The
// tests of cuda_backend_test.cpp run on it too.
#include "tests/exec/fake_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/cuda_inventory.h"
#include "exec/cuda/session.h"
#include "probe/fit_machine.h"
#include "tests/error_of.h"
#include "tests/exec/test_programs.h"
#include "topologies/load.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// For the tests of the other file, which know nothing of this one.
[[maybe_unused]] const bool kReady = [] {
  fake_cuda::reset({});
  return true;
}();

class FakeCuda : public testing::Test {
 protected:
  ~FakeCuda() override {
    EXPECT_EQ(fake_cuda::live_objects(), 0);
    fake_cuda::reset({});
  }
};

TEST_F(FakeCuda, AnInventoryHasTheGpusAskedForAndWhoMapsWhom) {
  fake_cuda::reset({.gpus = 3, .peers = false});
  const Inventory all = cuda_inventory({});
  ASSERT_EQ(all.devices.size(), 3U);
  EXPECT_EQ(cuda_gpus(), 3);
  EXPECT_EQ(all.devices[2].name, "Fake GPU");
  EXPECT_EQ(all.devices[2].copy_engines, 1);
  EXPECT_EQ(all.devices[2].free_bytes, 1 << 28);
  EXPECT_THAT(all.devices[2].place, StartsWith("GPU 2, PCI "));
  EXPECT_TRUE(all.devices[2].switches.empty());  // Linux knows of no such device
  EXPECT_EQ(all.can_access[0], (std::vector<bool>{true, false, false}));
  EXPECT_TRUE(all.nvlinks.empty());
  EXPECT_EQ(cuda_inventory({2, 1}).ranks(), 2);
  EXPECT_THAT(error_of([] { cuda_inventory({7}); }, ErrorKind::usage),
              HasSubstr("there is no GPU 7"));
}

/// Every program of a survey runs; what its times are does not matter here.
TEST_F(FakeCuda, SurveysGpusAndRanksThatShareOne) {
  for (const int sharing : {1, 3}) {
    const std::vector<int> devices = sharing > 1 ? std::vector<int>{1, 1, 1} : std::vector{0, 2};
    Inventory inventory = cuda_inventory(sharing > 1 ? std::vector<int>{1} : devices);
    inventory.sharing = sharing;
    CudaBackend backend(devices);
    Meter meter = backend_meter(backend, {1 << 16, 1 << 14, 0, 10});
    meter.copy_engines = true;
    std::size_t steps = 0;
    meter.progress = [&](const std::string&) { ++steps; };
    const Survey survey = take_survey(inventory, meter);
    EXPECT_EQ(steps, survey_steps(inventory, meter));
    EXPECT_EQ(survey.alone.size(), sharing > 1 ? 1U : 2U);
    EXPECT_TRUE(survey.copy_engine.has_value());
    EXPECT_TRUE(check_topology(fit_machine(survey, "today")).empty());
  }
}

TEST_F(FakeCuda, RunsOnAnyGpusInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (const bool peers : {false, true}) {
      fake_cuda::reset({.peers = peers, .seed = seed});
      const std::vector<std::vector<int>> choices{{}, {3, 3, 3, 3, 3}, {0, 1, 2, 3, 0}};
      for (const std::vector<int>& devices : choices) {
        CudaBackend backend(devices);
        for (const bool in_place : {false, true}) {
          for (const Program& program :
               {ring_program(5, in_place), tree_program(5, in_place), flat_program(5, false)}) {
            RunOptions options{.size_bytes = 4 * 1031, .iterations = 3, .warmup = 1};
            options.timeline = true;
            const RunReport report = backend.run(program, {}, options);
            EXPECT_EQ(report.executed->wrong, 0) << program.name << ", seed " << seed;
            EXPECT_EQ(report.timeline.size(), program.ops.size());
          }
        }
      }
    }
  }
}

TEST_F(FakeCuda, KeepsMappingsUntilTheirPlacesAreNeeded) {
  fake_cuda::reset({.gpus = 12});
  const auto run = [](std::vector<int> devices) {
    const Program program = flat_program(static_cast<int>(devices.size()), false);
    return CudaBackend(std::move(devices)).run(program, {}, {.size_bytes = 1200}).executed->wrong;
  };
  EXPECT_EQ(run({8, 9, 10, 11}), 0);
  const int four = fake_cuda::mapped_pairs();
  // Another back end of the same process finds them mapped, and one GPU needs none.
  EXPECT_EQ(run({8, 9, 10, 11}), 0);
  EXPECT_EQ(run({8}), 0);
  EXPECT_EQ(fake_cuda::mapped_pairs(), four);
  // GPU 8 is joined to three others, and is to be joined to eight more than these: what is not
  // wanted any more has to go.
  EXPECT_EQ(run({8, 0, 1, 2, 3, 4, 5, 6, 7}), 0);
  EXPECT_EQ(run({8, 9, 10, 11}), 0);
}

TEST_F(FakeCuda, BackEndsDoNotTakeEachOthersMappings) {
  CudaBackend first({0, 1, 2});
  CudaBackend second({0, 1, 2});
  const Program ring = ring_program(3, false);
  Builder builder("alone", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  const Program alone = builder.finish();
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(first.run(ring, {}, {.size_bytes = 1200}).executed->wrong, 0);
    EXPECT_EQ(second.run(ring, {}, {.size_bytes = 1200}).executed->wrong, 0);
    EXPECT_EQ(second.run(alone, {}, {.size_bytes = 1200}).executed->wrong, 0);
  }
}

TEST_F(FakeCuda, CopiesWhatCudaRefusesToMap) {
  fake_cuda::reset({.gpus = 14, .refused_peer = 13});
  const RunReport report =
      CudaBackend({12, 13}).run(tree_program(2, false), {}, {.size_bytes = 1200});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_THAT(
      report.executed->notes,
      Contains("GPU 12 copies what it needs from GPU 13, because it cannot map its memory"));
}

TEST_F(FakeCuda, PutsRanksAndRelaysWhereTheMachineHasThem) {
  const Topology topology = load_topology("full:n=4");
  Router router(topology, topology.profile("kernel"));
  const Target target{&router, place_ranks(router, {3, 1}, {2})};
  Builder builder("relay", test_contract(Collective::broadcast, 2, 1));
  const PlaceId relay = builder.add_relay();
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  builder.copy(builder.tmp(relay, 0, 1), builder.input(0, 0, 1), {.at = relay});
  builder.copy(builder.output(1, 0, 1), builder.tmp(relay, 0, 1), {.at = relay});
  const Program program = builder.finish();
  const RunOptions options{.size_bytes = 400};
  EXPECT_THAT(
      CudaBackend({}, UnnamedDevices::as_placed).run(program, target, options).executed->notes,
      ElementsAre("  r0 on GPU 3 (Fake GPU)", "  r1 on GPU 1 (Fake GPU)",
                  "  g0 on GPU 2 (Fake GPU)"));
  // Who names devices means these, and without a machine of the user's GPUs take turns.
  EXPECT_THAT(CudaBackend({0, 0, 1}, UnnamedDevices::as_placed)
                  .run(program, target, options)
                  .executed->notes,
              ElementsAre("  r0 on GPU 0 (Fake GPU)", "  r1 on GPU 0 (Fake GPU)",
                          "  g0 on GPU 1 (Fake GPU)"));
  EXPECT_THAT(CudaBackend().run(program, target, options).executed->notes,
              ElementsAre("  r0 on GPU 0 (Fake GPU)", "  r1 on GPU 1 (Fake GPU)",
                          "  g0 on GPU 2 (Fake GPU)"));
}

TEST_F(FakeCuda, RefusesAMachineWithOtherGpus) {
  fake_cuda::reset({.gpus = 3});
  const Topology topology = load_topology("mist:nodes=2");  // of 4 GPUs each
  Router router(topology, topology.profile("kernel"));
  CudaBackend backend({}, UnnamedDevices::as_placed);
  const RunOptions options{.size_bytes = 400};
  const auto run = [&](const std::vector<int>& gpus) {
    const Target target{&router, place_ranks(router, gpus)};
    return error_of([&] { backend.run(tree_program(2, false), target, options); },
                    ErrorKind::usage);
  };
  const std::string hint = "\n  help: name the GPU of each rank and relay with --devices";
  EXPECT_EQ(run({1, 3}),
            "error: n0.gpu3 of 'mist:nodes=2' is not on this computer, which has 3 GPUs" + hint);
  EXPECT_EQ(run({1, 4}), "error: n1.gpu0 of 'mist:nodes=2' is on another host" + hint);
  // The second computer's, run there.
  const Target target{&router, place_ranks(router, {4, 6})};
  EXPECT_THAT(
      backend.run(tree_program(2, false), target, options).executed->notes,
      ElementsAre("  r0 on GPU 0 (Fake GPU)", "  r1 on GPU 2 (Fake GPU)",
                  "whether the GPUs are joined as 'mist:nodes=2' says was not checked: there "
                  "is no NVML (libnvidia-ml.so.1) to ask"));
}

TEST_F(FakeCuda, SaysThatASizeDoesNotFitBeforeAnythingIsLaunched) {
  fake_cuda::reset({.memory_bytes = 1 << 22});
  CudaBackend backend({0, 0});
  const Program program = tree_program(2, false);
  EXPECT_NO_THROW(backend.require_room(program, {}, {.size_bytes = 1 << 19}));
  EXPECT_THAT(error_of([&] { backend.require_room(program, {}, {.size_bytes = 1 << 21}); },
                       ErrorKind::unsupported),
              HasSubstr("error: a message of 2MiB needs 8.0 MiB of the memory of GPU 0 (inputs "
                        "4.0 MiB, results 4.0 MiB, guards and rounding 2.0 KiB), which can give "
                        "3.8 MiB\n  help: 512KiB fits"));
  EXPECT_EQ(fake_cuda::kernels_launched(), 0);
}

// Scratch buffers of the program, and what kernels of GPUs that can't map each other's memory need.
TEST_F(FakeCuda, CountsScratchBeforeItStarts) {
  fake_cuda::reset({.memory_bytes = 1 << 20});
  const auto why_not = [](const Program& program, std::vector<int> devices, std::int64_t size) {
    return error_of(
        [&] { CudaBackend(std::move(devices)).require_room(program, {}, {.size_bytes = size}); },
        ErrorKind::unsupported);
  };
  // Each rank: input, result and scratch of 300,000 bytes.
  EXPECT_THAT(why_not(ring_program(2, false), {0, 1}, 300'000), HasSubstr("nothing thrown"));
  EXPECT_THAT(
      why_not(ring_program(2, false), {0, 1}, 400'000),
      HasSubstr("of the memory of GPU 0 (inputs 390.6 KiB, results 390.6 KiB, scratch 390.6 "
                "KiB, guards and rounding 1.5 KiB)"));
  fake_cuda::reset({.peers = false, .memory_bytes = 1 << 20});
  EXPECT_THAT(why_not(ring_program(2, false), {0, 1}, 300'000), HasSubstr("copies of operands "));
  EXPECT_EQ(fake_cuda::live_objects(), 0);
}

// Everything that a session allocates on GPUs has been counted.
TEST_F(FakeCuda, WhatIsCountedIsWhatIsAllocated) {
  for (const bool peers : {false, true}) {
    for (const Program& program :
         {ring_program(3, false), tree_program(3, true), flat_program(20, false)}) {
      fake_cuda::reset({.peers = peers});
      CudaBackend backend;
      const RunOptions options{.size_bytes = 4 * 5000};
      EXPECT_EQ(backend.run(program, {}, options).executed->wrong, 0);
      for (int gpu = 0; gpu < 3; ++gpu) {
        const std::size_t used = fake_cuda::used_bytes(gpu);
        ASSERT_GT(used, 0U);
        // Exactly as much as is used does, once the share for contexts is added; less does not.
        const auto room_with = [&](std::size_t bytes) {
          return fake_cuda::with_memory(gpu, bytes, [&] {
            return error_of([&] { CudaBackend().require_room(program, {}, options); },
                            ErrorKind::unsupported);
          });
        };
        const auto enough = static_cast<std::size_t>(static_cast<double>(used) / 0.95) + 2;
        EXPECT_EQ(room_with(enough), "nothing thrown") << program.name << " on GPU " << gpu;
        EXPECT_THAT(room_with(enough - 8), HasSubstr(" of the memory of GPU ")) << program.name;
      }
    }
  }
}

TEST_F(FakeCuda, SaysThatPinnedMemoryDoesNotSuffice) {
  fake_cuda::reset({.pinned_bytes = 1000});
  EXPECT_THAT(error_of(
                  [] {
                    CudaBackend({0, 0}).run(flat_program(2, false), {}, {.size_bytes = 4000});
                  },
                  ErrorKind::unsupported),
              StartsWith("error: cudaHostAlloc on GPU 0: cudaErrorMemoryAllocation "
                         "(cudaErrorMemoryAllocation), for 4.4 KiB of pinned memory of this "
                         "computer for h0.tmp\n  help: a smaller --size"));
}

// Whatever call CUDA has no memory for, it is the same kind of error.
TEST_F(FakeCuda, NoMemoryIsOneKindOfError) {
  const Program program = tree_program(2, false);
  const auto run = [&](std::int64_t size) {
    return error_of(
        [&] {
          CudaBackend({0, 0}).run(program, {}, {.size_bytes = size});
        },
        ErrorKind::unsupported);
  };
  fake_cuda::reset({.memory_bytes = 1 << 20});
  EXPECT_THAT(run(1 << 20), HasSubstr("error: a message of 1MiB needs "));
  EXPECT_THAT(run(std::int64_t{1} << 50), HasSubstr("error: a message of 1024TiB needs "));
  fake_cuda::reset({.graph_memory = 0});
  EXPECT_THAT(run(400), HasSubstr("error: cudaGraphInstantiate on GPU 0: "));
  EXPECT_EQ(fake_cuda::live_objects(), 0);
  fake_cuda::reset({.streams_have_memory = false});
  EXPECT_THAT(run(400), HasSubstr("error: cudaStreamCreate on GPU 0: "));
  EXPECT_EQ(fake_cuda::live_objects(), 0);
}

TEST_F(FakeCuda, GivesUpOldProgramsForGraphs) {
  fake_cuda::reset({.graph_memory = 2});
  CudaBackend backend({0, 0});
  for (const std::int64_t size : {400, 800, 1200, 400}) {
    EXPECT_EQ(backend.run(tree_program(2, false), {}, {.size_bytes = size}).executed->wrong, 0);
  }
}

// Launch 0 of the graph is checked, 1 to 5 are timed.
TEST_F(FakeCuda, AGraphThatGoesWrongLaterIsReported) {
  for (const bool in_place : {false, true}) {
    const auto wrong_from = [&](std::int64_t launch) {
      fake_cuda::reset({.damaged_launch = launch});
      const RunOptions options{.size_bytes = 4 * 1000, .iterations = 5};
      return *CudaBackend({0, 1, 2}).run(ring_program(3, in_place), {}, options).executed->wrong;
    };
    EXPECT_EQ(wrong_from(100), 0);
    for (const std::int64_t launch : {0, 1, 3, 5}) {
      EXPECT_GT(wrong_from(launch), 0) << launch << (in_place ? " in place" : " out of place");
    }
  }
}

TEST_F(FakeCuda, CapturesAProgramOnceForEachSizeAndType) {
  CudaBackend backend({0, 0, 0});
  const Program program = ring_program(3, false);
  for (int again = 0; again < 3; ++again) {
    backend.run(program, {}, {.size_bytes = 400});
    backend.run(program, {}, {.size_bytes = 800});
    backend.run(program, {}, {.size_bytes = 400, .type = DataType::int32});
    backend.run(tree_program(3, false), {}, {.size_bytes = 400});
  }
  EXPECT_EQ(fake_cuda::graphs_made(), 4);
}

TEST_F(FakeCuda, GivesUpOldProgramsForMemory) {
  fake_cuda::reset({.memory_bytes = 1 << 22});
  CudaBackend backend({0, 0});
  const Program program = tree_program(2, false);
  // Two inputs and two outputs of half a MiB each: one more of these would not fit beside it.
  for (const std::int64_t size : {1 << 19, (1 << 19) + 4, 1 << 19}) {
    EXPECT_EQ(backend.run(program, {}, {.size_bytes = size}).executed->wrong, 0);
  }
  EXPECT_THAT(
      error_of([&] { backend.run(program, {}, {.size_bytes = 1 << 20}); }, ErrorKind::unsupported),
      HasSubstr("error: a message of 1MiB needs 4.0 MiB of the memory of GPU 0 (inputs 2.0 MiB"));
}

TEST_F(FakeCuda, SaysWhereEverythingRan) {
  const RunReport report = CudaBackend({2, 2}).run(flat_program(2, false), {}, {.size_bytes = 8});
  EXPECT_THAT(report.executed->notes,
              ElementsAre("  r0 on GPU 2 (Fake GPU)", "  r1 on GPU 2 (Fake GPU)"));
}

/// A rank's input goes through two host memories to its result.
Program two_host_program() {
  Builder builder("hosts", test_contract(Collective::allreduce, 1, 1));
  const PlaceId near = builder.add_host();
  const PlaceId far = builder.add_host();
  builder.copy(builder.tmp(near, 0, 1), builder.input(0, 0, 1), {.at = 0});
  builder.copy(builder.tmp(far, 0, 1), builder.tmp(near, 0, 1), {.at = far});
  builder.copy(builder.output(0, 0, 1), builder.tmp(far, 0, 1), {.at = 0});
  return builder.finish();
}

TEST_F(FakeCuda, PinsMemoryOnTheNodeThatItStandsFor) {
  const std::vector<int> all = allowed_processors();
  if (all.size() < 2) GTEST_SKIP() << "this process may use one processor only";
  const auto run = [&](std::vector<cuda::HostNode> nodes) {
    fake_cuda::reset({});
    const cuda::SessionKey key{.size_bytes = 400,
                               .gpus = {0, DeviceSet::kHost, DeviceSet::kHost},
                               .host_nodes = std::move(nodes)};
    const Program program = two_host_program();
    RunReport report = cuda::Session(std::make_shared<const cuda::Prepared>(program, key))
                           .run({.size_bytes = 400});
    EXPECT_EQ(report.executed->wrong, 0);
    EXPECT_EQ(allowed_processors(), all);  // this thread goes on as before
    return report.executed->notes;
  };
  const std::vector<int> first{all.front()};
  const std::vector<int> last{all.back()};
  EXPECT_THAT(run({{"cpu0", {0, first}}, {"cpu1", {1, last}}}),
              ElementsAre("  r0 on GPU 0 (Fake GPU)"));
  EXPECT_THAT(fake_cuda::pinned_from(), ElementsAre(first, last));
  // The second is not there.
  EXPECT_THAT(
      run({{"cpu0", {0, last}}, {"cpu1", {1, {}}}}),
      ElementsAre("  r0 on GPU 0 (Fake GPU)",
                  "h1 stands for the memory of cpu1, NUMA node 1, which this computer does "
                  "not have or this process may not use: it is wherever the system puts it"));
  EXPECT_THAT(fake_cuda::pinned_from(), ElementsAre(last, all));
  EXPECT_THAT(run({{}, {}}), ElementsAre("  r0 on GPU 0 (Fake GPU)"));
  EXPECT_THAT(fake_cuda::pinned_from(), ElementsAre(all, all));
  // No such processor: the system refuses.
  EXPECT_THAT(run({{"cpu0", {0, {8000}}}, {}}),
              Contains(HasSubstr("NUMA node 0, to which the system does not let this process")));
  EXPECT_THAT(fake_cuda::pinned_from(), ElementsAre(all, all));
}

TEST_F(FakeCuda, HostMemoriesStandForTheSocketsOfTheMachine) {
  const Topology topology = load_topology("dgx1-v100");
  Router router(topology, topology.profile("kernel"));
  Program program = two_host_program();
  // GPU 5 is at the second socket.
  const Target target{&router, place_ranks(router, {5, 0})};
  const NumaNode second{1, {4, 5}};
  EXPECT_THAT(cuda::host_nodes(program, target, {{0, {0}}, second}),
              ElementsAre(cuda::HostNode{"cpu1", second}, cuda::HostNode{"cpu0", {0, {0}}}));
  EXPECT_THAT(cuda::host_nodes(program, target, {{0, {0}}}),
              ElementsAre(cuda::HostNode{"cpu1", {1, {}}}, cuda::HostNode{"cpu0", {0, {0}}}));
  EXPECT_THAT(cuda::host_nodes(program, {}, {second}),
              ElementsAre(cuda::HostNode{}, cuda::HostNode{}));
}

// The profile says what engines copy. Whatever does it, as many bytes come from elsewhere.
TEST_F(FakeCuda, CopyEnginesDoWhatTheProfileSays) {
  const Topology topology = load_topology("full:n=3");
  const auto moved = [&](const char* profile, const Program& program) {
    Router router(topology, topology.profile(profile));
    fake_cuda::reset({});
    const RunOptions options{.size_bytes = 1200, .iterations = 1};
    const RunReport report =
        CudaBackend({0, 1, 2}).run(program, {&router, place_ranks(router, {0, 1, 2})}, options);
    EXPECT_EQ(report.executed->wrong, 0) << profile << ", " << program.name;
    return fake_cuda::moved();
  };
  for (const Program& program : {ring_program(3, false), ring_program(3, true),
                                 tree_program(3, true), flat_program(3, false)}) {
    const fake_cuda::Moved by_kernels = moved("kernel", program);
    const fake_cuda::Moved by_both = moved("cuda_graph", program);
    const fake_cuda::Moved by_engines = moved("copy_engine", program);
    EXPECT_EQ(by_kernels.engine_bytes, 0);
    EXPECT_GT(by_kernels.kernel_bytes, 0);
    EXPECT_GT(by_both.engine_bytes, 0);
    EXPECT_GT(by_both.kernel_bytes, 0);
    EXPECT_GT(by_engines.engine_bytes, 0);
    EXPECT_EQ(by_engines.kernel_bytes, 0);
    EXPECT_EQ(by_both.engine_bytes + by_both.kernel_bytes, by_kernels.kernel_bytes);
    EXPECT_EQ(by_engines.engine_bytes, by_kernels.kernel_bytes);
  }
}

/// Runs a program in which each of 12 GPUs reads the memory of all others, in a process of its own,
/// since what the driver has refused is remembered; says what was noted beside the placement.
[[noreturn]] void join_twelve(int max_peers) {
  fake_cuda::reset({.gpus = 12, .max_peers = max_peers});
  {
    CudaBackend backend;
    const RunReport report = backend.run(flat_program(12, false), {}, {.size_bytes = 4800});
    for (const std::string& note : report.executed->notes) {
      if (note.starts_with("GPU ")) std::fprintf(stderr, "%s\n", note.c_str());
    }
    std::fprintf(stderr, "%d wrong, %d pairs\n", static_cast<int>(*report.executed->wrong),
                 fake_cuda::mapped_pairs());
  }
  std::exit(fake_cuda::live_objects() == 0 ? 0 : 1);
}

TEST(FakeCudaPeers, AreAsManyAsTheDriverHasPlaceFor) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(join_twelve(100), testing::ExitedWithCode(0), "^0 wrong, 132 pairs\n$");
  EXPECT_EXIT(join_twelve(8), testing::ExitedWithCode(0),
              "^(GPU [0-9]+ copies what it needs from GPU [0-9]+, because it can map the memory of "
              "at most 8 others\n)+0 wrong, [0-9]+ pairs\n$");
  EXPECT_EXIT(join_twelve(3), testing::ExitedWithCode(0),
              "^(GPU [0-9]+ copies .* at most 3 others\n)+0 wrong, [0-9]+ pairs\n$");
}

// Neither inputs nor anything else is given to the GPUs between them, out of place or in place.
TEST_F(FakeCuda, TimedRunsAreLaunchesOfTheGraphAlone) {
  for (const bool in_place : {false, true}) {
    std::vector<std::int64_t> launched;
    for (const int iterations : {1, 40}) {
      fake_cuda::reset({});
      CudaBackend backend({0, 1, 2});
      const RunOptions options{.size_bytes = 1200, .iterations = iterations};
      EXPECT_EQ(backend.run(ring_program(3, in_place), {}, options).executed->wrong, 0);
      launched.push_back(fake_cuda::kernels_launched());
    }
    EXPECT_EQ(launched[0], launched[1]) << in_place;
  }
}

// Copies between GPUs that can't map each other are what a driver may refuse in a graph.
TEST_F(FakeCuda, TimesStreamsWhereAGraphIsRefused) {
  using fake_cuda::GraphRefusal;
  for (const auto& [refusal, call] :
       {std::pair(GraphRefusal::captured_copies, "cudaMemcpyAsync on GPU "),
        std::pair(GraphRefusal::instantiation, "cudaGraphInstantiate on GPU ")}) {
    for (const bool in_place : {false, true}) {
      fake_cuda::reset({.peers = false, .graph_refusal = refusal});
      CudaBackend backend({0, 1, 2});
      const Program program = ring_program(3, in_place);
      const RunOptions options{.size_bytes = 1200, .iterations = 5, .warmup = 1, .timeline = true};
      for (int again = 0; again < 2; ++again) {
        const RunReport report = backend.run(program, {}, options);
        EXPECT_EQ(report.executed->wrong, 0);
        EXPECT_GT(report.executed->min_time_s, 0);
        EXPECT_EQ(report.timeline.size(), program.ops.size());
        EXPECT_THAT(report.executed->notes,
                    Contains(AllOf(StartsWith(std::string("CUDA refuses to make a graph of the "
                                                          "program (") +
                                              call),
                                   HasSubstr("): it ran in streams"))));
      }
      EXPECT_EQ(fake_cuda::graphs_made(), 0);
    }
    // Without such copies there is a graph.
    fake_cuda::reset({.graph_refusal = refusal});
    const RunReport mapped =
        CudaBackend({0, 1, 2}).run(ring_program(3, false), {}, {.size_bytes = 8});
    EXPECT_THAT(mapped.executed->notes, Not(Contains(HasSubstr("graph"))));
    EXPECT_EQ(fake_cuda::graphs_made(), 1);
  }
}

/// One rank that copies its input so many times, to and fro.
Program long_program(int ops) {
  Builder builder("long", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  for (int op = 1; op < ops; ++op) {
    const bool to = op % 2 == 1;
    builder.copy(to ? builder.tmp(0, 0, 1) : builder.output(0, 0, 1),
                 to ? builder.output(0, 0, 1) : builder.tmp(0, 0, 1));
  }
  return builder.finish();
}

TEST_F(FakeCuda, RunsMoreOpsThanAQueueHolds) {
  fake_cuda::reset({.queue_length = 200});
  CudaBackend backend({0});
  const RunReport report =
      backend.run(long_program(500), {}, {.size_bytes = 400, .iterations = 40, .timeline = true});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_EQ(report.timeline.size(), 500U);
}

TEST_F(FakeCuda, NamesTheOpOfALaunchThatFails) {
  // The launches before it: two inputs are filled, op 0 is launched.
  fake_cuda::reset({.fail_launch = 3});
  CudaBackend backend({0, 0});
  EXPECT_EQ(error_of([&] { backend.run(tree_program(2, false), {}, {.size_bytes = 400}); },
                     ErrorKind::runtime),
            "error: launching a combine kernel on GPU 0: cudaErrorLaunchOutOfResources "
            "(cudaErrorLaunchOutOfResources), for op 1 'r0.out[0] <- r0.in[0] + r1.out[0] after "
            "0'");
}

// What a failed run left in the streams is not to disturb the next one.
TEST_F(FakeCuda, StartsAfreshAfterARunThatFailed) {
  CudaBackend backend({0, 0});
  const Program program = tree_program(2, false);
  const RunOptions options{.size_bytes = 400};
  fake_cuda::reset({.fail_launch = 3});
  error_of([&] { backend.run(program, {}, options); }, ErrorKind::runtime);
  EXPECT_EQ(fake_cuda::live_objects(), 0);
  EXPECT_EQ(backend.run(program, {}, options).executed->wrong, 0);
}

TEST_F(FakeCuda, NamesWhatIsMissing) {
  fake_cuda::reset({.driver_version = 0});
  EXPECT_EQ(cuda_unavailable(), "there is no NVIDIA driver on this computer");
  fake_cuda::reset({.driver_version = 11040});
  EXPECT_THAT(*cuda_unavailable(), HasSubstr("too old: it is for CUDA 11.4, this espalier was "));
  fake_cuda::reset({.gpus = 0});
  EXPECT_THAT(*cuda_unavailable(), HasSubstr("there is no NVIDIA GPU"));
}

/// Runs a program that hangs in a process of its own, since nothing can be run after that, and
/// prints the error.
[[noreturn]] void hang(std::int64_t stall_after, const Program& program = tree_program(2, false)) {
  fake_cuda::reset({.stall_after = stall_after});
  CudaBackend backend({0, 0});
  const RunOptions options{.size_bytes = 400, .check = false, .timeout_s = 0.05};
  for (int again = 0; again < 2; ++again) {
    try {
      backend.run(program, {}, options);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  // As CUDA's own would: it waits for the run.
  std::atexit([] { std::_Exit(98); });
  end_process(0);
}

TEST(FakeCudaHang, NamesTheOpsThatDoNotEnd) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // Two inputs are filled, and op 0 runs; op 1 does not end.
  EXPECT_EXIT(hang(3), testing::ExitedWithCode(0),
              "no op has finished on the GPUs for 0.05 s \\(2 of 3 lanes have not finished\\)\n"
              "error: r0 lane 0: op 1 .* has not finished\n"
              "  help: if it is only slow, raise --timeout\n"
              "error: r1 lane 1: op 2 .* waits for op 1 .* of r0 lane 0\n"
              "error: an earlier run on the GPUs has not ended");
}

// Launches beyond what a stream's queue holds would never return.
TEST(FakeCudaHang, NamesAnOpWithThousandsBehindIt) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // The input is filled, and ops 0 to 2 run.
  EXPECT_EXIT(hang(4, long_program(5000)), testing::ExitedWithCode(0),
              "no op has finished on the GPUs for 0.05 s \\(1 of 1 lanes have not finished\\)\n"
              "error: r0 lane 0: op 3 .* has not finished\n");
}

/// The same for GPUs that can't map each other, of which no graph can be made.
[[noreturn]] void hang_in_streams(std::int64_t stall_after) {
  fake_cuda::reset({.peers = false,
                    .stall_after = stall_after,
                    .graph_refusal = fake_cuda::GraphRefusal::captured_copies});
  CudaBackend backend({0, 1});
  const RunOptions options{.size_bytes = 400, .check = false, .timeout_s = 0.05};
  try {
    backend.run(tree_program(2, false), {}, options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::atexit([] { std::_Exit(98); });
  end_process(0);
}

TEST(FakeCudaHang, NamesTheOpThatDoesNotEndInATimedRunOfStreams) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // Two inputs are filled, and the one kernel of the program, which folds, runs once.
  EXPECT_EXIT(hang_in_streams(3), testing::ExitedWithCode(0),
              "no op has finished on the GPUs for 0.05 s .*\n.*error: r0 lane 0: op 1 .* has not "
              "finished\n");
}

TEST(FakeCudaHang, NoticesAGraphThatDoesNotEnd) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  // Two inputs are filled, three ops run one by one.
  EXPECT_EXIT(hang(5), testing::ExitedWithCode(0),
              "the program, captured as a graph, has not finished within ");
}

}  // namespace
}  // namespace espalier

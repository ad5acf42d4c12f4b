// SPDX-License-Identifier: Apache-2.0
// Messages between GPUs of several processes by every route, and combines by kernels, on a stand-in
// for CUDA: bit for bit what the interpreter has, in any order of events.
#include "exec/mpi_cuda/gpu_steps.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/chunk.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/local_network.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using cuda::Access;
using cuda::Gpus;
using cuda::GpuSteps;
using cuda::MemoryOffer;
using cuda::Route;
using cuda::Routes;
using cuda::SharedMemory;
using cuda::Staging;

constexpr int kGpus = 4;
// So small that every message has several pieces, and so few that they are always short.
constexpr Staging kTight{.piece_bytes = 48, .pieces = 3};

/// What parts map of each other, all of which they give up before any of it is freed.
using Mappings = std::vector<SharedMemory*>;

class GpuPart : public TestPart {
 public:
  GpuPart(const PartRequest& request, std::shared_ptr<Mappings> mappings)
      : mappings_(std::move(mappings)),
        request_(request),
        kind_{request.program, ElementLayout(request.program.contract, 0), request.type,
              request.op},
        gpus_(cuda::open_gpu_of_process(request.program, request.transport.process(),
                                        request.transport.process() % kGpus)),
        host_nodes_(cuda::host_nodes(kind_.program, {}, {})),
        buffers_(kind_, request.lowered, request.plan, gpus_, host_nodes_, Access::shared),
        shared_(buffers_.gpu().number, buffers_.blocks()),
        steps_(request.plan, kind_, buffers_, request.transport) {
    mappings_->push_back(&shared_);
  }
  ~GpuPart() override {
    for (SharedMemory* mapping : *mappings_) mapping->unmap();
    mappings_->clear();
  }

  StepCarrier& steps() override { return steps_; }
  GpuSteps& gpu_steps() { return steps_; }
  SharedMemory& shared() { return shared_; }

  void write(PlaceId place, Buffer buffer, std::span<const std::byte> bytes) override {
    if (!bytes.empty()) std::memcpy(buffers_.at({place, buffer, 0}), bytes.data(), bytes.size());
  }
  std::vector<std::byte> read(PlaceId place, Buffer buffer) const override {
    const auto bytes =
        request_.lowered
            .buffer_bytes[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
    if (bytes == 0) return {};
    const std::byte* const begin = buffers_.at({place, buffer, 0});
    return {begin, begin + bytes};
  }

 private:
  const std::shared_ptr<Mappings> mappings_;
  const PartRequest& request_;
  const cuda::MessageKind kind_;
  const Gpus gpus_;
  const std::vector<cuda::HostNode> host_nodes_;
  cuda::GpuBuffers buffers_;
  SharedMemory shared_;
  GpuSteps steps_;
};

/// The route of messages from one process to another.
using RouteOf = Route (*)(std::size_t from, std::size_t to);

MakeParts parts_by(RouteOf route_of) {
  return [route_of](const std::deque<PartRequest>& requests) {
    std::vector<std::unique_ptr<GpuPart>> made;
    const auto mappings = std::make_shared<Mappings>();
    for (const PartRequest& request : requests) {
      made.push_back(std::make_unique<GpuPart>(request, mappings));
    }
    for (std::size_t mine = 0; mine < made.size(); ++mine) {
      Routes routes;
      for (std::size_t other = 0; other < made.size(); ++other) {
        routes.to.push_back(route_of(mine, other));
        routes.from.push_back(route_of(other, mine));
        if (other == mine || routes.to.back() != Route::mapped) continue;
        const MemoryOffer offer = made[other]->shared().offer();
        EXPECT_EQ(made[mine]->shared().map(static_cast<int>(other), offer), std::nullopt);
      }
      made[mine]->gpu_steps().use(routes, {made[mine]->shared(), {}, kTight});
    }
    std::vector<std::unique_ptr<TestPart>> parts;
    for (auto& part : made) parts.push_back(std::move(part));
    return parts;
  };
}

Route staged(std::size_t, std::size_t) { return Route::staged; }
Route direct(std::size_t, std::size_t) { return Route::direct; }
Route mapped(std::size_t, std::size_t) { return Route::mapped; }
/// As on two hosts with a pair that is refused in one direction.
Route mixed(std::size_t from, std::size_t to) {
  if (from == 1 && to == 0) return Route::staged;
  return from / 2 == to / 2 ? Route::mapped : Route::direct;
}

class GpuStepsTest : public testing::Test {
 protected:
  ~GpuStepsTest() override {
    EXPECT_EQ(fake_cuda::live_objects(), 0);
    fake_cuda::reset({});
  }
};

TEST_F(GpuStepsTest, EveryRouteGivesWhatTheInterpreterGives) {
  std::uint64_t seed = 1;
  for (const RouteOf route : {staged, direct, mapped, mixed}) {
    for (const int ranks : {2, 3, 5}) {
      for (const Program& program :
           {ring_program(ranks, false), ring_program(ranks, true), tree_program(ranks, true),
            fetch_program(Collective::alltoall, ranks), reduce_scatter_program(ranks)}) {
        for (const std::int64_t elements : {0, 1, 13, 307}) {
          SCOPED_TRACE(program.name + " " + std::to_string(ranks) + " " + std::to_string(elements) +
                       " seed " + std::to_string(seed));
          fake_cuda::reset({.gpus = kGpus, .seed = seed});
          const Scratch scratch{.bytes = seed % 2 == 0 ? 0 : Scratch{}.bytes};
          const Buffering buffering = seed % 3 == 0 ? Buffering::all : Buffering::none;
          expect_messages_right(program, DataType::float32, ReduceOp::sum, elements, buffering,
                                seed++, scratch, parts_by(route));
          ASSERT_FALSE(HasFatalFailure());
        }
      }
    }
  }
}

TEST_F(GpuStepsTest, EveryTypeAndOperator) {
  std::uint64_t seed = 1;
  for (const RouteOf route : {staged, direct, mapped}) {
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        SCOPED_TRACE(std::string(to_string(type)) + " " + std::string(to_string(op)));
        fake_cuda::reset({.gpus = kGpus, .seed = seed});
        expect_messages_right(tree_program(4, false), type, op, 101, Buffering::none, seed++, {},
                              parts_by(route));
      }
    }
  }
}

/// Host memories are pinned, and in no block that others map.
TEST_F(GpuStepsTest, HostMemoriesTakePart) {
  for (const RouteOf route : {staged, direct}) {
    fake_cuda::reset({.gpus = kGpus});
    expect_messages_right(flat_program(4, false), DataType::int32, ReduceOp::max, 307,
                          Buffering::none, 3, {}, parts_by(route));
  }
}

/// More sources than a launch carries: their addresses are in the GPU's memory.
TEST_F(GpuStepsTest, CombinesManySources) {
  fake_cuda::reset({.gpus = kGpus, .memory_bytes = std::size_t{1} << 30});
  expect_messages_right(reduce_scatter_program(18), DataType::float16, ReduceOp::sum, 18 * 7,
                        Buffering::none, 5, {}, parts_by(mapped));
}

TEST_F(GpuStepsTest, ManySmallMessagesShareTheRoomForPieces) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    fake_cuda::reset({.gpus = kGpus, .seed = seed});
    expect_messages_right(chunk(ring_program(4, true), {8, 1}), DataType::int64, ReduceOp::prod,
                          4 * 331, Buffering::none, seed, {.bytes = 0}, parts_by(staged));
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace espalier

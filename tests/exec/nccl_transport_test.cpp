// SPDX-License-Identifier: Apache-2.0
// Messages between GPUs of several processes over NCCL, on stand-ins for both.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ir/chunk.h"
#include "tests/exec/every_type.h"
#include "tests/exec/on_gpus.h"

namespace espalier {
namespace {

using testing::HasSubstr;

const Asked kNccl{.choice = {.transport = GpuTransport::nccl}};

/// What is looked for by NCCL's name is the stand-in from now on.
class NcclTransport : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static void* const library = dlopen(FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
  }
};

TEST_F(NcclTransport, EveryTypeAndOperator) {
  expect_every_type_and_operator([](const Program& program, const RunOptions& options) {
    return run_on_gpus(program, options, kNccl);
  });
}

TEST_F(NcclTransport, NobodyBlocksAnother) {
  for (const int ranks : {2, 3, 4}) {
    for (const bool in_place : {false, true}) {
      for (const Program& program :
           {chunk(ring_program(ranks, in_place), {5, 1}), tree_program(ranks, in_place),
            flat_program(ranks, false), fetch_program(Collective::alltoall, ranks),
            reduce_scatter_program(ranks)}) {
        for (const std::int64_t elements : {0, 1, 13, 1031}) {
          SCOPED_TRACE(program.name + " " + std::to_string(ranks) + " " + std::to_string(elements));
          RunOptions options{.size_bytes = 4 * elements, .iterations = 2};
          const RunReport report = run_on_gpus(program, options, kNccl);
          EXPECT_EQ(report.executed->wrong, 0);
          EXPECT_EQ(report.executed->notes.back(), "messages from GPU to GPU: NCCL 2.28.9");
        }
      }
    }
  }
}

TEST_F(NcclTransport, OneLinkServesManyRuns) {
  on_gpus(3, kNccl, [&](MpiBackend& backend, int) {
    for (const bool in_place : {false, true}) {
      const RunReport report =
          backend.run(ring_program(3, in_place), {}, {.size_bytes = 4 * 1031, .iterations = 2});
      EXPECT_EQ(report.executed->wrong, 0);
    }
  });
}

TEST_F(NcclTransport, RanksDoNotShareAGpu) {
  Asked asked = kNccl;
  asked.choice.devices = {1, 0, 1};
  EXPECT_THAT(refusal(3, asked, ErrorKind::usage),
              HasSubstr("NCCL wants a GPU for each rank: ranks 0 and 2 would share one"));
}

// On one GPU, which it then counts once on each of them.
TEST_F(NcclTransport, ComputersAreThoseThatNcclIsToldOf) {
  in_processes(2, [](const Processes& processes) {
    const int rank = processes.transport.process();
    fake_cuda::begin_process();
    fake_cuda::reset({});
    GpuChoice choice = kNccl.choice;
    choice.devices = {1, 1};
    choice.nccl_host = rank == 0 ? "here" : "there";
    MpiBackend backend(processes, make_gpu_memory(processes, choice));
    const RunReport report = backend.run(ring_program(2, false), {}, {.size_bytes = 1 << 12});
    EXPECT_EQ(report.executed->wrong, 0);
    EXPECT_EQ(report.executed->notes.back(), "messages from GPU to GPU: NCCL 2.28.9");
  });
}

}  // namespace
}  // namespace espalier

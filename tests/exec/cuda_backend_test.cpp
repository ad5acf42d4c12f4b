// SPDX-License-Identifier: Apache-2.0
// On GPUs where there are any; every test but the first is skipped where there are none.
#include "exec/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "ir/builder.h"
#include "tests/exec/every_type.h"
#include "tests/exec/test_programs.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

TEST(CudaUnavailable, IsOneSentenceAndTheErrorOfTheBackEnd) {
  const auto reason = cuda_unavailable();
  if (!reason) {
    EXPECT_NO_THROW(CudaBackend{});
    return;
  }
  EXPECT_THAT(*reason, AnyOf("this espalier was built without CUDA",
                             "there is no NVIDIA driver on this computer",
                             StartsWith("the NVIDIA driver of this computer is too old: it is for"),
                             StartsWith("there is no NVIDIA GPU on this computer"),
                             StartsWith("CUDA cannot be used: ")));
  try {
    CudaBackend backend({0, 1});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_EQ(error.diagnostics().front().message, *reason);
  }
}

/// All ranks on GPU 0.
class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable()) GTEST_SKIP() << *reason;
  }

  static RunReport run(const Program& program, const RunOptions& options) {
    return backend_for(program).run(program, {}, options);
  }

  static CudaBackend backend_for(const Program& program) {
    return CudaBackend(std::vector<int>(static_cast<std::size_t>(program.ranks()), 0));
  }

  static std::string error_of(const Program& program, const RunOptions& options, ErrorKind kind) {
    try {
      run(program, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return error.what();
    }
    return "no error";
  }
};

TEST_F(CudaBackendTest, RunsAndChecksEveryTypeAndOperator) {
  expect_every_type_and_operator([](const auto&... asked) { return run(asked...); });
}

TEST_F(CudaBackendTest, RunsThroughHostMemoryAndWithManySources) {
  // flat_program(20): kernels with 20 sources, whose addresses a launch does not carry itself.
  for (const int ranks : {3, 20}) {
    const RunReport report = run(flat_program(ranks, false), {.size_bytes = 4 * 10007});
    EXPECT_EQ(report.executed->wrong, 0);
    EXPECT_THAT(report.executed->notes, SizeIs(ranks));
  }
}

TEST_F(CudaBackendTest, RunsMoreLanesThanStreams) {
  // Two lanes a rank, but one.
  EXPECT_EQ(run(tree_program(150, false), {.size_bytes = 4 * 6421}).executed->wrong, 0);
}

TEST_F(CudaBackendTest, RunsSizesThatAreNoMultipleOfAnything) {
  for (const std::int64_t elements : {0, 1, 2, 3, 15, 16, 17, 1031, 1 << 20, (1 << 22) + 5}) {
    const RunReport report =
        run(ring_program(3, true), {.size_bytes = 2 * elements, .type = DataType::float16});
    EXPECT_EQ(report.executed->wrong, 0) << elements;
  }
}

/// Where ranks are and who copies.
struct Layout {
  const char* name;
  bool all_gpus;  ///< in turn; else all ranks on GPU 0
  const char* profile;
};

class CudaLayouts : public testing::TestWithParam<Layout> {
 protected:
  CudaLayouts()
      : topology_(load_topology("full:n=4,host_gbps=25")),
        router_(topology_, topology_.profile(GetParam().profile)) {}
  void SetUp() override {
    if (const auto reason = cuda_unavailable()) GTEST_SKIP() << *reason;
    std::vector<int> devices(4, 0);
    if (GetParam().all_gpus) {
      devices.clear();
      const auto second = [] { CudaBackend backend({1}); };
      try {
        second();
      } catch (const Error&) {
        GTEST_SKIP() << "there is one GPU only";
      }
    }
    backend_ = std::make_unique<CudaBackend>(devices);
  }

  const Topology topology_;
  Router router_;
  std::unique_ptr<CudaBackend> backend_;
};

// Blocks of an odd number of small elements begin at any address. In the first run op by op
// everything is new; each program also runs as a graph, with and without other launches behind it.
TEST_P(CudaLayouts, RunOperandsThatBeginAnywhere) {
  const Target target{&router_, place_ranks(router_, {})};
  for (const DataType type : {DataType::uint8, DataType::float16, DataType::float64}) {
    for (const std::int64_t elements : {4 * 1031, 4 * 20011}) {
      for (const Program& program :
           {fetch_program(Collective::allgather, 4), fetch_program(Collective::alltoall, 4),
            reduce_scatter_program(4), ring_program(4, true), tree_program(4, false),
            flat_program(4, false)}) {
        RunOptions options{.size_bytes = elements * static_cast<std::int64_t>(size_of(type)),
                           .type = type,
                           .iterations = 5,
                           .timeline = true};
        const RunReport report = backend_->run(program, target, options);
        EXPECT_EQ(report.executed->wrong, 0)
            << program.name << " of " << elements << " " << to_string(type);
        EXPECT_THAT(report.executed->damage, IsEmpty());
        EXPECT_EQ(report.timeline.size(), program.ops.size());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaLayouts,
                         testing::Values(Layout{"one_gpu_kernels", false, "kernel"},
                                         Layout{"one_gpu_copy_engines", false, "copy_engine"},
                                         Layout{"all_gpus_kernels", true, "kernel"},
                                         Layout{"all_gpus_copy_engines", true, "copy_engine"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(CudaBackendTest, ReportsAWrongResult) {
  // r1 never gets r0's contribution.
  Builder builder("wrong", test_contract(Collective::allreduce, 2, 1));
  builder.combine(builder.output(0, 0, 1), {builder.input(0, 0, 1), builder.input(1, 0, 1)});
  builder.copy(builder.output(1, 0, 1), builder.input(1, 0, 1));
  const RunReport report = run(builder.finish(), {.size_bytes = 4 * 1000});
  ASSERT_TRUE(report.executed->wrong.has_value());
  // Op by op, as a graph, and after the timed runs; few contributions are 0.
  EXPECT_GT(*report.executed->wrong, 3 * 900);
  EXPECT_LE(*report.executed->wrong, 3 * 1000);
}

TEST_F(CudaBackendTest, ReportsAnInputThatWasWrittenTo) {
  Builder builder("clobber", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  Program program = builder.finish();
  Op op = program.ops[0];  // in <- out + in, against the verifier's rule R8
  op.dst = {0, 0, Buffer::in};
  op.src_begin = 1;
  op.src_count = 2;
  program.sources.push_back({0, 0, Buffer::out});
  program.sources.push_back({0, 0, Buffer::in});
  program.ops.push_back(op);
  const RunReport report = run(program, {.size_bytes = 400, .type = DataType::int32});
  ASSERT_THAT(report.executed->damage, SizeIs(3));  // each time it is looked at
  EXPECT_THAT(report.executed->damage[0], StartsWith("r0.in: "));
  EXPECT_THAT(report.executed->damage[0], HasSubstr(" elements of the input were overwritten"));
  EXPECT_GT(report.executed->wrong, 3 * 80);
}

TEST_F(CudaBackendTest, ReportsWritesBesideABuffer) {
  Builder builder("beside", test_contract(Collective::allreduce, 1, 1));
  builder.copy(builder.output(0, 0, 1), builder.input(0, 0, 1));
  Program program = builder.finish();
  Op op = program.ops[0];
  op.dst.begin = 1;  // there is unit 0 only
  program.ops.push_back(op);
  const RunReport report = run(program, {.size_bytes = 16});
  EXPECT_THAT(report.executed->damage, Each("r0.out: 16 bytes beside the buffer were overwritten"));
  EXPECT_EQ(report.executed->wrong, 3 * 4);  // as elements, each time it is looked at
}

TEST_F(CudaBackendTest, KeepsATimeline) {
  const Program program = ring_program(3, false);
  const RunReport report = run(program, {.size_bytes = 1 << 16, .timeline = true});
  ASSERT_EQ(report.timeline.size(), program.ops.size());
  for (const OpTiming& timing : report.timeline) {
    EXPECT_LE(timing.start_s, timing.end_s);
    for (const OpId needed : program.dependencies_of(program.ops[timing.op])) {
      // Events have a resolution of half a microsecond; their times are floats of milliseconds.
      EXPECT_LE(report.timeline[needed].end_s, timing.start_s + 1e-6);
    }
  }
}

TEST_F(CudaBackendTest, KeepsGraphsOfTheLatestPrograms) {
  const Program program = tree_program(4, false);
  CudaBackend backend = backend_for(program);
  for (const std::int64_t size : {4096, 8192, 4096, 1024, 2048, 512, 4096}) {
    EXPECT_EQ(backend.run(program, {}, {.size_bytes = size}).executed->wrong, 0) << size;
  }
}

TEST_F(CudaBackendTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error_of(ring_program(4, false), {.size_bytes = std::int64_t{1} << 50},
                       ErrorKind::unsupported),
              HasSubstr("error: a message of 1024TiB needs "));
  try {
    CudaBackend({0}).run(ring_program(2, false), {}, {.size_bytes = 4});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(),
                HasSubstr("the program runs on 2 GPUs (2 ranks, 0 relays), but --devices "
                          "names 1"));
  }
  try {
    CudaBackend({0, 4096, 5000});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), HasSubstr("there is no GPU 4096 on this computer"));
    EXPECT_THAT(error.what(), HasSubstr("there is no GPU 5000 on this computer"));
  }
}

TEST_F(CudaBackendTest, ReportsADeadlockBeforeItRuns) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 1, 1);
  add_marker(program, 0, {1});
  add_marker(program, 0, {0});
  EXPECT_THAT(error_of(program, {.size_bytes = 4}, ErrorKind::runtime),
              HasSubstr("r0 lane 0: op 0 'compute 0 at r0 after 1' waits for op 1"));
}

// Longer than the timeout, which is for what does not move.
TEST_F(CudaBackendTest, WaitsOutComputations) {
  Program program;
  program.contract = test_contract(Collective::allreduce, 1, 1);
  // What is left of the patience after it, 0.8 s, bears a busy computer.
  add_marker(program, 0, {}, 1.0);
  RunOptions options{.size_bytes = 4, .check = false, .timeout_s = 0.8};
  EXPECT_GE(run(program, options).time_s, 1.0);
}

}  // namespace
}  // namespace espalier

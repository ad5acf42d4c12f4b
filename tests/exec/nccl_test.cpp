// SPDX-License-Identifier: Apache-2.0
// NCCL's own collectives on the buffers of programs, with stand-ins for NCCL and for CUDA.
#include "exec/cuda/nccl_backend.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/error_of.h"
#include "tests/exec/fake_cuda.h"
#include "tests/exec/fake_nccl.h"
#include "tests/exec/stand_in.h"
#include "tests/exec/test_programs.h"

namespace espalier {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StandIn load_nccl(const FakeNccl& behaviour) {
  StandIn library(FAKE_NCCL);
  library.function<void(const FakeNccl&)>(kSetFakeNccl)(behaviour);
  return library;
}

/// Does nothing to results: what NCCL does is all that can be right.
Program idle_program(const Contract& contract) {
  Builder builder("idle", contract);
  for (int rank = 0; rank < contract.ranks; ++rank) {
    const Region input = input_region(contract, rank);
    if (input.units > 0) builder.copy(builder.tmp(rank, 0, 1), builder.input(rank, 0, 1));
  }
  return builder.finish();
}

class Nccl : public testing::Test {
 protected:
  Nccl() { fake_cuda::reset({}); }
  ~Nccl() override {
    EXPECT_EQ(fake_cuda::live_objects(), 0);
    fake_cuda::reset({});
  }

  /// On GPUs 0, 1, ..., if `devices` does not say which.
  static RunReport run(const Program& program, const RunOptions& options,
                       std::vector<int> devices = {}) {
    CudaBackend gpus(std::move(devices));
    NcclBackend nccl(gpus);
    EXPECT_EQ(nccl.unsupported(program, {}), std::nullopt);
    return nccl.run(program, {}, options);
  }
  static std::string failure(const RunOptions& options = {.size_bytes = 400}) {
    return error_of([&] { run(ring_program(3, false), options); }, ErrorKind::runtime);
  }
};

TEST_F(Nccl, RunsEveryCollectiveOnTheBuffersOfAProgram) {
  const StandIn library = load_nccl({});
  for (const CollectiveInfo& collective : all_collectives()) {
    for (const int ranks : {1, 2, 4}) {
      for (const bool in_place : {false, true}) {
        for (const std::int64_t size : {0, 4, 4 * 103}) {
          Contract contract = test_contract(collective.id, ranks, ranks, in_place);
          if (collective.rooted) contract.root = ranks - 1;
          SCOPED_TRACE(std::string(collective.name) + (in_place ? " in place, " : ", ") +
                       std::to_string(ranks) + " ranks, " + std::to_string(size) + " bytes");
          const Program program = idle_program(contract);
          CudaBackend gpus;
          NcclBackend nccl(gpus);
          const bool overlaps =
              in_place && ranks > 1 &&
              (collective.id == Collective::alltoall || collective.id == Collective::sendrecv);
          ASSERT_EQ(nccl.unsupported(program, {}).has_value(), overlaps);
          if (overlaps) continue;
          const RunReport report =
              nccl.run(program, {}, {.size_bytes = size, .iterations = 3, .warmup = 1});
          EXPECT_EQ(report.executed->wrong, 0);
          EXPECT_GE(report.message_bytes, size);
          EXPECT_GT(report.executed->median_time_s, 0);
          EXPECT_THAT(
              report.executed->notes,
              ElementsAre(HasSubstr(" of NCCL 2.28.9 on the same buffers, in a CUDA graph")));
        }
      }
    }
  }
  EXPECT_EQ(library.function<int()>(kLiveFakeNccl)(), 0);
}

TEST_F(Nccl, KnowsEveryTypeAndOperator) {
  const StandIn library = load_nccl({});
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      const RunOptions options{.size_bytes = 8 * 77, .type = type, .op = op};
      EXPECT_EQ(run(ring_program(3, true), options).executed->wrong, 0)
          << to_string(type) << ", " << to_string(op);
    }
  }
}

TEST_F(Nccl, SharesBuffersWithThePrograms) {
  const StandIn library = load_nccl({});
  CudaBackend gpus({2, 0, 1});
  NcclBackend nccl(gpus);
  const Program program = ring_program(3, false);
  const RunOptions options{.size_bytes = 1200, .iterations = 2};
  EXPECT_EQ(gpus.run(program, {}, options).executed->wrong, 0);
  const std::size_t used = fake_cuda::used_bytes(0);
  EXPECT_EQ(nccl.run(program, {}, options).executed->wrong, 0);
  EXPECT_EQ(fake_cuda::used_bytes(0), used);
  EXPECT_EQ(gpus.run(program, {}, options).executed->wrong, 0);
}

TEST_F(Nccl, HasOneRankOnAGpu) {
  const StandIn library = load_nccl({});
  CudaBackend gpus({1, 0, 1});
  EXPECT_EQ(NcclBackend(gpus).unsupported(ring_program(3, false), {}),
            "NCCL has one rank on a GPU, but r0 and r2 share GPU 1");
}

TEST_F(Nccl, ReportsWrongResults) {
  const StandIn library = load_nccl({.is_wrong = true});
  const RunOptions options{.size_bytes = 1200, .type = DataType::int32, .iterations = 2};
  EXPECT_EQ(run(ring_program(3, false), options).executed->wrong, 3);  // each of three times
  EXPECT_EQ(run(ring_program(3, true), options).executed->wrong, 3);
}

TEST_F(Nccl, TimesStreamsWhereItCanNotBeCaptured) {
  const StandIn library = load_nccl({.refuses_capture = true});
  const RunReport report = run(ring_program(3, false), {.size_bytes = 1200, .iterations = 40});
  EXPECT_EQ(report.executed->wrong, 0);
  EXPECT_THAT(
      report.executed->notes,
      ElementsAre("ncclAllReduce of NCCL 2.28.9 on the same buffers, in streams, since there "
                  "can be no graph of it (ncclGroupEnd: invalid usage (5))"));
}

TEST_F(Nccl, ReportsWhatItSaysOfFailures) {
  const std::string internal =
      ": internal error - please report this issue to the NCCL developers "
      "(3), the fake was told to";
  for (const char* call : {"ncclCommInitAll", "ncclAllReduce", "ncclGroupEnd"}) {
    const StandIn library = load_nccl({.fails = call});
    EXPECT_EQ(failure(), "error: " + std::string(call) + internal);
    EXPECT_EQ(library.function<int()>(kLiveFakeNccl)(), 0);
  }
  const StandIn library = load_nccl({.fails_later = true, .hangs_on_gpu = true});
  EXPECT_THAT(failure(), HasSubstr("error: an NCCL call under way: internal error"));
}

TEST_F(Nccl, IsRefusedInOtherVersions) {
  const auto refusal = [](int version) {
    const StandIn library = load_nccl({.version = version});
    return error_of([] { require_nccl(); }, ErrorKind::unsupported);
  };
  const std::string hint = ", which this espalier does not call\n  help: NCCL 2 from 2.10.0 on";
  EXPECT_EQ(refusal(2804), "error: libnccl.so.2 is NCCL 2.8.4" + hint);
  EXPECT_EQ(refusal(20908), "error: libnccl.so.2 is NCCL 2.9.8" + hint);
  EXPECT_EQ(refusal(30001), "error: libnccl.so.2 is NCCL 3.0.1" + hint);
  EXPECT_EQ(refusal(23004), "nothing thrown");
  const StandIn library = load_nccl({.version = 22703});
  EXPECT_EQ(require_nccl(), 202703);
}

/// Names a file in ESPALIER_NCCL as long as it lives.
class NamedLibrary {
 public:
  explicit NamedLibrary(const char* file) { setenv("ESPALIER_NCCL", file, 1); }
  ~NamedLibrary() { unsetenv("ESPALIER_NCCL"); }
  NamedLibrary(const NamedLibrary&) = delete;
  NamedLibrary& operator=(const NamedLibrary&) = delete;
};

TEST_F(Nccl, IsMissingWithASentence) {
  const NamedLibrary nowhere("/nowhere/libnccl.so.2");
  const std::string error = error_of([] { require_nccl(); }, ErrorKind::unsupported);
  EXPECT_THAT(error, HasSubstr("error: NCCL was not found: /nowhere/libnccl.so.2: "));
  EXPECT_THAT(error, HasSubstr("help: install it (libnccl2), or name the file in ESPALIER_NCCL"));
  CudaBackend gpus;
  EXPECT_EQ(error_of([&] { NcclBackend nccl(gpus); }, ErrorKind::unsupported), error);
}

TEST_F(Nccl, IsNotEveryLibrary) {
  const NamedLibrary other(FAKE_NVML);
  EXPECT_EQ(error_of([] { require_nccl(); }, ErrorKind::unsupported),
            std::string("error: ") + FAKE_NVML + " has no ncclGetVersion");
}

// The one of this computer, where there is one: no GPU is needed to ask it for its version.
TEST_F(Nccl, HasWhatIsCalled) {
  void* const real = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (real == nullptr) GTEST_SKIP() << "there is no NCCL on this computer";
  dlclose(real);
  EXPECT_GE(require_nccl(), 201000);
}

/// In a process of its own, since nothing can be run after that; prints the error.
[[noreturn]] void hang(const FakeNccl& behaviour) {
  const StandIn library = load_nccl(behaviour);
  fake_cuda::reset({});
  CudaBackend gpus;
  NcclBackend nccl(gpus);
  try {
    nccl.run(ring_program(3, false), {}, {.size_bytes = 400, .timeout_s = 0.2});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::atexit([] { std::_Exit(98); });  // as CUDA's own would: it waits
  end_process(exit_code(ErrorKind::runtime));
}

TEST(NcclHang, EndsWithinTheTimeLimit) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(hang({.hangs_in_call = true}), testing::ExitedWithCode(3),
              "error: ncclAllReduce has not returned within 0.2 s\n  help: if it is only slow");
  EXPECT_EXIT(hang({.hangs_on_gpu = true}), testing::ExitedWithCode(3),
              "error: ncclAllReduce of NCCL 2.28.9 has not finished on the GPUs within 0.2 s");
}

}  // namespace
}  // namespace espalier

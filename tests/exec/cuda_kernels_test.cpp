// SPDX-License-Identifier: Apache-2.0
// The launches of exec/cuda/kernels.h on a GPU, where rounding, denormals and misaligned loads are
// its own; and on the stand-in for CUDA, which tests the test.
#include "exec/cuda/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "exec/cuda/cuda_backend.h"
#include "exec/cuda/memory.h"
#include "exec/host/combine_kernels.h"
#include "tests/exec/random_elements.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t kMaxElements = 20011;
constexpr std::size_t kMaxSources = 20;
constexpr std::size_t kMaxOffset = 15;  // elements after an aligned address

class CudaKernels : public testing::TestWithParam<std::tuple<DataType, ReduceOp>> {
 protected:
  void SetUp() override {
    if (const auto reason = cuda_unavailable()) GTEST_SKIP() << *reason;
    cuda::use_gpu(0);
    const std::size_t size = size_of(std::get<0>(GetParam()));
    // Elements, offset, 16 elements more on either side, and up to a multiple of 256 bytes.
    slot_bytes_ = (static_cast<std::size_t>(kMaxElements) + kMaxOffset + 32) * size + 255;
    slot_bytes_ = slot_bytes_ / 256 * 256;
    memory_ = cuda::allocate((kMaxSources + 1) * slot_bytes_, 0, "slots");
    table_ = cuda::allocate(kMaxSources * sizeof(std::byte*), 0, "a table");
    stream_ = cuda::make_stream(0);
  }

  std::byte* slot(std::size_t i) const {
    return static_cast<std::byte*>(memory_.get()) + i * slot_bytes_;
  }

  /// As a session has it: a few addresses in the launch, more in memory of the device.
  cuda::SourceList list_of(const std::vector<const std::byte*>& sources) const {
    cuda::SourceList list{};
    list.count = static_cast<int>(sources.size());
    if (sources.size() <= cuda::kMaxInlineSources) {
      std::ranges::copy(sources, list.addresses);
      return list;
    }
    copy_bytes(table_.get(), sources.data(), sources.size() * sizeof(std::byte*));
    list.table = static_cast<const std::byte* const*>(table_.get());
    return list;
  }

  static void copy_bytes(void* to, const void* from, std::size_t bytes) {
    cuda::require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy", 0);
    cuda::require(cudaDeviceSynchronize(), "cudaDeviceSynchronize", 0);
  }

  std::size_t slot_bytes_ = 0;
  cuda::DeviceBytes memory_;
  cuda::DeviceBytes table_;
  cuda::Stream stream_;
};

// Random bits, anywhere within 16 elements, with what lies beside the result left alone. Few blocks
// too, so that threads do several packs.
TEST_P(CudaKernels, GiveTheBitsOfTheHost) {
  const auto [type, op] = GetParam();
  constexpr unsigned kSeed = 20261120;
  std::mt19937_64 random(kSeed);
  const std::size_t size = size_of(type);
  for (const std::int64_t count :
       {std::int64_t{1}, std::int64_t{17}, std::int64_t{1031}, kMaxElements}) {
    for (const std::size_t k : {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{5},
                                std::size_t{8}, kMaxSources}) {
      const bool aligned = random() % 2 == 0;
      const auto offset = [&] { return aligned ? 0 : random() % (kMaxOffset + 1) * size; };
      std::vector<Bytes> sources;
      std::vector<const std::byte*> on_host;
      std::vector<const std::byte*> on_gpu;
      for (std::size_t i = 0; i < k; ++i) {
        sources.push_back(random_elements(type, count, random));
        std::byte* const at = slot(i) + offset();
        copy_bytes(at, sources[i].data(), sources[i].size());
        on_gpu.push_back(at);
      }
      for (const Bytes& source : sources) on_host.push_back(source.data());
      Bytes expected(slot_bytes_, std::byte{0x77});
      Bytes got = expected;
      const std::size_t at = 16 * size + offset();
      copy_bytes(slot(kMaxSources), expected.data(), slot_bytes_);
      combine(type, op, expected.data() + at, on_host, count);
      std::byte* const dst = slot(kMaxSources) + at;
      const int blocks = random() % 2 == 0 ? 2 : 512;
      cuda::require(
          k == 1
              ? cuda::launch_copy(dst, on_gpu[0], {count * static_cast<std::int64_t>(size), blocks},
                                  stream_.get())
              : cuda::launch_fold(type, op, dst, list_of(on_gpu), {count, blocks}, stream_.get()),
          "launch", 0);
      cuda::require(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize", 0);
      copy_bytes(got.data(), slot(kMaxSources), slot_bytes_);
      ASSERT_EQ(got == expected, true) << "seed " << kSeed << ", " << count << " elements, " << k
                                       << " sources, " << (aligned ? "aligned" : "anywhere");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaKernels,
    testing::Combine(testing::ValuesIn(all_data_types().begin(), all_data_types().end()),
                     testing::ValuesIn(all_reduce_ops().begin(), all_reduce_ops().end())),
    [](const auto& test) {
      return std::string(to_string(std::get<0>(test.param))) + "_" +
             std::string(to_string(std::get<1>(test.param)));
    });

}  // namespace
}  // namespace espalier

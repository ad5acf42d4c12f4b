// SPDX-License-Identifier: Apache-2.0
// What the kernels for GPUs do, compiled for this computer: one loop stands for all threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "exec/cuda/fold_body.h"
#include "exec/cuda/pattern_body.h"
#include "exec/host/combine_kernels.h"
#include "ir/data.h"
#include "tests/exec/random_elements.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::byte>;

/// As a launch of so many threads does it.
template <class Element, class Op>
void fold(std::byte* dst, const std::vector<const std::byte*>& sources, std::int64_t count,
          std::int64_t threads) {
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    cuda::fold_body<Element, Op>(dst, sources.data(), static_cast<int>(sources.size()), count,
                                 {thread, threads});
  }
}

template <class Element>
void fold(ReduceOp op, std::byte* dst, const std::vector<const std::byte*>& sources,
          std::int64_t count, std::int64_t threads) {
  switch (op) {
    case ReduceOp::sum:
      return fold<Element, Sum>(dst, sources, count, threads);
    case ReduceOp::prod:
      return fold<Element, Prod>(dst, sources, count, threads);
    case ReduceOp::min:
      return fold<Element, Min>(dst, sources, count, threads);
    case ReduceOp::max:
      return fold<Element, Max>(dst, sources, count, threads);
  }
}

void fold(DataType type, ReduceOp op, std::byte* dst, const std::vector<const std::byte*>& sources,
          std::int64_t count, std::int64_t threads) {
  switch (type) {
    case DataType::float32:
      return fold<cuda::Native<float>>(op, dst, sources, count, threads);
    case DataType::float64:
      return fold<cuda::Native<double>>(op, dst, sources, count, threads);
    case DataType::float16:
      return fold<cuda::Half>(op, dst, sources, count, threads);
    case DataType::bfloat16:
      return fold<cuda::Bfloat16>(op, dst, sources, count, threads);
    case DataType::int32:
      return fold<cuda::Native<std::int32_t>>(op, dst, sources, count, threads);
    case DataType::int64:
      return fold<cuda::Native<std::int64_t>>(op, dst, sources, count, threads);
    case DataType::uint8:
      return fold<cuda::Native<std::uint8_t>>(op, dst, sources, count, threads);
  }
}

class CudaFold : public testing::TestWithParam<std::tuple<DataType, ReduceOp>> {};

// Operands begin 0 to 5 elements after an address that is a multiple of 64, each elsewhere, and
// what stands beside the result must stay.
TEST_P(CudaFold, GivesTheBitsOfTheHost) {
  const auto [type, op] = GetParam();
  constexpr unsigned kSeed = 20260101;
  std::mt19937_64 random(kSeed);
  const std::size_t size = size_of(type);
  constexpr std::int64_t kMax = 3000;
  for (const std::int64_t count : {0, 1, 3, 15, 16, 17, 64, 65, 257, 1031, 3000}) {
    for (std::size_t k = 1; k <= 9; ++k) {
      for (const bool aligned : {false, true}) {
        const std::string what = "seed " + std::to_string(kSeed) + ", " + std::to_string(count) +
                                 " elements, " + std::to_string(k) + " sources";
        std::vector<Bytes> sources;
        std::vector<const std::byte*> srcs;
        std::vector<Bytes> storage(k + 1, Bytes(kMax * size + 256, std::byte{0x77}));
        const auto place = [&](std::size_t i) {
          auto* const begin = storage[i].data();
          const std::size_t to_aligned = 64 - reinterpret_cast<std::uintptr_t>(begin) % 64;
          return begin + to_aligned + (aligned ? 0 : random() % 6 * size);
        };
        for (std::size_t i = 0; i < k; ++i) {
          sources.push_back(random_elements(type, count, random));
          std::byte* const at = place(i);
          std::ranges::copy(sources[i], at);
          srcs.push_back(at);
        }
        std::byte* const dst = place(k);
        Bytes expected(static_cast<std::size_t>(count) * size);
        combine(type, op, expected.data(), srcs, count);
        Bytes surroundings = storage[k];
        std::ranges::copy(expected, surroundings.data() + (dst - storage[k].data()));
        fold(type, op, dst, srcs, count, count % 2 == 0 ? 32 : 7);
        ASSERT_EQ(storage[k], surroundings) << what;
      }
    }
  }
}

TEST_P(CudaFold, DestinationMayBeAnySource) {
  const auto [type, op] = GetParam();
  std::mt19937_64 random(3);
  constexpr std::int64_t kCount = 777;
  for (std::size_t k = 1; k <= 4; ++k) {
    for (std::size_t own = 0; own < k; ++own) {
      std::vector<Bytes> sources;
      std::vector<const std::byte*> srcs;
      for (std::size_t i = 0; i < k; ++i) sources.push_back(random_elements(type, kCount, random));
      for (const Bytes& source : sources) srcs.push_back(source.data());
      Bytes expected(sources[0].size());
      combine(type, op, expected.data(), srcs, kCount);
      fold(type, op, sources[own].data(), srcs, kCount, 64);
      ASSERT_EQ(sources[own], expected) << "source " << own << " of " << k << ", seed 3";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaFold,
    testing::Combine(testing::ValuesIn(all_data_types().begin(), all_data_types().end()),
                     testing::ValuesIn(all_reduce_ops().begin(), all_reduce_ops().end())),
    [](const auto& test) {
      return std::string(to_string(std::get<0>(test.param))) + "_" +
             std::string(to_string(std::get<1>(test.param)));
    });

// The smallest (or largest) of a NaN and a number is the first of them, as on the host.
TEST(CudaElements, MinAndMaxKeepTheFirstOfWhatDoesNotCompare) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  using Float = cuda::Native<float>;
  EXPECT_EQ((cuda::combine_stored<Float, Min>(1.0F, nan)), 1.0F);
  EXPECT_NE((cuda::combine_stored<Float, Min>(nan, 1.0F)), 1.0F);
  EXPECT_EQ((cuda::combine_stored<Float, Max>(1.0F, nan)), 1.0F);
  EXPECT_TRUE(std::signbit(cuda::combine_stored<Float, Max>(-0.0F, 0.0F)));
}

// Every 16-bit value there and back: the numbers stay, NaNs stay NaNs.
TEST(CudaElements, Bfloat16KeepsEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto stored = static_cast<std::uint16_t>(bits);
    const std::uint16_t back = cuda::Bfloat16::encode(cuda::Bfloat16::decode(stored));
    const bool is_nan = (bits & 0x7FFF) > 0x7F80;
    ASSERT_EQ(back, is_nan ? stored | 0x40 : stored) << std::hex << bits;
  }
}

template <class T>
void check_pattern(DataType type) {
  const int ranks = 3;
  constexpr std::int64_t kFirst = 4000;  // the table is gone through more than twice
  constexpr std::int64_t kCount = 9000;
  const auto bytes = [](std::vector<T>& elements) {
    return std::as_writable_bytes(std::span(elements));
  };
  for (const ReduceOp op : all_reduce_ops()) {
    std::vector<T> expected(kCount);
    fill_input(type, op, ranks, 1, kFirst, bytes(expected));
    const Bytes entries = pattern_table(type, op, ranks, 1);
    std::vector<T> table(kPatternPeriod);
    ASSERT_EQ(entries.size(), table.size() * sizeof(T));
    std::memcpy(table.data(), entries.data(), entries.size());
    std::vector<T> filled(kCount);
    constexpr std::int64_t kThreads = 5;
    for (std::int64_t thread = 0; thread < kThreads; ++thread) {
      cuda::fill_body(filled.data(), kFirst, kCount, table.data(), {thread, kThreads});
    }
    ASSERT_EQ(filled, expected) << to_string(type);
    filled[0] ^= 1;
    filled[8999] ^= 1;
    std::int64_t different = 0;
    for (std::int64_t thread = 0; thread < kThreads; ++thread) {
      different += cuda::count_different_body(filled.data(), kFirst, kCount, table.data(),
                                              {thread, kThreads});
    }
    EXPECT_EQ(different, 2);
  }
}

TEST(CudaPattern, IsThatOfTheHost) {
  check_pattern<std::uint8_t>(DataType::uint8);
  check_pattern<std::uint16_t>(DataType::float16);
  check_pattern<std::uint16_t>(DataType::bfloat16);
  check_pattern<std::uint32_t>(DataType::float32);
  check_pattern<std::uint32_t>(DataType::int32);
  check_pattern<std::uint64_t>(DataType::float64);
  check_pattern<std::uint64_t>(DataType::int64);
}

TEST(CudaPattern, CountsOtherBytes) {
  const std::vector<std::uint8_t> bytes{1, 1, 2, 1, 3};
  EXPECT_EQ(cuda::count_other_bytes_body(bytes.data(), 5, 1, {0, 1}), 2);
  EXPECT_EQ(cuda::count_other_bytes_body(bytes.data(), 5, 1, {1, 2}), 0);  // bytes 1 and 3
}

}  // namespace
}  // namespace espalier

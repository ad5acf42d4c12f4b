// SPDX-License-Identifier: Apache-2.0
// The kernels against combine_element of ir/, bit by bit.
#include "exec/host/combine_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ir/data.h"

namespace espalier {
namespace {

using Bytes = std::vector<std::byte>;

struct Case {
  DataType type;
  ReduceOp op;
  KernelSet set;
};

std::vector<KernelSet> kernel_sets() {
  std::vector<KernelSet> sets{KernelSet::baseline};
  if (best_kernel_set() != KernelSet::baseline) sets.push_back(best_kernel_set());
  return sets;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (const KernelSet set : kernel_sets()) cases.push_back({type, op, set});
    }
  }
  return cases;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(to_string(info.param.type)) + "_" + std::string(to_string(info.param.op)) +
         (info.param.set == KernelSet::avx2 ? "_avx2" : "_baseline");
}

template <class Bits>
void clear_if_not_finite(Bytes& bytes, std::size_t at, Bits exponent) {
  Bits bits;
  std::memcpy(&bits, bytes.data() + at, sizeof bits);
  if ((bits & exponent) == exponent) bits &= static_cast<Bits>(~exponent);
  std::memcpy(bytes.data() + at, &bits, sizeof bits);
}

// Random bits, so every sign, exponent and denormal occurs. NaN and infinity (whose sum makes a
// NaN) become small numbers: which payload a NaN has is nobody's promise.
Bytes random_elements(DataType type, std::int64_t count, std::mt19937_64& random) {
  const std::size_t size = size_of(type);
  Bytes bytes(static_cast<std::size_t>(count) * size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    if (type == DataType::float32) clear_if_not_finite<std::uint32_t>(bytes, at, 0x7F800000);
    if (type == DataType::float16) clear_if_not_finite<std::uint16_t>(bytes, at, 0x7C00);
    if (type == DataType::bfloat16) clear_if_not_finite<std::uint16_t>(bytes, at, 0x7F80);
    if (type == DataType::float64) {
      clear_if_not_finite<std::uint64_t>(bytes, at, 0x7FF0000000000000);
    }
  }
  return bytes;
}

// A NaN that arises on the way (infinity minus infinity after overflow) may differ in its payload.
bool is_nan(DataType type, const std::byte* element) {
  // x (+) x is a NaN only for a NaN; comparing min(x, x) with x finds none, so look at the bits.
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(type));
  switch (type) {
    case DataType::float32:
      return (bits & 0x7FFFFFFF) > 0x7F800000;
    case DataType::float64:
      return (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000;
    case DataType::float16:
      return (bits & 0x7FFF) > 0x7C00;
    case DataType::bfloat16:
      return (bits & 0x7FFF) > 0x7F80;
    default:
      return false;
  }
}

Bytes folded(const Case& test, const std::vector<Bytes>& sources) {
  Bytes result = sources[0];
  const std::size_t size = size_of(test.type);
  for (std::size_t i = 1; i < sources.size(); ++i) {
    for (std::size_t at = 0; at < result.size(); at += size) {
      combine_element(test.type, test.op, result.data() + at, sources[i].data() + at);
    }
  }
  return result;
}

void expect_same(const Case& test, const std::byte* got, const Bytes& expected,
                 const std::string& what) {
  const std::size_t size = size_of(test.type);
  for (std::size_t at = 0; at < expected.size(); at += size) {
    if (std::memcmp(got + at, expected.data() + at, size) == 0) continue;
    if (is_nan(test.type, got + at) && is_nan(test.type, expected.data() + at)) continue;
    FAIL() << what << ": element " << at / size << " differs";
  }
}

class CombineKernels : public testing::TestWithParam<Case> {};

TEST_P(CombineKernels, FoldFromTheLeftLikeTheInterpreter) {
  const Case& test = GetParam();
  constexpr unsigned kSeed = 20240517;
  std::mt19937_64 random(kSeed);
  const std::size_t size = size_of(test.type);
  for (const std::int64_t count :
       {0, 1, 2, 3, 7, 8, 9, 17, 511, 512, 513, 1023, 1024, 1031, 4099}) {
    for (std::size_t k = 1; k <= 9; ++k) {
      std::vector<Bytes> sources;
      for (std::size_t i = 0; i < k; ++i) {
        sources.push_back(random_elements(test.type, count, random));
      }
      const Bytes expected = folded(test, sources);
      // Operands begin 1, 2, ... elements into their buffers: aligned to elements only. What stands
      // right before and after the destination must stay.
      const std::string what = "seed " + std::to_string(kSeed) + ", " + std::to_string(count) +
                               " elements, " + std::to_string(k) + " sources";
      std::vector<Bytes> shifted;
      std::vector<const std::byte*> srcs;
      for (std::size_t i = 0; i < k; ++i) {
        shifted.emplace_back((i + 1) * size);
        shifted.back().insert(shifted.back().end(), sources[i].begin(), sources[i].end());
        srcs.push_back(shifted[i].data() + (i + 1) * size);
      }
      Bytes out(expected.size() + 4 * size, std::byte{0x77});
      combine(test.type, test.op, out.data() + 3 * size, srcs, count, test.set);
      expect_same(test, out.data() + 3 * size, expected, what);
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(out[2 * size + i], std::byte{0x77}) << what;
        ASSERT_EQ(out[3 * size + expected.size() + i], std::byte{0x77}) << what;
      }
    }
  }
}

TEST_P(CombineKernels, DestinationMayBeAnySource) {
  const Case& test = GetParam();
  constexpr unsigned kSeed = 7;
  std::mt19937_64 random(kSeed);
  constexpr std::int64_t kCount = 1500;  // more than a block
  for (std::size_t k = 1; k <= 9; ++k) {
    for (std::size_t own = 0; own < k; ++own) {
      std::vector<Bytes> sources;
      std::vector<const std::byte*> srcs;
      for (std::size_t i = 0; i < k; ++i) {
        sources.push_back(random_elements(test.type, kCount, random));
      }
      for (const Bytes& source : sources) srcs.push_back(source.data());
      const Bytes expected = folded(test, sources);
      combine(test.type, test.op, sources[own].data(), srcs, kCount, test.set);
      expect_same(test, sources[own].data(), expected,
                  "seed 7, source " + std::to_string(own) + " of " + std::to_string(k));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CombineKernels, testing::ValuesIn(all_cases()), name_of);

// Every 16-bit value, by copying its rounding: x + 0 must be x (-0 + 0 = 0), which fails when a
// value is converted wrongly in either direction.
TEST(CombineKernels16Bit, ConvertEveryValue) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    std::vector<std::uint16_t> values(1 << 16);
    std::vector<std::uint16_t> zeros(values.size(), 0);
    std::vector<std::uint16_t> sums(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
    const std::vector<const std::byte*> srcs{reinterpret_cast<const std::byte*>(values.data()),
                                             reinterpret_cast<const std::byte*>(zeros.data())};
    for (const KernelSet set : kernel_sets()) {
      combine(type, ReduceOp::sum, reinterpret_cast<std::byte*>(sums.data()), srcs, 1 << 16, set);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto* sum = reinterpret_cast<const std::byte*>(&sums[i]);
        if (is_nan(type, reinterpret_cast<const std::byte*>(&values[i]))) {
          ASSERT_TRUE(is_nan(type, sum)) << std::hex << i;
        } else {
          ASSERT_EQ(sums[i], i == 0x8000 ? 0 : i) << std::hex << i;
        }
      }
    }
  }
}

// Half has 11 significant bits: 2048 + 1 is a tie and rounds to the even 2048 each time, though the
// exact sum of all three, 2050, could be represented. So rounding is done after every operation.
TEST(CombineKernels16Bit, RoundAfterEveryOperation) {
  const std::uint16_t big = 0x6800;  // 2048 = 2^11
  const std::uint16_t one = 0x3C00;
  const std::vector<const std::byte*> srcs{reinterpret_cast<const std::byte*>(&big),
                                           reinterpret_cast<const std::byte*>(&one),
                                           reinterpret_cast<const std::byte*>(&one)};
  for (const KernelSet set : kernel_sets()) {
    std::uint16_t sum = 0;
    combine(DataType::float16, ReduceOp::sum, reinterpret_cast<std::byte*>(&sum), srcs, 1, set);
    EXPECT_EQ(sum, big);
  }
}

}  // namespace
}  // namespace espalier

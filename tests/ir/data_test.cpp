// SPDX-License-Identifier: Apache-2.0
#include "ir/data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace espalier {
namespace {

using Bytes = std::vector<std::byte>;

Bytes input(DataType type, ReduceOp op, int ranks, int rank, std::int64_t first,
            std::int64_t elements) {
  Bytes bytes(static_cast<std::size_t>(elements) * size_of(type));
  fill_input(type, op, ranks, rank, first, bytes);
  return bytes;
}

/// dst = dst (+) src, element by element.
void combine(DataType type, ReduceOp op, Bytes& dst, const Bytes& src) {
  for (std::size_t at = 0; at < dst.size(); at += size_of(type)) {
    combine_element(type, op, dst.data() + at, src.data() + at);
  }
}

std::int64_t differing(DataType type, const Bytes& a, const Bytes& b) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < a.size(); at += size_of(type)) {
    if (std::memcmp(a.data() + at, b.data() + at, size_of(type)) != 0) ++count;
  }
  return count;
}

std::string label(DataType type, ReduceOp op) {
  return std::string(to_string(type)) + " " + std::string(to_string(op));
}

template <class T>
T combined(DataType type, ReduceOp op, T a, T b) {
  static_assert(sizeof(T) <= 8);
  combine_element(type, op, reinterpret_cast<std::byte*>(&a), reinterpret_cast<std::byte*>(&b));
  return a;
}

TEST(Data, NamesAreThoseOfNcclTests) {
  std::vector<std::string> names;
  for (const DataType type : all_data_types()) {
    names.emplace_back(to_string(type));
    EXPECT_EQ(parse_data_type(to_string(type)), type);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"float", "double", "half", "bfloat16", "int32",
                                             "int64", "uint8"}));
  for (const ReduceOp op : all_reduce_ops()) EXPECT_EQ(parse_reduce_op(to_string(op)), op);
  EXPECT_FALSE(parse_data_type("float32").has_value());
  EXPECT_FALSE(parse_reduce_op("avg").has_value());
}

TEST(Data, IntegersWrap) {
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::sum, 2147483647, 1), -2147483648);
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::prod, 65536, 65536), 0);
  EXPECT_EQ(combined<std::int64_t>(DataType::int64, ReduceOp::prod, std::int64_t{1} << 62, 4), 0);
  EXPECT_EQ(combined<std::uint8_t>(DataType::uint8, ReduceOp::sum, 200, 100), 44);  // 300 - 256
  EXPECT_EQ(combined<std::uint8_t>(DataType::uint8, ReduceOp::prod, 255, 255), 1);  // (-1)(-1)
  EXPECT_EQ(combined<std::uint8_t>(DataType::uint8, ReduceOp::max, 255, 1), 255);   // unsigned
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::min, -1, 1), -1);
}

TEST(Data, SixteenBitTypesRoundAfterEveryOperation) {
  // half: 1 = 0x3c00, 2048 = 0x6800; 2049 is halfway between 2048 and 2050 and goes to even.
  EXPECT_EQ(combined<std::uint16_t>(DataType::float16, ReduceOp::sum, 0x6800, 0x3c00), 0x6800);
  // half: 65504 = 0x7bff is the largest; doubling it gives infinity, 0x7c00.
  EXPECT_EQ(combined<std::uint16_t>(DataType::float16, ReduceOp::sum, 0x7bff, 0x7bff), 0x7c00);
  // bfloat16 (the upper half of a float): 256 = 0x4380, 1 = 0x3f80; 257 rounds to 256.
  EXPECT_EQ(combined<std::uint16_t>(DataType::bfloat16, ReduceOp::sum, 0x4380, 0x3f80), 0x4380);
  // bfloat16: 3 = 0x4040, 3 * 3 = 9 = 0x4110.
  EXPECT_EQ(combined<std::uint16_t>(DataType::bfloat16, ReduceOp::prod, 0x4040, 0x4040), 0x4110);
}

/// The point of the inputs: whatever the order of combining, the result is expected_output's.
TEST(Data, EveryOrderOfCombiningGivesTheExpectedResult) {
  std::mt19937_64 random(1);
  for (const int ranks : {1, 2, 3, 7, 8, 16, 100, 257, 1024}) {
    // More than one period for few ranks, a part of one for many.
    const std::int64_t elements = ranks <= 16 ? 9001 : 211;
    const Contract contract{Collective::allreduce, ranks, 0, 1, false};
    const ElementLayout layout(contract, elements);
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        SCOPED_TRACE(label(type, op) + " ranks " + std::to_string(ranks));
        Bytes expected(static_cast<std::size_t>(elements) * size_of(type));
        expected_output(type, op, contract, layout, ranks - 1, 0, 1, expected);

        std::vector<Bytes> inputs;
        for (int r = 0; r < ranks; ++r) inputs.push_back(input(type, op, ranks, r, 0, elements));
        Bytes chain = inputs[0];
        for (int r = 1; r < ranks; ++r) combine(type, op, chain, inputs[r]);
        EXPECT_EQ(differing(type, chain, expected), 0);

        // A random tree: any two partial results are joined.
        while (inputs.size() > 1) {
          std::swap(inputs[random() % inputs.size()], inputs.back());
          const Bytes other = std::move(inputs.back());
          inputs.pop_back();
          combine(type, op, inputs[random() % inputs.size()], other);
        }
        EXPECT_EQ(differing(type, inputs[0], expected), 0);
      }
    }
  }
}

TEST(Data, AnElementDependsOnItsPlaceAloneNotOnHowABufferIsFilled) {
  for (const DataType type : all_data_types()) {
    const Bytes whole = input(type, ReduceOp::sum, 4, 2, 0, 20000);
    for (const auto& [first, count] :
         {std::pair{0, 1}, {1, 4092}, {4092, 2}, {4093, 4093}, {5000, 9999}, {19999, 1}}) {
      const Bytes part = input(type, ReduceOp::sum, 4, 2, first, count);
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + first * size_of(type), part.size()), 0)
          << to_string(type) << " [" << first << ", +" << count << ")";
    }
  }
}

/// Unit sizes, the length of the table the values come from, and its multiples.
constexpr std::array<std::int64_t, 14> kShifts{1,    2,    3,    7,     64,    1000,  1024,
                                               4093, 4096, 8186, 12279, 65536, 40930, 1 << 20};

TEST(Data, MisplacedUnitsShow) {
  constexpr std::int64_t kElements = 8192;
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      // prod has values +-1 and few +-2, which agree by chance in up to half of all elements.
      const std::int64_t minimum = op == ReduceOp::prod ? kElements / 3 : kElements * 3 / 4;
      const Bytes here = input(type, op, 8, 3, 0, kElements);
      for (const std::int64_t shift : kShifts) {
        EXPECT_GT(differing(type, here, input(type, op, 8, 3, shift, kElements)), minimum)
            << label(type, op) << " shifted by " << shift;
      }
      for (const int rank : {0, 2, 4, 7}) {
        EXPECT_GT(differing(type, here, input(type, op, 8, rank, 0, kElements)), minimum)
            << label(type, op) << " of rank " << rank;
      }
    }
  }
}

/// In bfloat16 the sums of 1024 ranks must stay within 256, so that at most 256 of them have
/// something to add at any position; still all ranks and places differ.
TEST(Data, MisplacedUnitsShowInTheNarrowestType) {
  constexpr std::int64_t kElements = 4096;
  const auto at = [&](int rank, std::int64_t first) {
    return input(DataType::bfloat16, ReduceOp::sum, 1024, rank, first, kElements);
  };
  const Bytes here = at(5, 0);
  for (const std::int64_t shift : kShifts) {
    EXPECT_GT(differing(DataType::bfloat16, here, at(5, shift)), kElements / 8) << shift;
  }
  for (const int rank : {1, 4, 6, 9, 261, 517, 773, 1023}) {
    EXPECT_GT(differing(DataType::bfloat16, here, at(rank, 0)), kElements / 16) << rank;
  }
}

TEST(Data, AMissingOrRepeatedContributionShows) {
  constexpr int kRanks = 16;
  constexpr std::int64_t kElements = 4096;
  for (const DataType type : all_data_types()) {
    for (const ReduceOp op : all_reduce_ops()) {
      for (int left_out = 0; left_out < kRanks; ++left_out) {
        SCOPED_TRACE(label(type, op) + " rank " + std::to_string(left_out));
        Bytes all = input(type, op, kRanks, 0, 0, kElements);
        Bytes without = input(type, op, kRanks, left_out == 0 ? 1 : 0, 0, kElements);
        for (int r = 1; r < kRanks; ++r) {
          combine(type, op, all, input(type, op, kRanks, r, 0, kElements));
          if (r == left_out || (left_out == 0 && r == 1)) continue;
          combine(type, op, without, input(type, op, kRanks, r, 0, kElements));
        }
        // min and max: one rank decides an element, each in turn: about 4096 / 16.
        EXPECT_GT(differing(type, all, without), 100);
        Bytes twice = all;
        combine(type, op, twice, input(type, op, kRanks, left_out, 0, kElements));
        if (op == ReduceOp::sum || op == ReduceOp::prod) {
          EXPECT_GT(differing(type, all, twice), kElements / 3);
        } else {
          EXPECT_EQ(differing(type, all, twice), 0);  // idempotent: not even a machine could tell
        }
      }
    }
  }
}

/// expected_output by its definition: each unit from origin_of, element by element.
Bytes expected_by_definition(DataType type, ReduceOp op, const Contract& contract,
                             const ElementLayout& layout, int rank) {
  Bytes all;
  const Region region = output_region(contract, rank);
  for (std::int64_t unit = 0; unit < region.units; ++unit) {
    const Origin origin = origin_of(contract, rank, unit);
    const std::int64_t first = layout.offset(origin.unit);
    const std::int64_t count = layout.count(region.begin + unit, 1);
    Bytes value = input(type, op, contract.ranks, std::max(origin.rank, 0), first, count);
    for (int r = 1; origin.rank < 0 && r < contract.ranks; ++r) {
      combine(type, op, value, input(type, op, contract.ranks, r, first, count));
    }
    all.insert(all.end(), value.begin(), value.end());
  }
  return all;
}

TEST(Data, ExpectedOutputFollowsTheContractOfEveryCollective) {
  for (const CollectiveInfo& collective : all_collectives()) {
    for (const bool in_place : {false, true}) {
      for (const std::int64_t elements : {0, 1, 5, 97, 30011}) {
        const Contract contract{collective.id, 3, collective.rooted ? 1 : 0, 6, in_place};
        const ElementLayout layout(contract, elements);
        for (int rank = 0; rank < contract.ranks; ++rank) {
          const Bytes expected =
              expected_by_definition(DataType::int32, ReduceOp::sum, contract, layout, rank);
          Bytes got(expected.size());
          const std::int64_t units = output_region(contract, rank).units;
          expected_output(DataType::int32, ReduceOp::sum, contract, layout, rank, 0, units, got);
          EXPECT_EQ(got, expected) << collective.name << " in place " << in_place << " elements "
                                   << elements << " rank " << rank;
        }
      }
    }
  }
}

TEST(Data, ExpectedOutputOfAPartIsThePartOfTheWhole) {
  const Contract contract{Collective::alltoall, 4, 0, 12, true};
  const ElementLayout layout(contract, 1001);
  const Bytes whole = expected_by_definition(DataType::float16, ReduceOp::sum, contract, layout, 2);
  for (std::int64_t begin = 0; begin < 12; ++begin) {
    for (std::int64_t units = 0; begin + units <= 12; ++units) {
      Bytes part(static_cast<std::size_t>(layout.count(begin, units)) * 2);
      expected_output(DataType::float16, ReduceOp::sum, contract, layout, 2, begin, units, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + layout.offset(begin) * 2));
    }
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "ir/data.h"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/check.h"
#include "core/hash.h"
#include "ir/pattern.h"

namespace espalier {
namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeRow, 7> kTypes{{{DataType::float32, "float", 4},
                                         {DataType::float64, "double", 8},
                                         {DataType::float16, "half", 2},
                                         {DataType::bfloat16, "bfloat16", 2},
                                         {DataType::int32, "int32", 4},
                                         {DataType::int64, "int64", 8},
                                         {DataType::uint8, "uint8", 1}}};
constexpr std::array<std::string_view, 4> kOpNames{"sum", "prod", "min", "max"};

/// Calls `body` with a value of the C++ type that `type` stands for.
template <class Body>
void with_type(DataType type, Body&& body) {
  switch (type) {
    case DataType::float32:
      return body(float{});
    case DataType::float64:
      return body(double{});
    case DataType::float16:
      return body(Eigen::half{});
    case DataType::bfloat16:
      return body(Eigen::bfloat16{});
    case DataType::int32:
      return body(std::int32_t{});
    case DataType::int64:
      return body(std::int64_t{});
    case DataType::uint8:
      return body(std::uint8_t{});
  }
}

/// Integers add and multiply as unsigned ones, which wrap by definition; the 16-bit floating types
/// of Eigen compute in float and round once.
template <class T>
T combine_values(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      } else {
        return a + b;
      }
    case ReduceOp::prod:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      } else {
        return a * b;
      }
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
  }
  return a;
}

// The inputs. Position `p` of a table of kPeriod positions gives rank r the small integer
// input_value(r, p); element i of an input stands at pattern_position(i), which is
// (i + phase(i / kPeriod)) mod kPeriod.
//
// - A table makes filling a buffer a series of memcpy, and what a reduction must give is reduced
//   once per position instead of once per element.
// - The phase, a hash of how often the table has been gone through, keeps the sequence from
//   repeating: with a plain period, a unit misplaced by a multiple of kPeriod elements would look
//   right. The period is prime so that the phases are not tied to unit sizes either.
// - Values are independent hashes of (rank, position): a unit swapped with its neighbour, another
//   rank's, or one that is one element off shows in nearly every element when the values have a
//   wide range, and in an element per `Shape::stride` or so when exactness leaves hardly any range
//   (1024 ranks in bfloat16).
constexpr std::int64_t kPeriod = kPatternPeriod;

/// Bounds on the values: they depend on type, operator and rank count, never on the rank.
struct Shape {
  ReduceOp op = ReduceOp::sum;
  std::int64_t ranks = 1;
  std::int64_t amplitude = 0;  ///< sum: values are -amplitude .. amplitude
  std::int64_t stride = 1;     ///< at each position one rank in `stride` may be out of the ordinary
};

/// Integers up to this magnitude, both signs, are exact in the type. Wrapping sums always are.
std::int64_t exact_limit(DataType type) {
  switch (type) {
    case DataType::float16:
      return 1 << 11;
    case DataType::bfloat16:
      return 1 << 8;
    case DataType::float32:
      return 1 << 24;
    default:
      return std::int64_t{1} << 31;
  }
}

Shape shape_of(DataType type, ReduceOp op, int ranks) {
  CHECK(ranks >= 1);
  Shape shape{op, ranks};
  switch (op) {
    case ReduceOp::sum:
      // Sums of any subset stay within (ranks / stride) * amplitude <= exact_limit.
      shape.amplitude = std::clamp<std::int64_t>(exact_limit(type) / ranks, 1, 127);
      shape.stride = (ranks + exact_limit(type) - 1) / exact_limit(type);
      break;
    case ReduceOp::prod:
      // Signs, and at most seven twos per position: +-128 is exact in bfloat16, finite in half, and
      // not 0 modulo 256.
      shape.stride = (ranks + 6) / 7;
      break;
    case ReduceOp::min:
    case ReduceOp::max:
      // One rank per position decides, so that every rank's contribution is seen somewhere.
      shape.stride = ranks;
      break;
  }
  return shape;
}

/// A number in [0, n) from the upper half of a hash.
std::int64_t scaled(std::uint64_t hash, std::int64_t n) {
  return static_cast<std::int64_t>(((hash >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

std::int64_t input_value(const Shape& shape, int rank, std::int64_t position) {
  const auto place = static_cast<std::uint64_t>(position);
  const std::uint64_t hash = mix64((static_cast<std::uint64_t>(rank) << 32) + place);
  bool special = true;
  if (shape.stride > 1) {
    const auto shift = static_cast<std::int64_t>(mix64(~place) >> 32);
    special = (rank + shift) % shape.stride == 0;
  }
  switch (shape.op) {
    case ReduceOp::sum:
      return special ? scaled(hash, 2 * shape.amplitude + 1) - shape.amplitude : 0;
    case ReduceOp::prod: {
      const std::int64_t magnitude = special && (hash & 2) != 0 ? 2 : 1;
      return (hash & 1) != 0 ? -magnitude : magnitude;
    }
    case ReduceOp::min:
      return special && shape.ranks > 1 ? 0 : 1 + scaled(hash, 254);
    case ReduceOp::max:
      return special && shape.ranks > 1 ? 255 : 1 + scaled(hash, 254);
  }
  return 0;
}

/// The combination of all ranks' values at a position, in integers: independent of
/// `combine_element`, which back ends and the interpreter are built on.
std::int64_t reduced_value(const Shape& shape, std::int64_t position) {
  std::int64_t result = input_value(shape, 0, position);
  for (int rank = 1; rank < shape.ranks; ++rank) {
    const std::int64_t value = input_value(shape, rank, position);
    switch (shape.op) {
      case ReduceOp::sum:
        result += value;
        break;
      case ReduceOp::prod:
        result *= value;
        break;
      case ReduceOp::min:
        result = std::min(result, value);
        break;
      case ReduceOp::max:
        result = std::max(result, value);
        break;
    }
  }
  return result;
}

/// What a rank has at a position; of rank -1, what all of them give.
std::int64_t origin_value(const Shape& shape, int rank, std::int64_t position) {
  return rank < 0 ? reduced_value(shape, position) : input_value(shape, rank, position);
}

/// Calls body(done, length, origin) for the stretches of a result's units
/// [unit_begin, unit_begin + units) that come from consecutive units of one input; `done` counts
/// from unit_begin.
template <class Body>
void for_each_origin(const Contract& contract, int rank, std::int64_t unit_begin,
                     std::int64_t units, Body&& body) {
  for (std::int64_t done = 0; done < units;) {
    const Origin origin = origin_of(contract, rank, unit_begin + done);
    std::int64_t length = 1;
    while (done + length < units) {
      const Origin next = origin_of(contract, rank, unit_begin + done + length);
      if (next.rank != origin.rank || next.unit != origin.unit + length) break;
      ++length;
    }
    body(done, length, origin);
    done += length;
  }
}

template <class T>
T from_integer(std::int64_t value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(value);  // uint8 wraps
  } else {
    return static_cast<T>(static_cast<float>(value));
  }
}

/// Calls body(position, offset, length) for the runs of consecutive table positions that the
/// elements [first, first + count) stand at; `offset` counts elements from `first`.
template <class Body>
void for_each_run(std::int64_t first, std::int64_t count, Body&& body) {
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t element = first + done;
    const std::int64_t position = pattern_position(element);
    const std::int64_t length =
        std::min({count - done, kPeriod - element % kPeriod, kPeriod - position});
    body(position, done, length);
    done += length;
  }
}

template <class T, class Value>
std::vector<T> make_table(Value&& value) {
  std::vector<T> table(kPeriod);
  for (std::int64_t position = 0; position < kPeriod; ++position) {
    table[static_cast<std::size_t>(position)] = from_integer<T>(value(position));
  }
  return table;
}

/// Writes the elements [first, ...) whose integer values value(position) gives, as T.
template <class T, class Value>
void generate(Value&& value, std::int64_t first, std::span<std::byte> out) {
  const auto count = static_cast<std::int64_t>(out.size() / sizeof(T));
  if (count < kPeriod) {
    for_each_run(first, count,
                 [&](std::int64_t position, std::int64_t offset, std::int64_t length) {
                   for (std::int64_t i = 0; i < length; ++i) {
                     const T element = from_integer<T>(value(position + i));
                     std::memcpy(out.data() + static_cast<std::size_t>(offset + i) * sizeof(T),
                                 &element, sizeof(T));
                   }
                 });
    return;
  }
  const std::vector<T> table = make_table<T>(value);
  for_each_run(first, count, [&](std::int64_t position, std::int64_t offset, std::int64_t length) {
    std::memcpy(out.data() + static_cast<std::size_t>(offset) * sizeof(T), table.data() + position,
                static_cast<std::size_t>(length) * sizeof(T));
  });
}

}  // namespace

std::string_view to_string(DataType type) { return kTypes[static_cast<std::size_t>(type)].name; }

std::string_view to_string(ReduceOp op) { return kOpNames[static_cast<std::size_t>(op)]; }

std::size_t size_of(DataType type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::optional<DataType> parse_data_type(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view name) {
  for (const ReduceOp op : all_reduce_ops()) {
    if (to_string(op) == name) return op;
  }
  return std::nullopt;
}

const Synonyms& data_type_synonyms() {
  static const Synonyms synonyms = {
      {"fp16", "half"},   {"f16", "half"},   {"float16", "half"},   {"bf16", "bfloat16"},
      {"fp32", "float"},  {"f32", "float"},  {"float32", "float"},  {"single", "float"},
      {"fp64", "double"}, {"f64", "double"}, {"float64", "double"}, {"int", "int32"},
      {"i32", "int32"},   {"long", "int64"}, {"i64", "int64"},      {"u8", "uint8"},
      {"byte", "uint8"},  {"char", "uint8"}, {"int8", "uint8"},
  };
  return synonyms;
}

const Synonyms& reduce_op_synonyms() {
  static const Synonyms synonyms = {
      {"add", "sum"},       {"plus", "sum"},    {"product", "prod"}, {"mul", "prod"},
      {"multiply", "prod"}, {"minimum", "min"}, {"maximum", "max"},
  };
  return synonyms;
}

std::span<const DataType> all_data_types() {
  static constexpr std::array types{DataType::float32,  DataType::float64, DataType::float16,
                                    DataType::bfloat16, DataType::int32,   DataType::int64,
                                    DataType::uint8};
  return types;
}

std::span<const ReduceOp> all_reduce_ops() {
  static constexpr std::array ops{ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max};
  return ops;
}

void combine_element(DataType type, ReduceOp op, std::byte* dst, const std::byte* src) {
  with_type(type, [&](auto a) {
    auto b = a;
    std::memcpy(&a, dst, sizeof a);
    std::memcpy(&b, src, sizeof b);
    a = combine_values(op, a, b);
    std::memcpy(dst, &a, sizeof a);
  });
}

void fill_input(DataType type, ReduceOp op, int ranks, int rank, std::int64_t first,
                std::span<std::byte> out) {
  CHECK(rank >= 0 && rank < ranks && first >= 0);
  CHECK(out.size() % size_of(type) == 0);
  const Shape shape = shape_of(type, op, ranks);
  with_type(type, [&](auto zero) {
    generate<decltype(zero)>([&](std::int64_t p) { return input_value(shape, rank, p); }, first,
                             out);
  });
}

void expected_output(DataType type, ReduceOp op, const Contract& contract,
                     const ElementLayout& layout, int rank, std::int64_t unit_begin,
                     std::int64_t units, std::span<std::byte> out) {
  const Region region = output_region(contract, rank);
  CHECK(unit_begin >= 0 && units >= 0 && unit_begin + units <= region.units);
  const std::int64_t base = region.begin + unit_begin;
  CHECK(out.size() == static_cast<std::size_t>(layout.count(base, units)) * size_of(type));
  const Shape shape = shape_of(type, op, contract.ranks);
  for_each_origin(contract, rank, unit_begin, units,
                  [&](std::int64_t done, std::int64_t length, const Origin& origin) {
                    const auto offset =
                        static_cast<std::size_t>(layout.count(base, done)) * size_of(type);
                    const auto bytes =
                        static_cast<std::size_t>(layout.count(base + done, length)) * size_of(type);
                    with_type(type, [&](auto zero) {
                      generate<decltype(zero)>(
                          [&](std::int64_t p) { return origin_value(shape, origin.rank, p); },
                          layout.offset(origin.unit), out.subspan(offset, bytes));
                    });
                  });
}

std::vector<std::byte> pattern_table(DataType type, ReduceOp op, int ranks, int rank) {
  CHECK(rank >= -1 && rank < ranks);
  const Shape shape = shape_of(type, op, ranks);
  std::vector<std::byte> bytes(static_cast<std::size_t>(kPeriod) * size_of(type));
  with_type(type, [&](auto zero) {
    const auto table = make_table<decltype(zero)>(
        [&](std::int64_t position) { return origin_value(shape, rank, position); });
    std::memcpy(bytes.data(), table.data(), bytes.size());
  });
  return bytes;
}

std::vector<ResultRun> result_runs(const Contract& contract, const ElementLayout& layout,
                                   int rank) {
  const Region region = output_region(contract, rank);
  std::vector<ResultRun> runs;
  for_each_origin(
      contract, rank, 0, region.units,
      [&](std::int64_t done, std::int64_t length, const Origin& origin) {
        runs.push_back({layout.count(region.begin, done), layout.count(region.begin + done, length),
                        origin.rank, layout.offset(origin.unit)});
      });
  return runs;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "ir/interpret.h"

#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "ir/op_order.h"

namespace espalier {
namespace {

constexpr std::byte kUnwritten{0xA5};
constexpr std::size_t kLargestElement = 8;

std::vector<std::byte>& buffer_of(Memory& memory, PlaceId place, Buffer buffer) {
  return memory.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
}

const std::vector<std::byte>& buffer_of(const Memory& memory, PlaceId place, Buffer buffer) {
  return memory.places[static_cast<std::size_t>(place)][static_cast<std::size_t>(buffer)];
}

/// The first byte of an operand.
std::byte* data_of(Memory& memory, const ElementLayout& layout, DataType type,
                   const Operand& operand) {
  return buffer_of(memory, operand.place, operand.buffer).data() +
         static_cast<std::size_t>(layout.offset(operand.begin)) * size_of(type);
}

void run_op(const Program& program, const Op& op, DataType type, ReduceOp reduce_op,
            const ElementLayout& layout, Memory& memory) {
  if (op.kind != OpKind::combine) return;
  const std::size_t element_size = size_of(type);
  std::vector<std::byte*> dsts;
  for_each_destination(
      program, op, [&](const Operand& dst) { dsts.push_back(data_of(memory, layout, type, dst)); });
  std::vector<const std::byte*> srcs;
  for (const Operand& source : program.sources_of(op)) {
    CHECK(layout.count(source.begin, op.length) == layout.count(op.dst.begin, op.length));
    srcs.push_back(data_of(memory, layout, type, source));
  }
  const auto bytes = static_cast<std::size_t>(layout.count(op.dst.begin, op.length)) * element_size;
  for (std::size_t at = 0; at < bytes; at += element_size) {
    std::byte value[kLargestElement];  // dst may be one of the sources
    std::memcpy(value, srcs.front() + at, element_size);
    for (std::size_t i = 1; i < srcs.size(); ++i) {
      combine_element(type, reduce_op, value, srcs[i] + at);
    }
    for (std::byte* dst : dsts) std::memcpy(dst + at, value, element_size);
  }
}

}  // namespace

Memory initial_memory(const Program& program, DataType type, ReduceOp op, std::int64_t elements) {
  const Contract& contract = program.contract;
  const ElementLayout layout(contract, elements);
  const std::vector<std::int64_t> tmp = tmp_units(program);
  const auto bytes = [&](std::int64_t units) {
    return static_cast<std::size_t>(layout.offset(units)) * size_of(type);
  };
  Memory memory;
  memory.places.resize(static_cast<std::size_t>(program.places()));
  for (PlaceId place = 0; place < program.places(); ++place) {
    buffer_of(memory, place, Buffer::tmp)
        .assign(bytes(tmp[static_cast<std::size_t>(place)]), kUnwritten);
    if (place >= contract.ranks) continue;
    for (const Buffer buffer : {Buffer::in, Buffer::out}) {
      buffer_of(memory, place, buffer)
          .assign(bytes(buffer_units(contract, place, buffer)), kUnwritten);
    }
    const Region input = input_region(contract, place);
    const std::span<std::byte> all = buffer_of(memory, place, input.buffer);
    fill_input(
        type, op, contract.ranks, place, 0,
        all.subspan(bytes(input.begin), bytes(input.begin + input.units) - bytes(input.begin)));
  }
  return memory;
}

void interpret(const Program& program, DataType type, ReduceOp op, std::int64_t elements,
               Memory& memory) {
  const LaneChains lanes = lane_chains(program);
  const std::vector<OpId> order = run_order(program, lanes);
  const std::vector<OpId> cycle = find_cycle(program, lanes, order);
  if (!cycle.empty()) {
    throw Error(ErrorKind::input,
                "the program cannot finish: " + describe_cycle(program, lanes, cycle));
  }
  const ElementLayout layout(program.contract, elements);
  for (const OpId id : order) run_op(program, program.ops[id], type, op, layout, memory);
}

std::int64_t count_wrong(const Program& program, DataType type, ReduceOp op, std::int64_t elements,
                         const Memory& memory) {
  const Contract& contract = program.contract;
  const ElementLayout layout(contract, elements);
  const std::size_t element_size = size_of(type);
  std::int64_t wrong = 0;
  for (int rank = 0; rank < contract.ranks; ++rank) {
    const Region region = output_region(contract, rank);
    if (region.units == 0) continue;
    std::vector<std::byte> expected(
        static_cast<std::size_t>(layout.count(region.begin, region.units)) * element_size);
    expected_output(type, op, contract, layout, rank, 0, region.units, expected);
    const std::byte* got = buffer_of(memory, rank, region.buffer).data() +
                           static_cast<std::size_t>(layout.offset(region.begin)) * element_size;
    for (std::size_t at = 0; at < expected.size(); at += element_size) {
      if (std::memcmp(got + at, expected.data() + at, element_size) != 0) ++wrong;
    }
  }
  return wrong;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_buffers.h"

#include <fmt/format.h>

#include "formats/op_names.h"

namespace espalier {

std::optional<Collective> msccl_collective(std::string_view label) {
  if (label == "reduce_scatter") return Collective::reducescatter;
  return parse_collective(label);
}

MscclBuffers::MscclBuffers(const MscclAlgo& algo, const Contract& contract)
    : algo_(algo), contract_(contract) {}

Region MscclBuffers::region(int gpu, char buffer) const {
  return buffer == 'i' ? input_region(contract_, gpu) : output_region(contract_, gpu);
}

bool MscclBuffers::is_given(int gpu, char buffer) const {
  return buffer == 's' || region(gpu, buffer).units > 0 ||
         (contract_.in_place && buffer_units(contract_, gpu, Buffer::out) > 0);
}

Operand MscclBuffers::operand(int gpu, const MscclAlgo::Reference& reference) const {
  const std::int64_t scratch = algo_.gpus[static_cast<std::size_t>(gpu)].scratch;
  const auto at = [&](Buffer buffer, std::int64_t begin) {
    return Operand{gpu, static_cast<std::uint32_t>(begin + reference.offset), buffer};
  };
  if (reference.buffer == 's') return at(Buffer::tmp, 0);
  const bool is_input = reference.buffer == 'i';
  const Region place = region(gpu, reference.buffer);
  if (place.units > 0) return at(place.buffer, place.begin);
  if (is_given(gpu, reference.buffer)) return at(Buffer::out, 0);
  return at(Buffer::tmp, scratch + (is_input || contract_.in_place ? 0 : algo_.chunks));
}

std::string MscclBuffers::name(const Slice& slice) const {
  const std::int64_t own = algo_.gpus[static_cast<std::size_t>(slice.place)].scratch;
  std::int64_t begin = slice.begin;
  std::string_view buffer = "s";
  if (slice.buffer != Buffer::tmp) {
    // In place, the larger one of input and output is all of the buffer.
    const bool is_input =
        slice.buffer == Buffer::in ||
        (contract_.in_place && region(slice.place, 'i').units > region(slice.place, 'o').units);
    buffer = is_input ? "i" : "o";
    begin -= region(slice.place, is_input ? 'i' : 'o').begin;
  } else if (begin >= scratch(slice.place)) {
    return fmt::format("a message to gpu {}", slice.place);
  } else if (begin >= own) {
    begin -= own;
    buffer = begin < algo_.chunks ? "i" : "o";
    begin %= algo_.chunks;
  }
  return foreign_slice(buffer, begin, begin + slice.length, slice.place);
}

std::int64_t MscclBuffers::scratch(int gpu) const {
  return algo_.gpus[static_cast<std::size_t>(gpu)].scratch + std::int64_t{2} * algo_.chunks;
}

}  // namespace espalier

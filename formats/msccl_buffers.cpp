// SPDX-License-Identifier: Apache-2.0
#include "formats/msccl_buffers.h"

#include "core/words.h"

namespace espalier {

std::optional<Collective> msccl_collective(std::string_view label) {
  if (label == "reduce_scatter") return Collective::reducescatter;
  return parse_collective(label);
}

MscclBuffers::MscclBuffers(const MscclAlgo& algo, const Contract& contract)
    : algo_(algo), contract_(contract) {}

Operand MscclBuffers::operand(int gpu, const MscclAlgo::Reference& reference) const {
  const std::int64_t scratch = algo_.gpus[static_cast<std::size_t>(gpu)].scratch;
  const auto at = [&](Buffer buffer, std::int64_t begin) {
    return Operand{gpu, static_cast<std::uint32_t>(begin + reference.offset), buffer};
  };
  if (reference.buffer == 's') return at(Buffer::tmp, 0);
  const bool is_input = reference.buffer == 'i';
  const Region region = is_input ? input_region(contract_, gpu) : output_region(contract_, gpu);
  if (region.units > 0) return at(region.buffer, region.begin);
  if (contract_.in_place && buffer_units(contract_, gpu, Buffer::out) > 0) {
    return at(Buffer::out, 0);
  }
  return at(Buffer::tmp, scratch + (is_input || contract_.in_place ? 0 : algo_.chunks));
}

std::int64_t MscclBuffers::scratch(int gpu) const {
  return algo_.gpus[static_cast<std::size_t>(gpu)].scratch + std::int64_t{2} * algo_.chunks;
}

}  // namespace espalier

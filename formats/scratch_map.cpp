// SPDX-License-Identifier: Apache-2.0
#include "formats/scratch_map.h"

#include <algorithm>

namespace espalier {

std::int64_t ScratchMap::position(const Operand& operand, int i) const {
  const std::uint64_t unit = std::uint64_t{operand.begin} + static_cast<std::uint64_t>(i);
  if (operand.buffer != Buffer::tmp) return static_cast<std::int64_t>(unit) % block_;
  const auto found = holds_.find(cell(operand.place, unit));
  return found == holds_.end() ? -1 : found->second;
}

std::optional<std::vector<ScratchMap::Run>> ScratchMap::note(const Operand& dst,
                                                             std::span<const Operand> sources,
                                                             int count) {
  std::vector<Run> runs;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = position(sources.front(), i);
    for (const Operand& source : sources) {
      if (at < 0 || position(source, i) != at) return std::nullopt;
    }
    const std::int64_t unit = std::int64_t{dst.begin} + i;
    if (dst.buffer == Buffer::tmp) {
      holds_[cell(dst.place, static_cast<std::uint64_t>(unit))] = at;
    } else if (unit % block_ != at) {
      return std::nullopt;
    }
    std::vector<std::int64_t> turns;
    const auto add_turn = [&](const Operand& operand) {
      const std::int64_t chunk = std::int64_t{operand.begin} + i;
      const bool is_scratch = operand.buffer == Buffer::tmp;
      turns.push_back(is_scratch ? ((at - chunk) % block_ + block_) % block_ : 0);
      if (is_scratch) chunks_[{operand.place, turns.back()}].insert(chunk);
    };
    add_turn(dst);
    for (const Operand& source : sources) add_turn(source);
    if (runs.empty() || runs.back().turns != turns) runs.push_back({i, 0, std::move(turns)});
    ++runs.back().count;
  }
  return runs;
}

void ScratchMap::place() {
  std::map<PlaceId, std::vector<bool>> taken;
  // Chunks of the same position come one block after the other, so that looking begins where it
  // last ended.
  std::map<std::pair<PlaceId, std::int64_t>, std::int64_t> tried;
  for (const auto& one : chunks_) {
    const std::set<std::int64_t>& chunks = one.second;
    const auto& [place, turn] = one.first;
    std::vector<bool>& used = taken[place];
    const std::int64_t first = *chunks.begin() + turn;
    std::int64_t& from = tried[{place, first % block_}];
    const auto is_free = [&](std::int64_t shift) {
      return std::ranges::none_of(chunks, [&](std::int64_t chunk) {
        const auto unit = static_cast<std::size_t>(chunk + shift);
        return unit < used.size() && used[unit];
      });
    };
    std::int64_t shift = turn - first / block_ * block_ + from * block_;
    for (; !is_free(shift); shift += block_) ++from;
    for (const std::int64_t chunk : chunks) {
      const auto unit = static_cast<std::size_t>(chunk + shift);
      if (unit >= used.size()) used.resize(unit + 1, false);
      used[unit] = true;
    }
    shifts_[one.first] = shift;
  }
}

Operand ScratchMap::placed(const Operand& operand, int begin, std::int64_t turn) const {
  Operand moved = operand;
  moved.begin += static_cast<std::uint32_t>(begin);
  if (operand.buffer == Buffer::tmp) {
    const std::int64_t shift = shifts_.at({operand.place, turn});
    moved.begin = static_cast<std::uint32_t>(std::int64_t{moved.begin} + shift);
  }
  return moved;
}

}  // namespace espalier

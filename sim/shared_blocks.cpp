// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_blocks.h"

#include <algorithm>

#include "ir/lane_numbers.h"

namespace espalier {
namespace {

/// Dates no further apart than this part of them differ by roundings, as in TimeUnit::between.
constexpr double kSame = 0x1p-40;

}  // namespace

SharedBlocks::SharedBlocks(const Program& program, const BlockMap& blocks)
    : state_(blocks.shared_blocks()) {
  if (!blocks.shares()) return;
  places_.reserve(program.ops.size());
  LaneNumbers numbers;
  std::vector<OpPlace> next;  // by lane
  for (const Op& op : program.ops) {
    const std::uint32_t number = numbers.number(op.at, op.lane);
    if (number == next.size()) next.push_back({blocks.shared_block(op.at, op.lane), 0, op.lane});
    places_.push_back(next[number]);
    ++next[number].position;
  }
}

void SharedBlocks::list(std::uint32_t number) {
  Block& block = state_[number];
  if (block.is_listed || block.is_busy || !block.has_next()) return;
  block.is_listed = true;
  open_.push_back(number);
}

void SharedBlocks::wait(OpId id, Ticks ready) {
  const OpPlace& place = places_[id];
  Block& block = state_[place.block];
  std::vector<Waiting>& all = block.waiting;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(block.next);
  const auto known =
      std::ranges::lower_bound(first, all.end(), ready.value * (1 - kSame), {}, &Waiting::instant);
  const bool is_known = known != all.end() && known->instant <= ready.value * (1 + kSame);
  const Waiting one{is_known ? known->instant : ready.value, place.position, place.lane, id};
  all.insert(std::ranges::upper_bound(first, all.end(), one), one);
  list(place.block);
}

void SharedBlocks::free(OpId id, Ticks now) {
  const std::uint32_t number = block_of(id);
  if (number == BlockMap::kNone) return;
  Block& block = state_[number];
  block.is_busy = false;
  block.last = id;
  block.freed = now;
  list(number);
}

std::optional<SharedBlocks::Taken> SharedBlocks::take() {
  if (open_.empty()) return std::nullopt;
  const std::uint32_t number = open_.back();
  open_.pop_back();
  Block& block = state_[number];
  block.is_listed = false;
  block.is_busy = true;
  const Waiting& first = block.waiting[block.next++];
  Taken taken{first.op, {}};
  if (first.instant <= block.freed.value) taken.waited_for = block.last;
  if (2 * block.next >= block.waiting.size()) {
    block.waiting.erase(block.waiting.begin(),
                        block.waiting.begin() + static_cast<std::ptrdiff_t>(block.next));
    block.next = 0;
  }
  return taken;
}

}  // namespace espalier

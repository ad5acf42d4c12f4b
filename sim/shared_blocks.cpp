// SPDX-License-Identifier: Apache-2.0
#include "sim/shared_blocks.h"

#include <unordered_map>

namespace espalier {
namespace {

/// Dates no further apart than this part of them differ by roundings, as in TimeUnit::between.
constexpr double kSame = 0x1p-40;

}  // namespace

SharedBlocks::SharedBlocks(const Program& program, const BlockMap& blocks)
    : program_(program), blocks_(blocks), state_(blocks.shared_blocks()) {
  if (!blocks.shares()) return;
  positions_.reserve(program.ops.size());
  std::unordered_map<std::uint64_t, std::uint32_t> next;
  for (const Op& op : program.ops) {
    positions_.push_back(next[static_cast<std::uint64_t>(op.at) << 16 | op.lane]++);
  }
}

void SharedBlocks::list(std::uint32_t number) {
  Block& block = state_[number];
  if (block.is_listed || block.is_busy || block.waiting.empty()) return;
  block.is_listed = true;
  open_.push_back(number);
}

void SharedBlocks::wait(OpId id, Ticks ready) {
  const Op& op = program_.ops[id];
  const std::uint32_t number = block_of(op);
  auto& waiting = state_[number].waiting;
  auto instant = waiting.lower_bound(ready.value * (1 - kSame));
  if (instant == waiting.end() || instant->first > ready.value * (1 + kSame)) {
    instant = waiting.emplace_hint(instant, ready.value, Instant());
  }
  instant->second.push({positions_[id], op.lane, id});
  list(number);
}

void SharedBlocks::free(OpId id, Ticks now) {
  const std::uint32_t number = block_of(program_.ops[id]);
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
  const auto first = block.waiting.begin();
  Taken taken{first->second.top().op, {}};
  if (first->first <= block.freed.value) taken.waited_for = block.last;
  first->second.pop();
  if (first->second.empty()) block.waiting.erase(first);
  return taken;
}

}  // namespace espalier

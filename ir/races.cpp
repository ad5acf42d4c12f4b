// SPDX-License-Identifier: Apache-2.0
#include "ir/races.h"

#include <algorithm>
#include <bit>

#include "core/hash.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxSyncs = std::size_t{1} << 21;

}  // namespace

RaceChecker::RaceChecker(const Program& program, const LaneChains& lanes,
                         const std::vector<OpId>& order)
    : program_(program), lanes_(lanes), order_(order), place_(order.size()) {
  for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<std::uint32_t>(i);
  const std::size_t pairs = 4 * std::max<std::size_t>(program.dependencies.size(), 1);
  syncs_.resize(std::min(std::bit_ceil(pairs), kMaxSyncs));
}

RaceChecker::Sync& RaceChecker::sync(std::uint32_t to, std::uint32_t from) {
  const std::uint64_t key = (std::uint64_t{to} << 32) | from;
  return syncs_[mix64(key) & (syncs_.size() - 1)];
}

void RaceChecker::visit(OpId op) {
  const std::uint32_t to = lanes_.chain[op];
  for (const OpId earlier : program_.dependencies_of(program_.ops[op])) {
    const std::uint32_t from = lanes_.chain[earlier];
    Sync& entry = sync(to, from);
    // A pair of chains that is pushed out costs time, never exactness.
    if (entry.to != to || entry.from != from) entry = {to, from, 0};
    entry.position = std::max(entry.position, lanes_.position[earlier]);
  }
}

void RaceChecker::require(OpId earlier, OpId later) {
  const std::uint32_t to = lanes_.chain[later];
  const std::uint32_t from = lanes_.chain[earlier];
  if (to == from) return;  // the run order keeps a lane's order
  const Sync& entry = sync(to, from);
  if (entry.to == to && entry.from == from && entry.position >= lanes_.position[earlier]) return;
  const Pair pair{place_[earlier], place_[later]};
  if (open_.empty() || open_.back() != pair) open_.push_back(pair);
}

std::vector<std::pair<OpId, OpId>> RaceChecker::unordered() {
  std::sort(open_.begin(), open_.end());
  open_.erase(std::unique(open_.begin(), open_.end()), open_.end());
  std::vector<std::pair<OpId, OpId>> result;
  if (open_.empty()) return result;
  reached_.resize(order_.size());
  const Pair* const end = open_.data() + open_.size();
  for (const Pair* first = open_.data(); first != end;) {
    const Pair* last = first;
    int sources = 0;
    for (; last != end; ++last) {
      const bool fresh = last == first || last->earlier != (last - 1)->earlier;
      if (fresh && sources++ == 64) break;
    }
    follow(first, last, result);
    first = last;
  }
  return result;
}

void RaceChecker::follow(const Pair* first, const Pair* last,
                         std::vector<std::pair<OpId, OpId>>& result) {
  const std::uint32_t begin = first->earlier;
  std::uint32_t end = 0;
  for (const Pair* pair = first; pair != last; ++pair) end = std::max(end, pair->later + 1);

  // Which earlier op each bit stands for: they start in order, so the next bit is the next source.
  const Pair* source = first;
  int bits = 0;
  std::vector<std::uint32_t> source_place;
  for (std::uint32_t at = begin; at < end; ++at) {
    const OpId op = order_[at];
    std::uint64_t mask = 0;
    const auto join = [&](OpId earlier) {
      if (place_[earlier] >= begin) mask |= reached_[place_[earlier]];
    };
    for (const OpId earlier : program_.dependencies_of(program_.ops[op])) join(earlier);
    if (lanes_.previous[op] != LaneChains::kNone) join(lanes_.previous[op]);
    if (source != last && source->earlier == at) {
      mask |= std::uint64_t{1} << bits++;
      source_place.push_back(at);
      while (source != last && source->earlier == at) ++source;
    }
    reached_[at] = mask;
  }

  std::size_t bit = 0;
  for (const Pair* pair = first; pair != last; ++pair) {
    while (source_place[bit] != pair->earlier) ++bit;
    if ((reached_[pair->later] >> bit & 1) == 0) {
      result.emplace_back(order_[pair->earlier], order_[pair->later]);
    }
  }
}

}  // namespace espalier

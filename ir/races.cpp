// SPDX-License-Identifier: Apache-2.0
#include "ir/races.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/hash.h"
#include "core/interruption.h"

namespace espalier {
namespace {

constexpr std::size_t kMinSyncs = std::size_t{1} << 8;
constexpr std::size_t kMaxSyncs = std::size_t{1} << 21;
/// It has no more than so many times the entries that are used.
constexpr std::size_t kMinUsed = 8;
/// Entries of which a pair of chains may be any: a line of a cache.
constexpr std::size_t kBucket = 4;
/// Lists up to this length are looked at reader by reader and not remembered.
constexpr int kFewReaders = 8;
/// Ops looked at one behind the other for one that all readers come before, and what each of them
/// waits for.
constexpr int kMaxSteps = 3;
constexpr std::size_t kMaxBranches = 4;
/// Of readers that are looked at one by one, for each op and dependency of the program.
constexpr std::int64_t kQuickSteps = 32;

}  // namespace

RaceChecker::RaceChecker(const Program& program, const LaneChains& lanes,
                         const std::vector<OpId>& order, const AccessTracker& accesses)
    : program_(program),
      lanes_(lanes),
      order_(order),
      accesses_(accesses),
      place_(order.size()),
      steps_left_(kQuickSteps *
                  static_cast<std::int64_t>(order.size() + program.dependencies.size())) {
  for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<std::uint32_t>(i);
  syncs_.resize(kMinSyncs);
}

const RaceChecker::Sync* RaceChecker::find_sync(std::uint32_t to, std::uint32_t from) const {
  const Sync* const bucket = syncs_.data() + first_in_bucket(to, from);
  for (std::size_t i = 0; i < kBucket; ++i) {
    if (bucket[i].to == to && bucket[i].from == from) return bucket + i;
  }
  return nullptr;
}

std::size_t RaceChecker::first_in_bucket(std::uint32_t to, std::uint32_t from) const {
  const std::uint64_t key = (std::uint64_t{to} << 32) | from;
  return mix64(key) & (syncs_.size() - 1) & ~(kBucket - 1);
}

void RaceChecker::visit(OpId op) {
  const std::uint32_t to = lanes_.chain[op];
  for (const OpId earlier : program_.dependencies_of(program_.ops[op])) {
    const std::uint32_t from = lanes_.chain[earlier];
    const Sync now{to, from, lanes_.position[earlier], lanes_.position[op]};
    if (const Sync* known = find_sync(to, from)) {
      if (known->position < now.position)
        syncs_[static_cast<std::size_t>(known - syncs_.data())] = now;
      continue;
    }
    while (!has_room_for(to, from) && is_worth_doubling()) double_syncs();
    keep(now);
    ++kept_;
  }
}

bool RaceChecker::has_room_for(std::uint32_t to, std::uint32_t from) const {
  return syncs_[first_in_bucket(to, from) + kBucket - 1].to == kNone;
}

/// Chance fills single buckets of a large table long before the others.
bool RaceChecker::is_worth_doubling() const {
  return syncs_.size() < kMaxSyncs && kMinUsed * kept_ >= syncs_.size();
}

/// A pair of chains that is pushed out costs time, never exactness.
void RaceChecker::keep(const Sync& sync) {
  const std::size_t first = first_in_bucket(sync.to, sync.from);
  std::size_t place = first;
  while (place + 1 < first + kBucket && syncs_[place].to != kNone) ++place;
  syncs_[place] = sync;
}

void RaceChecker::double_syncs() {
  const std::vector<Sync> before = std::move(syncs_);
  syncs_.assign(2 * before.size(), {});
  for (const Sync& sync : before) {
    if (sync.to != kNone) keep(sync);
  }
}

bool RaceChecker::surely_before(OpId earlier, OpId later) const {
  const std::uint32_t to = lanes_.chain[later];
  const std::uint32_t from = lanes_.chain[earlier];
  if (to == from) return lanes_.position[earlier] < lanes_.position[later];
  const Sync* const sync = find_sync(to, from);
  return sync != nullptr && sync->position >= lanes_.position[earlier] &&
         sync->since <= lanes_.position[later];
}

template <class Body>
void RaceChecker::for_some_predecessors(OpId op, Body&& body) const {
  const auto dependencies = program_.dependencies_of(program_.ops[op]);
  // The last ones are the newest, as programs are usually written.
  for (const OpId earlier : dependencies.last(std::min(dependencies.size(), kMaxBranches))) {
    body(earlier);
  }
  if (lanes_.previous[op] != LaneChains::kNone) body(lanes_.previous[op]);
}

std::optional<OpId> RaceChecker::latest_predecessor(OpId op) const {
  std::optional<OpId> latest;
  for_some_predecessors(op, [&](OpId earlier) {
    if (!latest || place_[earlier] > place_[*latest]) latest = earlier;
  });
  return latest;
}

bool RaceChecker::soon_before(OpId earlier, OpId later) const {
  for (int step = 0; step < kMaxSteps; ++step) {
    if (surely_before(earlier, later)) return true;
    bool is_before = false;
    for_some_predecessors(later, [&](OpId between) {
      is_before = is_before || between == earlier || surely_before(earlier, between);
    });
    if (is_before) return true;
    const std::optional<OpId> latest = latest_predecessor(later);
    if (!latest || place_[*latest] <= place_[earlier]) return false;
    later = *latest;
  }
  return false;
}

void RaceChecker::require(OpId earlier, OpId later) {
  if (!soon_before(earlier, later)) ask(node_of(earlier), later);
}

void RaceChecker::require(const Readers& readers, OpId later) {
  if (readers.latest == later) {
    const Readers others = accesses_.without_latest(readers);
    if (others.latest != AccessTracker::kNone) require(others, later);
  } else if (!surely_all_before(readers, later)) {
    ask(node_of(readers), later);
  }
}

void RaceChecker::ask(std::uint32_t node, OpId later) {
  const Question question{node, place_[later]};
  if (open_.empty() || open_.back() != question) open_.push_back(question);
}

std::uint32_t RaceChecker::node_of(OpId earlier) {
  const auto next = static_cast<std::uint32_t>(nodes_.size());
  const auto [entry, is_new] = node_of_op_.try_emplace(earlier, next);
  if (is_new) nodes_.push_back({place_[earlier], kNone, place_[earlier]});
  return entry->second;
}

std::uint32_t RaceChecker::node_of(const Readers& readers) {
  // From the end that is known, or from the very end.
  std::vector<Readers> unknown;
  std::uint32_t node = kNone;
  for (Readers rest = readers; rest.latest != AccessTracker::kNone && node == kNone;) {
    if (const auto known = node_of_readers_.find(rest); known != node_of_readers_.end()) {
      node = known->second;
    } else {
      unknown.push_back(rest);
      rest = accesses_.without_latest(rest);
    }
  }
  for (; !unknown.empty(); unknown.pop_back()) {
    const Readers& list = unknown.back();
    const std::uint32_t place = place_[list.latest];
    nodes_.push_back({place, node, node == kNone ? place : nodes_[node].first});
    node = static_cast<std::uint32_t>(nodes_.size() - 1);
    node_of_readers_.emplace(list, node);
  }
  return node;
}

bool RaceChecker::is_settled(const Readers& readers, OpId op) const {
  const auto known = settled_.find({readers, op});
  return known != settled_.end() && known->second;
}

bool RaceChecker::surely_all_before(const Readers& readers, OpId later) {
  Readers rest = readers;
  bool is_sure = true;
  for (int i = 0; i < kFewReaders; ++i) {
    is_sure = is_sure && soon_before(rest.latest, later);
    rest = accesses_.without_latest(rest);
    if (rest.latest == AccessTracker::kNone) return is_sure;
  }
  // What waits for all readers directly is often not `later` itself but what it waits for in turn:
  // a barrier. Only ops after the latest reader can be that.
  OpId op = later;
  for (int step = 0; step < kMaxSteps; ++step) {
    if (is_settled(readers, op)) return true;
    bool is_known = false;
    for_some_predecessors(
        op, [&](OpId earlier) { is_known = is_known || is_settled(readers, earlier); });
    if (is_known) return true;
    const std::optional<OpId> latest = latest_predecessor(op);
    if (!latest || place_[*latest] <= place_[readers.latest]) break;
    op = *latest;
  }
  const auto [entry, is_new] = settled_.try_emplace({readers, op}, false);
  if (!is_new) return entry->second;
  for (rest = readers; rest.latest != AccessTracker::kNone; rest = accesses_.without_latest(rest)) {
    if (--steps_left_ < 0 || !surely_before(rest.latest, op)) return false;
  }
  entry->second = true;
  return true;
}

void RaceChecker::unordered(const std::function<void(OpId, OpId)>& found) {
  if (open_.empty()) return;
  std::ranges::sort(open_);
  open_.erase(std::unique(open_.begin(), open_.end()), open_.end());
  std::vector<std::size_t> first_question(nodes_.size() + 1, 0);
  for (const Question& question : open_) ++first_question[question.node + 1];
  std::partial_sum(first_question.begin(), first_question.end(), first_question.begin());

  std::vector<std::uint32_t> sources;
  for (const Node& node : nodes_) sources.push_back(node.place);
  std::ranges::sort(sources);
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());

  // Nodes come into play with the earliest of their ops and leave with the latest. Those of one
  // list do the first together, and each stands after its `next` in this order, too.
  std::vector<std::uint32_t> coming(nodes_.size());
  std::iota(coming.begin(), coming.end(), 0u);
  std::ranges::stable_sort(coming, {}, [&](std::uint32_t node) { return nodes_[node].first; });
  std::size_t come = 0;
  std::vector<std::uint32_t> active;

  reached_.resize(order_.size());
  std::vector<std::uint64_t> sought(nodes_.size());
  for (std::size_t begin = 0; begin < sources.size(); begin += 64) {
    check_interruption();
    const std::size_t end = std::min(begin + 64, sources.size());
    const auto first = sources.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = sources.begin() + static_cast<std::ptrdiff_t>(end);
    std::erase_if(active, [&](std::uint32_t node) { return nodes_[node].place < *first; });
    for (; come < coming.size() && nodes_[coming[come]].first <= *(last - 1); ++come) {
      active.push_back(coming[come]);
    }
    std::uint32_t span_end = 0;
    for (const std::uint32_t index : active) {
      const Node& node = nodes_[index];
      const bool has_others = node.next != kNone && nodes_[node.next].place >= *first;
      sought[index] = has_others ? sought[node.next] : 0;
      if (node.place <= *(last - 1)) {
        sought[index] |= std::uint64_t{1} << (std::lower_bound(first, last, node.place) - first);
      }
      if (sought[index] == 0 || first_question[index] == first_question[index + 1]) continue;
      span_end = std::max(span_end, open_[first_question[index + 1] - 1].later + 1);
    }
    follow(sources.data() + begin, sources.data() + end, span_end);
    report_missing(sources.data() + begin, active, first_question, sought, found);
  }
}

void RaceChecker::report_missing(const std::uint32_t* sources,
                                 const std::vector<std::uint32_t>& active,
                                 const std::vector<std::size_t>& first_question,
                                 const std::vector<std::uint64_t>& sought,
                                 const std::function<void(OpId, OpId)>& found) const {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> missing;  // place of the later op, which
  for (const std::uint32_t index : active) {
    for (std::size_t i = first_question[index]; i < first_question[index + 1]; ++i) {
      const std::uint64_t not_reached = sought[index] & ~reached_[open_[i].later];
      if (not_reached != 0) missing.emplace_back(open_[i].later, not_reached);
    }
  }
  std::ranges::sort(missing);
  for (std::size_t i = 0; i < missing.size();) {
    const std::uint32_t later = missing[i].first;
    std::uint64_t which = 0;
    for (; i < missing.size() && missing[i].first == later; ++i) which |= missing[i].second;
    for (; which != 0; which &= which - 1) {
      found(order_[sources[std::countr_zero(which)]], order_[later]);
    }
  }
}

void RaceChecker::follow(const std::uint32_t* first, const std::uint32_t* last, std::uint32_t end) {
  const std::uint32_t begin = *first;
  const std::uint32_t* source = first;
  for (std::uint32_t at = begin; at < end; ++at) {
    const OpId op = order_[at];
    std::uint64_t mask = 0;
    const auto join = [&](OpId earlier) {
      if (place_[earlier] >= begin) mask |= reached_[place_[earlier]];
    };
    for (const OpId earlier : program_.dependencies_of(program_.ops[op])) join(earlier);
    if (lanes_.previous[op] != LaneChains::kNone) join(lanes_.previous[op]);
    if (source != last && *source == at) mask |= std::uint64_t{1} << (source++ - first);
    reached_[at] = mask;
  }
}

}  // namespace espalier

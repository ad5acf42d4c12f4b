// SPDX-License-Identifier: Apache-2.0
#include "ir/builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "core/check.h"
#include "core/interruption.h"
#include "ir/access_tracker.h"
#include "ir/folded_accesses.h"
#include "ir/lane_numbers.h"
#include "ir/unfold.h"

namespace espalier {
namespace {

constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();

Operand operand_of(const Slice& slice) {
  return {slice.place, static_cast<std::uint32_t>(slice.begin), slice.buffer};
}

Slice within(const Region& region, int rank, std::int64_t begin, std::int64_t length) {
  CHECK(begin >= 0 && length > 0 && begin + length <= region.units);
  return {rank, region.buffer, region.begin + begin, length};
}

}  // namespace

/// What derives the dependencies of the op being added. Of the earlier ops it conflicts with, only
/// the newest of each lane is kept: lane order gives the others. (In a folded program, of each lane
/// of each group.)
struct Builder::Tracking {
  using LaneId = std::uint32_t;

  explicit Tracking(const Fold& the_fold) : fold(the_fold), folded_accesses(the_fold) {}

  const Fold& fold;  ///< the program's
  AccessTracker accesses;
  FoldedAccesses folded_accesses;  ///< in place of these
  LaneNumbers lanes;
  std::vector<LaneId> lane_of;               ///< by op
  std::vector<std::pair<OpId, OpId>> extra;  ///< (op, earlier op) given by `after`
  std::unordered_map<std::string, std::int16_t> via_ids;

  std::vector<OpId> newest;   ///< by lane: the op's newest dependency on it, or kNone
  std::vector<LaneId> found;  ///< the lanes that have one

  /// In place of these, in a folded program.
  struct OfGroup {
    LaneId lane = 0;
    int group = 0;  ///< so many further on
    OpId newest = 0;
  };
  std::vector<OfGroup> found_of_groups;

  void add_op(const Op& op) {
    const LaneId lane = lanes.number(op.at, op.lane);
    if (lane == newest.size()) newest.push_back(kNone);
    lane_of.push_back(lane);
  }

  void read(OpId op, const Operand& operand, std::uint32_t length) {
    const auto found_one = [&](OpId earlier, int group = 0) { depend(op, earlier, group); };
    if (fold.is_folded()) {
      folded_accesses.read(op, operand, length, found_one);
    } else {
      accesses.read(op, operand, length, found_one);
    }
  }
  void write(OpId op, const Operand& operand, std::uint32_t length) {
    const auto found_one = [&](OpId earlier, int group = 0) { depend(op, earlier, group); };
    if (fold.is_folded()) {
      folded_accesses.write(op, operand, length, found_one);
    } else {
      accesses.write(op, operand, length, found_one);
    }
  }
  OpId last_writer(const Operand& operand, std::uint32_t length) const {
    return fold.is_folded() ? folded_accesses.last_writer(operand, length)
                            : accesses.last_writer(operand, length);
  }

  /// `earlier`: of so many groups further on.
  void depend(OpId op, OpId earlier, int group) {
    CHECK(earlier != op);  // groups that race with each other do not fold
    const LaneId lane = lane_of[earlier];
    if (lane == lane_of[op] && group == 0) return;
    if (fold.is_folded()) return depend_on_group(lane, group, earlier);
    if (newest[lane] == kNone) {
      newest[lane] = earlier;
      found.push_back(lane);
    } else {
      newest[lane] = std::max(newest[lane], earlier);
    }
  }

  /// Moves the dependencies found, in rising order, to the end of the pool.
  void flush(Op& op, std::vector<OpId>& pool, std::vector<int>& groups) {
    CHECK(pool.size() + found.size() + found_of_groups.size() < kMax32);
    op.dep_begin = static_cast<std::uint32_t>(pool.size());
    op.dep_count = static_cast<std::uint32_t>(found.size() + found_of_groups.size());
    for (const LaneId lane : found) {
      pool.push_back(newest[lane]);
      newest[lane] = kNone;
    }
    std::sort(pool.begin() + op.dep_begin, pool.end());
    found.clear();
    std::ranges::sort(found_of_groups, {},
                      [](const OfGroup& one) { return std::pair(one.newest, one.group); });
    for (const OfGroup& one : found_of_groups) {
      pool.push_back(one.newest);
      groups.push_back(one.group);
    }
    found_of_groups.clear();
  }

 private:
  void depend_on_group(LaneId lane, int group, OpId earlier) {
    for (OfGroup& one : found_of_groups) {
      if (one.lane != lane || one.group != group) continue;
      one.newest = std::max(one.newest, earlier);
      return;
    }
    found_of_groups.push_back({lane, group, earlier});
  }
};

Builder::Builder(std::string name, const Contract& contract, const Fold& fold) {
  const CollectiveInfo& collective = info(contract.collective);
  CHECK(contract.ranks >= 1 && contract.ranks <= kMaxPlaces);
  CHECK(contract.units >= 1 && contract.units <= kMaxUnits);
  CHECK(!collective.blocked || contract.units % contract.ranks == 0);
  CHECK(!collective.rooted || (contract.root >= 0 && contract.root < contract.ranks));
  program_.name = std::move(name);
  program_.contract = contract;
  CHECK(!fold.is_folded() || is_valid(fold, contract));
  if (!collective.rooted) program_.contract.root = 0;
  program_.fold = fold;
  tracking_ = std::make_unique<Tracking>(program_.fold);
}

Builder::~Builder() = default;

PlaceId Builder::add_host() {
  CHECK(program_.places() < kMaxPlaces && program_.relays == 0 && !program_.fold.is_folded());
  ++program_.hosts;
  return program_.places() - 1;
}

PlaceId Builder::add_relay() {
  CHECK(program_.places() < kMaxPlaces && !program_.fold.is_folded());
  ++program_.relays;
  return program_.places() - 1;
}

void Builder::reserve(std::size_t ops) {
  program_.ops.reserve(ops);
  tracking_->lane_of.reserve(ops);
}

Slice Builder::input(int rank, std::int64_t begin, std::int64_t length) const {
  CHECK(rank >= 0 && rank < ranks());
  return within(input_region(contract(), rank), rank, begin, length);
}

Slice Builder::output(int rank, std::int64_t begin, std::int64_t length) const {
  CHECK(rank >= 0 && rank < ranks());
  return within(output_region(contract(), rank), rank, begin, length);
}

Slice Builder::tmp(PlaceId place, std::int64_t begin, std::int64_t length) const {
  CHECK(place >= 0 && place < program_.places() && !program_.fold.shares_ranks());
  CHECK(begin >= 0 && length > 0 && begin + length <= kMax32);
  return {place, Buffer::tmp, begin, length};
}

OpId Builder::copy(const Slice& dst, const Slice& src, const OpOptions& options) {
  if (dst == src) {
    check_slice(dst);
    return tracking_->last_writer(operand_of(dst), static_cast<std::uint32_t>(dst.length));
  }
  return combine(dst, std::span(&src, 1), options);
}

OpId Builder::combine(const Slice& dst, std::span<const Slice> srcs, const OpOptions& options) {
  return move({&dst, 1}, srcs, options);
}

OpId Builder::in_switch(std::span<const Slice> dsts, std::span<const Slice> srcs,
                        const OpOptions& options) {
  OpOptions in_switch = options;
  in_switch.in_switch = true;
  return move(dsts, srcs, in_switch);
}

OpId Builder::move(std::span<const Slice> dsts, std::span<const Slice> srcs,
                   const OpOptions& options) {
  CHECK(!dsts.empty() && !srcs.empty());
  CHECK(dsts.size() == 1 || options.in_switch);
  const Slice& dst = dsts.front();
  const std::int64_t block = block_units(contract());
  Op op;
  op.dst = operand_of(dst);
  op.length = static_cast<std::uint32_t>(dst.length);
  op.src_begin = static_cast<std::uint32_t>(program_.sources.size());
  op.src_count = static_cast<std::uint32_t>(srcs.size());
  op.copy_count = static_cast<std::uint32_t>(dsts.size() - 1);
  op.in_switch = options.in_switch;
  bool at_an_operand = options.at == OpOptions::kAuto;
  for (const Slice& src : srcs) {
    check_slice(src);
    CHECK(src.length == dst.length && src.begin % block == dst.begin % block);
    at_an_operand = at_an_operand || options.at == src.place;
    program_.sources.push_back(operand_of(src));
  }
  for (const Slice& one : dsts) {
    check_slice(one);
    CHECK(one.length == dst.length && one.begin % block == dst.begin % block);
    for (const Slice& src : srcs) CHECK(src == one || !overlap(src, one));
    at_an_operand = at_an_operand || options.at == one.place;
    if (&one != &dst) program_.sources.push_back(operand_of(one));
  }
  CHECK(at_an_operand && program_.sources.size() < kMax32);
  op.at = options.at == OpOptions::kAuto ? usual_place(program_, op) : options.at;
  if (!builds(op.at, options.lane)) {
    program_.sources.resize(op.src_begin);
    return kNone;
  }
  return append(op, options);
}

OpId Builder::busy(OpKind kind, PlaceId place, double seconds, const OpOptions& options) {
  CHECK(kind != OpKind::combine);
  CHECK(place >= 0 && place < program_.places());
  CHECK(std::isfinite(seconds) && seconds >= 0);
  CHECK(options.at == OpOptions::kAuto || options.at == place);
  CHECK(options.via.empty());
  if (!builds(place, options.lane)) return kNone;
  Op op;
  op.kind = kind;
  op.dst = {place, static_cast<std::uint32_t>(program_.durations_s.size()), Buffer::tmp};
  op.at = place;
  program_.durations_s.push_back(seconds);
  return append(op, options);
}

void Builder::check_slice(const Slice& slice) const {
  CHECK(slice.place >= 0 && slice.place < program_.places());
  CHECK(slice.begin >= 0 && slice.length > 0);
  const std::int64_t end = slice.begin + slice.length;
  if (slice.buffer == Buffer::tmp) {
    CHECK(end <= kMax32);
  } else {
    CHECK(slice.place < ranks() && end <= buffer_units(contract(), slice.place, slice.buffer));
  }
}

OpId Builder::append(const Op& op, const OpOptions& options) {
  CHECK(program_.ops.size() < kNone);
  CHECK(options.lane >= 0 && options.lane <= std::numeric_limits<std::uint16_t>::max());
  const auto id = static_cast<OpId>(program_.ops.size());
  check_interruption_at(id);
  Op& added = program_.ops.emplace_back(op);
  added.lane = static_cast<std::uint16_t>(options.lane);
  if (!options.via.empty()) added.via = via_id(options.via);
  tracking_->add_op(added);
  if (op.kind == OpKind::combine) {
    for (const Operand& src : program_.sources_of(added)) tracking_->read(id, src, op.length);
    for_each_destination(program_, added,
                         [&](const Operand& dst) { tracking_->write(id, dst, op.length); });
  }
  tracking_->flush(added, program_.dependencies, program_.fold.dependency_groups);
  return id;
}

std::int16_t Builder::via_id(std::string_view via) {
  const std::size_t next = program_.vias.size();
  CHECK(next < std::numeric_limits<std::int16_t>::max());
  const auto [entry, is_new] =
      tracking_->via_ids.try_emplace(std::string(via), static_cast<std::int16_t>(next));
  if (is_new) program_.vias.emplace_back(via);
  return entry->second;
}

void Builder::after(OpId op, OpId earlier) {
  if (op == kNone || earlier == kNone) return;
  CHECK(op < program_.ops.size() && earlier < op);
  tracking_->extra.emplace_back(op, earlier);
}

void Builder::repeat(std::int64_t units, std::int64_t times) {
  CHECK(units > 0 && times >= 0 && tracking_->extra.empty() && program_.durations_s.empty());
  const std::size_t ops = program_.ops.size();
  const std::size_t sources = program_.sources.size();
  const std::size_t dependencies = program_.dependencies.size();
  std::vector<int>& groups = program_.fold.dependency_groups;
  const auto all = [&](std::size_t once) {
    const std::size_t size = once * static_cast<std::size_t>(times + 1);
    CHECK(size < kMax32);
    return size + once;  // something shorter may follow
  };
  reserve(all(ops));
  program_.sources.reserve(all(sources));
  program_.dependencies.reserve(all(dependencies));
  if (!groups.empty()) groups.reserve(all(dependencies));
  const auto further = [&](Operand operand, std::int64_t by) {
    const std::int64_t begin = operand.begin + by;
    CHECK(operand.buffer != Buffer::tmp &&
          begin < buffer_units(contract(), operand.place, operand.buffer));
    operand.begin = static_cast<std::uint32_t>(begin);
    return operand;
  };
  for (std::int64_t time = 1; time <= times; ++time) {
    const auto turn = static_cast<std::uint32_t>(time);
    for (std::size_t i = 0; i < ops; ++i) {
      check_interruption_at(i);
      Op op = program_.ops[i];
      op.dst = further(op.dst, time * units);
      op.src_begin += turn * static_cast<std::uint32_t>(sources);
      op.dep_begin += turn * static_cast<std::uint32_t>(dependencies);
      program_.ops.push_back(op);
      tracking_->lane_of.push_back(tracking_->lane_of[i]);
    }
    for (std::size_t i = 0; i < sources; ++i) {
      program_.sources.push_back(further(program_.sources[i], time * units));
    }
    for (std::size_t i = 0; i < dependencies; ++i) {
      program_.dependencies.push_back(program_.dependencies[i] +
                                      turn * static_cast<std::uint32_t>(ops));
      if (!groups.empty()) groups.push_back(groups[i]);
    }
  }
}

void Builder::merge_extra_dependencies() {
  std::vector<std::pair<OpId, OpId>>& extra = tracking_->extra;
  if (extra.empty()) return;
  std::sort(extra.begin(), extra.end());
  const std::vector<int> groups = std::exchange(program_.fold.dependency_groups, {});
  std::vector<OpId> merged;
  merged.reserve(program_.dependencies.size() + extra.size());
  auto next = extra.begin();
  for (OpId id = 0; id < program_.ops.size(); ++id) {
    check_interruption_at(id);
    Op& op = program_.ops[id];
    for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
      tracking_->depend(id, program_.dependencies[i], groups.empty() ? 0 : groups[i]);
    }
    for (; next != extra.end() && next->first == id; ++next) tracking_->depend(id, next->second, 0);
    tracking_->flush(op, merged, program_.fold.dependency_groups);
  }
  program_.dependencies = std::move(merged);
}

Program Builder::finish() {
  merge_extra_dependencies();
  Program finished = std::move(program_);
  program_ = Program{};
  program_.contract = finished.contract;
  program_.fold = finished.fold;
  program_.fold.dependency_groups.clear();
  tracking_ = std::make_unique<Tracking>(program_.fold);
  return finished;
}

}  // namespace espalier

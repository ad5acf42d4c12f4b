// SPDX-License-Identifier: Apache-2.0
#include "sim/back_to_back.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/hash_numbers.h"
#include "core/interruption.h"
#include "core/keep_one_of_each.h"
#include "ir/lane_numbers.h"

namespace espalier {
namespace {

constexpr std::uint32_t kNoSpan = ~std::uint32_t{0};

/// When a GPU is busy with a call.
struct Span {
  double first_s = std::numeric_limits<double>::infinity();
  double last_s = 0;
  /// When the first op began whose result comes to it: if it has no ops of its own, it waits for
  /// that with a block of its own.
  double first_coming_s = std::numeric_limits<double>::infinity();

  double length_s() const {
    const bool has_ops = first_s <= last_s;
    return std::max(0.0, last_s - (has_ops ? first_s : first_coming_s));
  }
};

/// Lanes of all places, those that share a block as one, in sets that do not depend on each other,
/// such as the channels of a ring. In a folded program a lane stands for those of all groups of
/// ranks, which may be of different sets: it is so many groups from the top of its set, and where
/// that leads round to the top itself, lanes that are so far apart are of one set.
class LaneSets {
 public:
  LaneSets(const Program& program, const BlockMap& blocks) : fold_(program.fold) {
    LaneNumbers numbers;
    lane_of_.reserve(program.ops.size());
    for (const Op& op : program.ops) {
      const std::uint32_t lane = numbers.number(op.at, blocks.lane_on_block(op.at, op.lane));
      lane_of_.push_back(lane);
      if (lane < tops_.size()) continue;
      tops_.push_back({lane, 0});
      periods_.push_back(fold_.groups);
    }
    for (OpId id = 0; id < program.ops.size(); ++id) {
      check_interruption_at(id);
      const Op& op = program.ops[id];
      for (std::uint32_t i = op.dep_begin; i < op.dep_begin + op.dep_count; ++i) {
        const int group = fold_.is_folded() ? fold_.dependency_groups[i] : 0;
        join(lane_of_[id], lane_of_[program.dependencies[i]], group);
      }
    }
  }

  /// A set, of the group that is so many before that of its top.
  struct Set {
    std::uint32_t top = 0;
    int groups = 0;
    bool operator==(const Set&) const = default;
  };
  std::uint32_t lane(OpId op) const { return lane_of_[op]; }
  std::size_t lanes() const { return tops_.size(); }

  /// What all lanes of a set have: of the op of the group that is so many before the first.
  Set set(OpId op, int groups_before) {
    const Top top = top_of(lane_of_[op]);
    const int period = periods_[top.lane];
    return {top.lane, ((top.groups - groups_before) % period + period) % period};
  }

 private:
  struct Top {
    std::uint32_t lane = 0;
    int groups = 0;  ///< a lane of group g is of the set of the top's of group g + groups
  };

  Top top_of(std::uint32_t lane) {
    Top top{lane, 0};
    while (tops_[top.lane].lane != top.lane) {
      const Top up = tops_[top.lane];
      top = {up.lane, fold_.wrapped(top.groups + up.groups)};
    }
    for (Top rest = top; tops_[lane].lane != lane;) {  // next time at once
      const Top old = std::exchange(tops_[lane], rest);
      rest.groups = fold_.wrapped(rest.groups - old.groups);
      lane = old.lane;
    }
    return top;
  }

  /// A lane and another one, so many groups further on.
  void join(std::uint32_t lane, std::uint32_t other, int group) {
    const Top a = top_of(lane);
    const Top b = top_of(other);
    const int apart = fold_.wrapped(group + b.groups - a.groups);
    if (a.lane == b.lane) {
      periods_[a.lane] = std::gcd(periods_[a.lane], apart);
    } else {
      tops_[a.lane] = {b.lane, apart};
      periods_[b.lane] = std::gcd(periods_[b.lane], periods_[a.lane]);
    }
  }

  const Fold& fold_;
  std::vector<std::uint32_t> lane_of_;  ///< by op
  std::vector<Top> tops_;
  std::vector<int> periods_;  ///< of tops
};

/// Lanes of a set at a place.
struct PlaceSet {
  PlaceId place = 0;
  LaneSets::Set set;
  bool operator==(const PlaceSet&) const = default;
};
struct PlaceSetHash {
  std::size_t operator()(const PlaceSet& one) const {
    const auto bits = [](auto value) { return static_cast<std::uint64_t>(value); };
    return mix64(mix64(bits(one.place) << 32 | one.set.top) ^ bits(one.set.groups));
  }
};

/// Where the results of an op come to; those of the next op of its lane mostly do, too.
struct LatestSpan {
  PlaceId place = 0;  ///< as the program has it
  int group = 0;      ///< of the operand
  std::uint32_t span = kNoSpan;
};

/// Which spans an op has a part in: that of its own place, and those where its results come to.
class SpanNumbers {
 public:
  SpanNumbers(const Program& program, const BlockMap& blocks, int groups)
      : program_(program),
        groups_(static_cast<std::size_t>(groups)),
        sets_(program, blocks),
        own_(sets_.lanes() * groups_, kNoSpan),
        far_(sets_.lanes() * groups_) {}

  std::uint32_t own(OpId id, int group) {
    std::uint32_t& span = own_[lane(id, group)];
    if (span == kNoSpan) {
      span = number({place_of(program_.ops[id].at, group), sets_.set(id, -group)});
    }
    return span;
  }
  /// Calls `visit(span)` for each.
  template <class Visit>
  void for_each_far(OpId id, int group, Visit&& visit) {
    LatestSpan& latest = far_[lane(id, group)];
    for_each_destination(program_, program_.ops[id], [&](const Operand& dst) {
      // Scratch is no result: whom it concerns has an op that reads it.
      if (dst.buffer != Buffer::tmp) visit(far(id, group, dst, latest));
    });
  }
  /// Where nothing is launched.
  bool is_of_host(std::uint32_t span) const {
    return place_number(program_, places_[span]).kind == PlaceKind::host;
  }
  std::size_t size() const { return places_.size(); }

 private:
  std::size_t lane(OpId id, int group) const {
    return std::size_t{sets_.lane(id)} * groups_ + static_cast<std::size_t>(group);
  }
  /// What the program's place is to a group.
  PlaceId place_of(PlaceId place, int group) const {
    return group == 0 ? place : program_.fold.rank_moved(place, group);
  }
  std::uint32_t number(const PlaceSet& one) {
    const auto next = static_cast<std::uint32_t>(places_.size());
    const auto [known, is_new] = numbers_.try_emplace(one, next);
    if (is_new) places_.push_back(one.place);
    return known->second;
  }
  std::uint32_t far(OpId id, int group, const Operand& dst, LatestSpan& latest) {
    const Fold& fold = program_.fold;
    // Where only the first group is simulated, its place gets the same from an earlier group.
    const int of = groups_ == 1 ? group_of(fold, dst) : 0;
    if (latest.span != kNoSpan && latest.place == dst.place && latest.group == of) {
      return latest.span;
    }
    const PlaceId place = groups_ == 1 ? in_first_group(fold, dst, program_.ops[id].length).place
                                       : place_of(dst.place, group);
    latest = {dst.place, of, number({place, sets_.set(id, of - group)})};
    return latest.span;
  }

  const Program& program_;
  const std::size_t groups_;
  LaneSets sets_;
  std::unordered_map<PlaceSet, std::uint32_t, PlaceSetHash> numbers_;
  std::vector<PlaceId> places_;     ///< by span
  std::vector<std::uint32_t> own_;  ///< by lane of each group
  std::vector<LatestSpan> far_;     ///< by lane of each group, of its latest op
};

double period_s(double longest_span_s, double busiest_s, double call_overhead_s) {
  return std::max(longest_span_s + call_overhead_s, busiest_s);
}

}  // namespace

struct CallSpans::Spans {
  Span& at(std::uint32_t span) {
    if (span >= all.size()) all.resize(span + 1);
    return all[span];
  }

  SpanNumbers numbers;
  std::vector<Span> all;
};

CallSpans::CallSpans(const Program& program, const BlockMap& blocks, int groups)
    : spans_(std::make_unique<Spans>(Spans{SpanNumbers(program, blocks, groups), {}})) {}
CallSpans::~CallSpans() = default;

void CallSpans::note(OpId id, int group, double start_s, double end_s, double seen_s) {
  Span& own = spans_->at(spans_->numbers.own(id, group));
  own.first_s = std::min(own.first_s, start_s);
  own.last_s = std::max(own.last_s, end_s);
  spans_->numbers.for_each_far(id, group, [&](std::uint32_t span) {
    Span& there = spans_->at(span);
    there.first_coming_s = std::min(there.first_coming_s, start_s);
    there.last_s = std::max(there.last_s, seen_s);
  });
}

double CallSpans::period_s(double busiest_s, double call_overhead_s) const {
  double longest_s = 0;
  for (std::uint32_t span = 0; span < spans_->all.size(); ++span) {
    if (spans_->numbers.is_of_host(span)) continue;
    longest_s = std::max(longest_s, spans_->all[span].length_s());
  }
  return espalier::period_s(longest_s, busiest_s, call_overhead_s);
}

double back_to_back_s(const Program& program, const BlockMap& blocks, const OpHistory& history,
                      double busiest_s, double call_overhead_s) {
  CallSpans spans(program, blocks);
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const OpEnd& end = history.ends[id];
    spans.note(id, 0, history.ops[id].start_s, end.end_s, end.seen_s);
  }
  return spans.period_s(busiest_s, call_overhead_s);
}

namespace {

/// The ops that say how long GPUs are busy. Those of one shape are of one lane, so that they come
/// in order of time, and what they write goes to one place, of which only results count: the first
/// of them begins first, the last one ends last. All that are first, and then all that are last.
std::vector<OpId> first_and_last_ops(const Program& program, const ShapeNumbers& shapes) {
  HashNumbers numbers;
  std::vector<OpId> first, last;  // by shape and buffers
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    std::uint64_t hash = mix64(shapes.of(id));
    for_each_destination(program, program.ops[id], [&](const Operand& dst) {
      hash = mix64(hash + static_cast<std::uint64_t>(dst.buffer));
      hash = mix64(hash + static_cast<std::uint64_t>(group_of(program.fold, dst)));
    });
    const std::uint32_t known = numbers.number(hash);
    if (known == last.size()) {
      last.push_back(id);
      first.push_back(id);
    }
    last[known] = id;
  }
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

}  // namespace

AlikeSpans::AlikeSpans(const Program& program, const BlockMap& blocks, const ShapeNumbers& shapes,
                       const std::vector<OpId>& number) {
  SpanNumbers numbers(program, blocks, 1);
  std::vector<OpsOfSpan> all;
  const auto at = [&](std::uint32_t span) -> OpsOfSpan& {
    if (span >= all.size()) all.resize(span + 1);
    return all[span];
  };
  for (const OpId id : first_and_last_ops(program, shapes)) {
    at(numbers.own(id, 0)).own.push_back(number[id]);
    numbers.for_each_far(id, 0, [&](std::uint32_t span) { at(span).coming.push_back(number[id]); });
  }
  for (std::uint32_t span = 0; span < all.size(); ++span) {
    if (numbers.is_of_host(span)) continue;
    keep_one_of_each(all[span].own);
    keep_one_of_each(all[span].coming);
    spans_.push_back(std::move(all[span]));
  }
  keep_one_of_each(spans_);
}

double AlikeSpans::period_s(const OpHistory& history, double busiest_s,
                            double call_overhead_s) const {
  double longest_s = 0;
  for (const OpsOfSpan& ops : spans_) {
    Span span;
    for (const OpId one : ops.own) {
      span.first_s = std::min(span.first_s, history.ops[one].start_s);
      span.last_s = std::max(span.last_s, history.ends[one].end_s);
    }
    for (const OpId one : ops.coming) {
      span.first_coming_s = std::min(span.first_coming_s, history.ops[one].start_s);
      span.last_s = std::max(span.last_s, history.ends[one].seen_s);
    }
    longest_s = std::max(longest_s, span.length_s());
  }
  return espalier::period_s(longest_s, busiest_s, call_overhead_s);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "sim/class_engine.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/check.h"
#include "core/interruption.h"

namespace espalier {
namespace {

/// Dates no further apart than this part of them are one instant. Far more than roundings add up
/// to between two instants, and far less than anybody asks about.
const double kInstant = std::ldexp(1.0, -44);

}  // namespace

void ClassEngine::begin(const Expectation&) {
  end_ = SimEnd::finished;
  max_min_ = {};
  now_ = {};
  started_ = 0;
  waiting_.clear();
  classes_.clear();
  touched_.clear();
  ends_.clear();
  ended_.clear();
}

void ClassEngine::start(std::span<const ResourceId> resources, ResourceId alone, Ticks latency,
                        double bytes, FlowToken token, FlowKind& kind) {
  check_interruption_at(started_);  // many may begin at one instant
  const bool moves = bytes > 0 && (!resources.empty() || alone != kNoResource);
  CHECK(latency.value > 0 || moves);
  ClassId id = kNoClass;
  if (moves) {
    if (kind == kUnknownKind) kind = max_min_.class_of(resources, alone);
    id = kind;
    if (id == classes_.size()) classes_.emplace_back();
  }
  const Ended flow{started_++, token};
  if (latency.value > 0) {
    waiting_.push_back({now_ + latency, flow, id, bytes});
    std::ranges::push_heap(waiting_, std::greater());
  } else {
    move(id, bytes, flow);
  }
}

/// A flow begins to move, now.
void ClassEngine::move(ClassId id, double bytes, const Ended& flow) {
  Served& served = classes_[id];
  if (served.moving.empty()) {  // a new scale: long ones would be coarse
    served.bytes = 0;
    served.at = now_;
  }
  served.moving.push_back({served.bytes_until(now_) + bytes, flow});
  std::ranges::push_heap(served.moving, std::greater());
  served.first_end_bytes = served.moving.front().end_bytes;
  max_min_.add(id);
  touch(id);
}

void ClassEngine::touch(ClassId id) {
  if (!classes_[id].is_touched) touched_.push_back(id);
  classes_[id].is_touched = true;
}

/// Everything that happens at this instant has happened.
void ClassEngine::update_rates() {
  for (const ClassId id : max_min_.solve()) {
    Served& served = classes_[id];
    const double rate = max_min_.rate(id);
    if (rate == served.rate) continue;
    served.bytes = served.bytes_until(now_);
    served.at = now_;
    served.rate = rate;
    new_ends_.push_back({served.end(), id});
  }
  for (const ClassId id : touched_) {
    classes_[id].is_touched = false;
    if (classes_[id].moving.empty()) {
      ends_.remove(id);
    } else {
      new_ends_.push_back({classes_[id].end(), id});
    }
  }
  touched_.clear();
  ends_.set(new_ends_);
  new_ends_.clear();
}

void ClassEngine::end_latencies(Ticks until) {
  while (!waiting_.empty() && waiting_.front().until <= until) {
    std::ranges::pop_heap(waiting_, std::greater());
    const Waiting waited = waiting_.back();
    waiting_.pop_back();
    if (waited.id == kNoClass) {
      ended_.push_back(waited.flow);
    } else {
      move(waited.id, waited.bytes, waited.flow);
    }
  }
}

void ClassEngine::end_moving(Ticks until) {
  while (!ends_.empty() && ends_.top_date() <= until) {
    const ClassId id = ends_.top();
    ends_.remove(id);
    touch(id);
    Served& served = classes_[id];
    std::vector<Moving>& moving = served.moving;
    while (!moving.empty() && served.end() <= until) {
      std::ranges::pop_heap(moving, std::greater());
      ended_.push_back(moving.back().flow);
      moving.pop_back();
      if (!moving.empty()) served.first_end_bytes = moving.front().end_bytes;
      max_min_.remove(id);
    }
  }
}

std::int64_t ClassEngine::work() const {
  return max_min_.work() + static_cast<std::int64_t>(started_) * kWorkPerOp;
}

std::optional<Expectation> ClassEngine::run(const std::function<void(FlowToken)>& on_done,
                                            const std::function<void()>& on_instant_over) {
  for (update_rates(); !waiting_.empty() || !ends_.empty(); update_rates()) {
    Ticks next = ends_.empty() ? waiting_.front().until : ends_.top_date();
    if (!waiting_.empty()) next = std::min(next, waiting_.front().until);
    check_interruption();
    now_ = std::max(now_, next);
    if (now_ > limits_.time) end_ = SimEnd::too_slow;
    if (work() > limits_.work) end_ = SimEnd::too_costly;
    if (end_ != SimEnd::finished) return {};
    const Ticks until = now_ + now_ * kInstant;
    end_moving(until);
    end_latencies(until);
    std::ranges::sort(ended_, {}, &Ended::number);
    for (const Ended& flow : ended_) on_done(flow.token);
    on_instant_over();
    ended_.clear();
  }
  return {};
}

}  // namespace espalier

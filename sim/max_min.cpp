// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/hash.h"

namespace espalier {
namespace {

/// Rates and loads no further apart than this part of them are equal: some sixteen roundings. A
/// class that is opened for nothing costs time; one that is left alone is off by so much.
const double kRounding = std::ldexp(1.0, -48);

}  // namespace

std::size_t MaxMin::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = mix64(key.resources.size() ^ std::bit_cast<std::uint64_t>(key.alone));
  for (const ResourceId id : key.resources) hash = mix64(hash ^ id);
  return hash;
}

ResourceId MaxMin::add_resource(double bytes_per_tick) {
  CHECK(bytes_per_tick > 0);
  given_.push_back(static_cast<std::uint32_t>(resources_.size()));
  resources_.emplace_back().bytes_per_tick = bytes_per_tick;
  return static_cast<ResourceId>(given_.size() - 1);
}

ClassId MaxMin::class_of(std::span<const ResourceId> resources, ResourceId alone) {
  const bool has_own = alone != kNoResource;
  CHECK(has_own || !resources.empty());
  key_.resources.assign(resources.begin(), resources.end());
  std::ranges::sort(key_.resources);
  key_.alone = has_own ? resources_[given_[alone]].bytes_per_tick : 0;
  const auto [known, is_new] =
      by_resources_.try_emplace(key_, static_cast<ClassId>(classes_.size()));
  if (!is_new) return known->second;
  Class made;
  made.first_use = static_cast<std::uint32_t>(uses_.size());
  made.has_own = has_own;
  for (const ResourceId id : key_.resources) {
    CHECK(id < given_.size());
    if (made.use_count > 0 && uses_.back().resource == given_[id]) {
      ++uses_.back().times;
    } else {
      uses_.push_back({given_[id], 1, 0});
      ++made.use_count;
    }
  }
  if (has_own) {
    uses_.push_back({static_cast<std::uint32_t>(resources_.size()), 1, 0});
    ++made.use_count;
    resources_.emplace_back().part = key_.alone;
  }
  classes_.push_back(made);
  rates_.push_back(0);
  flows_.push_back(0);
  states_.push_back(State::settled);
  return known->second;
}

void MaxMin::change(ClassId id, int by) {
  Class& one = classes_[id];
  std::uint32_t& flows = flows_[id];
  CHECK(by > 0 || flows > 0);
  if (flows == 0) join(id);
  flows += static_cast<std::uint32_t>(by);
  if (one.has_own) {
    Resource& own = resources_[uses(one).back().resource];
    own.bytes_per_tick = own.part * flows;
  }
  if (flows == 0) leave(id);
  if (!one.is_touched) touched_.push_back(id);
  one.is_touched = true;
}

void MaxMin::join(ClassId id) {
  const Class& one = classes_[id];
  for (std::uint32_t use = one.first_use; use < one.first_use + one.use_count; ++use) {
    std::vector<User>& users = resources_[uses_[use].resource].users;
    uses_[use].position = static_cast<std::uint32_t>(users.size());
    users.push_back({id, use, static_cast<double>(uses_[use].times)});
  }
}

void MaxMin::leave(ClassId id) {
  for (const Use& use : uses(classes_[id])) {
    std::vector<User>& users = resources_[use.resource].users;
    uses_[users.back().use].position = use.position;
    users[use.position] = users.back();
    users.pop_back();
  }
}

std::span<const ClassId> MaxMin::solve() {
  for (const ClassId id : open_) states_[id] = State::settled;
  for (const ResourceId id : concerned_) resources_[id].is_concerned = false;
  open_.clear();
  concerned_.clear();
  open_changed();
  while (!open_.empty() || !concerned_.empty()) {
    fill();
    if (!open_unsettled()) break;
  }
  return open_;
}

/// The classes whose flows changed, and those that have a bottleneck in common with them.
void MaxMin::open_changed() {
  for (const ClassId id : touched_) {
    Class& one = classes_[id];
    one.is_touched = false;
    // As many end as begin: nothing changes for anybody.
    if (flows_[id] == one.solved_flows) continue;
    one.solved_flows = flows_[id];
    open(id);
  }
  touched_.clear();
  const std::size_t changed = concerned_.size();
  for (std::size_t i = 0; i < changed; ++i) {
    const ResourceId id = concerned_[i];
    for (std::size_t user = 0; user < resources_[id].users.size(); ++user) {
      const ClassId other = resources_[id].users[user].id;
      if (classes_[other].bottleneck == id) open(other);
    }
  }
}

/// Notes a class, if it has flows, to be solved for, and its resources.
void MaxMin::open(ClassId id) {
  if (states_[id] != State::settled) return;
  if (flows_[id] > 0) {
    states_[id] = State::open;
    open_.push_back(id);
  }
  for (const Use& use : uses(classes_[id])) {
    Resource& resource = resources_[use.resource];
    if (resource.is_concerned) continue;
    resource.is_concerned = true;
    concerned_.push_back(use.resource);
  }
}

/// What classes that are not open take of the resources concerned is not to be had.
void MaxMin::set_aside_settled() {
  for (const ClassId id : open_) states_[id] = State::open;
  for (const ResourceId id : concerned_) {
    Resource& resource = resources_[id];
    double left = resource.bytes_per_tick;
    double open_weight = 0;
    std::size_t settled = 0;
    for (const User& user : resource.users) {
      const double weight = flows_[user.id] * user.times;
      const bool is_settled = states_[user.id] == State::settled;
      settled += is_settled ? 1 : 0;
      open_weight += is_settled ? 0 : weight;
      left -= is_settled ? weight * rates_[user.id] : 0;
    }
    resource.left = std::max(left, 0.0);
    resource.weight = open_weight;
    resource.has_settled = settled > 0;
    resource.level = std::numeric_limits<double>::infinity();
    work_ += static_cast<std::int64_t>(resource.users.size());
  }
}

/// The resource that allows its open classes least sets their rate; what they take is taken from
/// their other resources. Each of those allows its remaining flows no less than before, so a level
/// in the heap that is out of date is too low, and is corrected when it comes to the top.
void MaxMin::fill() {
  const auto is_above = [](const Level& a, const Level& b) {
    return a.rate != b.rate ? a.rate > b.rate : a.resource > b.resource;
  };
  const auto level_of = [](const Resource& resource) { return resource.left / resource.weight; };
  set_aside_settled();
  levels_.clear();
  for (const ResourceId id : concerned_) {
    const Resource& resource = resources_[id];
    if (resource.weight > 0) levels_.push_back({level_of(resource), id});
  }
  std::ranges::make_heap(levels_, is_above);
  while (!levels_.empty()) {
    std::ranges::pop_heap(levels_, is_above);
    const Level lowest = levels_.back();
    levels_.pop_back();
    Resource& resource = resources_[lowest.resource];
    if (resource.weight == 0) continue;
    if (const double level = level_of(resource); level > lowest.rate) {
      levels_.push_back({level, lowest.resource});
      std::ranges::push_heap(levels_, is_above);
      continue;
    }
    resource.level = lowest.rate;
    for (const User& user : resource.users) {
      if (states_[user.id] == State::open) fix(user.id, lowest);
    }
    work_ += static_cast<std::int64_t>(resource.users.size());
  }
}

void MaxMin::fix(ClassId id, const Level& level) {
  states_[id] = State::filled;
  rates_[id] = level.rate;
  classes_[id].bottleneck = level.resource;
  for (const Use& use : uses(classes_[id])) {
    Resource& resource = resources_[use.resource];
    const double weight = flows_[id] * static_cast<double>(use.times);
    resource.left -= weight * level.rate;
    resource.weight -= weight;
  }
}

/// Opens the classes that are faster than those with their bottleneck at one of their resources,
/// and those whose own bottleneck is none any more. Whether there are any.
bool MaxMin::open_unsettled() {
  const std::size_t before = open_.size();
  const std::size_t concerned = concerned_.size();
  for (std::size_t i = 0; i < concerned; ++i) {
    const ResourceId id = concerned_[i];
    const Resource& resource = resources_[id];
    if (!resource.has_settled) continue;
    double fastest = 0;
    for (const User& user : resource.users) fastest = std::max(fastest, rates_[user.id]);
    const bool is_full = resource.left <= resource.bytes_per_tick * kRounding;
    const double minimum = is_full ? fastest * (1 - kRounding) : fastest * 2;
    const double maximum = resource.level * (1 + kRounding);
    for (const User& user : resource.users) {
      if (states_[user.id] != State::settled) continue;
      const double rate = rates_[user.id];
      const bool is_unsettled =
          rate > maximum || (rate < minimum && classes_[user.id].bottleneck == id);
      if (is_unsettled) open(user.id);
    }
    work_ += static_cast<std::int64_t>(resource.users.size());
  }
  return open_.size() > before;
}

}  // namespace espalier

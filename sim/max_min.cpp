// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <algorithm>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "ir/hash.h"

namespace espalier {
namespace {

/// Rates and loads no further apart than this part of them are equal: some sixteen roundings. A
/// class that is opened for nothing costs time; one that is left alone is off by so much.
const double kRounding = std::ldexp(1.0, -48);

}  // namespace

std::size_t MaxMin::ListHash::operator()(const std::vector<ResourceId>& list) const {
  std::uint64_t hash = list.size();
  for (const ResourceId id : list) hash = mix64(hash ^ id);
  return hash;
}

ResourceId MaxMin::add_resource(double bytes_per_tick) {
  CHECK(bytes_per_tick > 0);
  Resource resource;
  resource.bytes_per_tick = bytes_per_tick;
  resources_.push_back(std::move(resource));
  return static_cast<ResourceId>(resources_.size() - 1);
}

ClassId MaxMin::class_of(std::span<const ResourceId> resources) {
  CHECK(!resources.empty());
  list_.assign(resources.begin(), resources.end());
  std::ranges::sort(list_);
  const auto [known, is_new] =
      by_resources_.try_emplace(list_, static_cast<ClassId>(classes_.size()));
  if (!is_new) return known->second;
  Class made;
  made.first_use = static_cast<std::uint32_t>(uses_.size());
  for (const ResourceId id : list_) {
    CHECK(id < resources_.size());
    if (made.use_count > 0 && uses_.back().resource == id) {
      ++uses_.back().times;
    } else {
      uses_.push_back({id, 1, 0});
      ++made.use_count;
    }
  }
  classes_.push_back(made);
  return known->second;
}

void MaxMin::change(ClassId id, int by) {
  Class& one = classes_[id];
  CHECK(by > 0 || one.flows > 0);
  if (one.flows == 0) join(id);
  one.flows += static_cast<std::uint32_t>(by);
  if (one.flows == 0) leave(id);
  if (!one.is_touched) touched_.push_back(id);
  one.is_touched = true;
}

void MaxMin::join(ClassId id) {
  const Class& one = classes_[id];
  for (std::uint32_t use = one.first_use; use < one.first_use + one.use_count; ++use) {
    std::vector<User>& users = resources_[uses_[use].resource].users;
    uses_[use].position = static_cast<std::uint32_t>(users.size());
    users.push_back({id, use});
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
  for (const ClassId id : open_) classes_[id].is_open = false;
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
    if (one.flows == one.solved_flows) continue;
    one.solved_flows = one.flows;
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
  Class& one = classes_[id];
  if (one.is_open) return;
  if (one.flows > 0) {
    one.is_open = true;
    open_.push_back(id);
  }
  for (const Use& use : uses(one)) {
    Resource& resource = resources_[use.resource];
    if (resource.is_concerned) continue;
    resource.is_concerned = true;
    concerned_.push_back(use.resource);
  }
}

/// What classes that are not open take of the resources concerned is not to be had.
void MaxMin::set_aside_settled() {
  for (const ClassId id : open_) classes_[id].has_rate = false;
  for (const ResourceId id : concerned_) {
    Resource& resource = resources_[id];
    resource.left = resource.bytes_per_tick;
    resource.weight = 0;
    resource.level = std::numeric_limits<double>::infinity();
    for (const User& user : resource.users) {
      const Class& one = classes_[user.id];
      const std::uint64_t weight = std::uint64_t{one.flows} * uses_[user.use].times;
      if (one.is_open) {
        resource.weight += weight;
      } else {
        resource.left -= static_cast<double>(weight) * one.rate;
      }
    }
    resource.left = std::max(resource.left, 0.0);
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
  const auto level_of = [](const Resource& resource) {
    return resource.left / static_cast<double>(resource.weight);
  };
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
      if (classes_[user.id].is_open && !classes_[user.id].has_rate) fix(user.id, lowest);
    }
    work_ += static_cast<std::int64_t>(resource.users.size());
  }
}

void MaxMin::fix(ClassId id, const Level& level) {
  Class& one = classes_[id];
  one.has_rate = true;
  one.rate = level.rate;
  one.bottleneck = level.resource;
  for (const Use& use : uses(one)) {
    Resource& resource = resources_[use.resource];
    const std::uint64_t weight = std::uint64_t{one.flows} * use.times;
    resource.left -= static_cast<double>(weight) * level.rate;
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
    double fastest = 0;
    for (const User& user : resource.users) fastest = std::max(fastest, classes_[user.id].rate);
    const bool is_full = resource.left <= resource.bytes_per_tick * kRounding;
    const double minimum = is_full ? fastest * (1 - kRounding) : fastest * 2;
    const double maximum = resource.level * (1 + kRounding);
    for (const User& user : resource.users) {
      const Class& one = classes_[user.id];
      if (one.is_open) continue;
      if (one.rate > maximum || (one.bottleneck == id && one.rate < minimum)) open(user.id);
    }
    work_ += static_cast<std::int64_t>(resource.users.size());
  }
  return open_.size() > before;
}

}  // namespace espalier

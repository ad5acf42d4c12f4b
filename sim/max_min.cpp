// SPDX-License-Identifier: Apache-2.0
#include "sim/max_min.h"

#include <algorithm>

#include "core/check.h"
#include "ir/hash.h"

namespace espalier {

std::size_t MaxMin::ListHash::operator()(const std::vector<ResourceId>& list) const {
  std::uint64_t hash = list.size();
  for (const ResourceId id : list) hash = mix64(hash ^ id);
  return hash;
}

ResourceId MaxMin::add_resource(double bytes_per_s) {
  CHECK(bytes_per_s > 0);
  Resource resource;
  resource.bytes_per_s = bytes_per_s;
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
  reached_.clear();
  shared_.clear();
  for (const ClassId id : touched_) {
    Class& one = classes_[id];
    one.is_touched = false;
    // As many end as begin: nothing changes for anybody.
    if (one.flows != one.solved_flows) reach_class(id);
    one.solved_flows = one.flows;
  }
  touched_.clear();
  reach_resources();
  fill();
  return reached_;
}

/// Notes a class, if it has flows, and its resources.
void MaxMin::reach_class(ClassId id) {
  Class& one = classes_[id];
  if (one.is_reached) return;
  if (one.flows > 0) {
    one.is_reached = true;
    reached_.push_back(id);
  }
  for (const Use& use : uses(one)) {
    Resource& resource = resources_[use.resource];
    if (resource.is_reached) continue;
    resource.is_reached = true;
    resource.left = resource.bytes_per_s;
    resource.weight = 0;
    shared_.push_back(use.resource);
  }
}

/// Everything that is joined to what has been reached; `shared_` grows on the way.
void MaxMin::reach_resources() {
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    for (std::size_t user = 0; user < resources_[shared_[i]].users.size(); ++user) {
      reach_class(resources_[shared_[i]].users[user].id);
    }
  }
  for (const ClassId id : reached_) {
    for (const Use& use : uses(classes_[id])) {
      resources_[use.resource].weight += std::uint64_t{classes_[id].flows} * use.times;
    }
  }
}

/// The resource that allows its flows least sets their rate; what they take is taken from their
/// other resources. Each of those allows its remaining flows no less than before, so a level in the
/// heap that is out of date is too low, and is corrected when it comes to the top.
void MaxMin::fill() {
  const auto is_above = [](const Level& a, const Level& b) {
    return a.rate != b.rate ? a.rate > b.rate : a.resource > b.resource;
  };
  const auto level_of = [](const Resource& resource) {
    return resource.left / static_cast<double>(resource.weight);
  };
  levels_.clear();
  for (const ResourceId id : shared_) {
    Resource& resource = resources_[id];
    resource.is_reached = false;
    if (resource.weight > 0) levels_.push_back({level_of(resource), id});
  }
  std::ranges::make_heap(levels_, is_above);
  while (!levels_.empty()) {
    std::ranges::pop_heap(levels_, is_above);
    const Level lowest = levels_.back();
    levels_.pop_back();
    const Resource& resource = resources_[lowest.resource];
    if (resource.weight == 0) continue;
    if (const double level = level_of(resource); level > lowest.rate) {
      levels_.push_back({level, lowest.resource});
      std::ranges::push_heap(levels_, is_above);
      continue;
    }
    for (const User& user : resource.users) {
      if (classes_[user.id].is_reached) fix(user.id, lowest.rate);
    }
  }
}

void MaxMin::fix(ClassId id, double rate) {
  Class& one = classes_[id];
  one.is_reached = false;
  one.rate = rate;
  for (const Use& use : uses(one)) {
    Resource& resource = resources_[use.resource];
    const std::uint64_t weight = std::uint64_t{one.flows} * use.times;
    resource.left -= static_cast<double>(weight) * rate;
    resource.weight -= weight;
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/task_groups.h"

#include <algorithm>

#include "core/check.h"

namespace espalier {

namespace {

/// Who helps spends no more than this part of what is left on what others know already.
constexpr double kHelpersShare = 0.1;

}  // namespace

void TaskGroups::add(std::size_t task, std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  if (task >= group_of_.size()) group_of_.resize(task + 1);
  group_of_[task] = group;
  groups_[group].open.insert(task);
}

void TaskGroups::keep_together(std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  groups_[group].is_together = true;
}

bool TaskGroups::needs_help(const Group& group) const {
  if (group.open.empty() || group.is_together || !group.latest_own_s) return false;
  const double left_s = *group.latest_own_s * static_cast<double>(group.open.size());
  return static_cast<double>(group.workers.size()) * group.shared_s <= kHelpersShare * left_s;
}

std::optional<std::size_t> TaskGroups::next_for(std::size_t worker) {
  Group* mine = nullptr;
  Group* helped = nullptr;
  for (Group& group : groups_) {
    if (group.open.empty()) continue;
    if (group.workers.empty() || std::ranges::count(group.workers, worker) > 0) {
      if (mine == nullptr || *group.open.begin() < *mine->open.begin()) mine = &group;
    } else if (needs_help(group)) {
      if (helped == nullptr || group.open.size() > helped->open.size()) helped = &group;
    }
  }
  Group* const group = mine != nullptr ? mine : helped;
  if (group == nullptr) return std::nullopt;
  const std::size_t task = mine != nullptr ? *group->open.begin() : *group->open.rbegin();
  group->open.erase(task);
  if (std::ranges::count(group->workers, worker) == 0) group->workers.push_back(worker);
  return task;
}

void TaskGroups::take(std::size_t task) {
  const std::size_t taken = groups_[group_of_.at(task)].open.erase(task);
  CHECK(taken == 1);
}

void TaskGroups::note_time(std::size_t task, double shared_s, double own_s) {
  Group& group = groups_[group_of_.at(task)];
  group.shared_s = std::max(group.shared_s, shared_s);
  group.latest_own_s = own_s;
}

}  // namespace espalier

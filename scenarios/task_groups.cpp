// SPDX-License-Identifier: Apache-2.0
#include "scenarios/task_groups.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace espalier {

namespace {

/// Who helps spends no more than this part of what is left on what others know already.
constexpr double kHelpersShare = 0.1;

}  // namespace

void TaskGroups::add(std::size_t task, std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  group_of_[task] = group;
  groups_[group].open.insert(task);
}

void TaskGroups::add_for(std::size_t task, std::size_t worker) { own_[worker].insert(task); }

void TaskGroups::keep_together(std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  groups_[group].is_together = true;
}

void TaskGroups::put_in_family(std::size_t group, std::size_t family) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  groups_[group].family = family;
}

/// How much of a group is new to a worker that may begin with it, which others may know.
int TaskGroups::distance(const Group& group, std::size_t worker) const {
  if (!group.family || std::ranges::count(group.workers, worker) > 0) return 0;
  const auto workers = families_.find(*group.family);
  if (workers == families_.end()) return 1;
  return workers->second.contains(worker) ? 0 : 2;
}

bool TaskGroups::needs_help(const Group& group) const {
  if (group.open.empty() || group.is_together || !group.latest_own_s) return false;
  const double left_s = *group.latest_own_s * static_cast<double>(group.open.size());
  return static_cast<double>(group.workers.size()) * group.shared_s <= kHelpersShare * left_s;
}

std::optional<std::size_t> TaskGroups::next_for(std::size_t worker) {
  if (const auto own = own_.find(worker); own != own_.end() && !own->second.empty()) {
    return own->second.extract(own->second.begin()).value();
  }
  Group* mine = nullptr;
  std::pair<int, std::size_t> first;
  Group* helped = nullptr;
  for (Group& group : groups_) {
    if (group.open.empty()) continue;
    if (group.workers.empty() || std::ranges::count(group.workers, worker) > 0) {
      const std::pair order(distance(group, worker), *group.open.begin());
      if (mine == nullptr || order < first) {
        mine = &group;
        first = order;
      }
    } else if (needs_help(group)) {
      if (helped == nullptr || group.open.size() > helped->open.size()) helped = &group;
    }
  }
  Group* const group = mine != nullptr ? mine : helped;
  if (group == nullptr) return std::nullopt;
  const std::size_t task = mine != nullptr ? *group->open.begin() : *group->open.rbegin();
  group->open.erase(task);
  if (std::ranges::count(group->workers, worker) == 0) group->workers.push_back(worker);
  if (group->family) families_[*group->family].insert(worker);
  return task;
}

void TaskGroups::take(std::size_t task) {
  const auto group = group_of_.find(task);
  std::size_t taken = group != group_of_.end() ? groups_[group->second].open.erase(task) : 0;
  for (auto& [unused, tasks] : own_) taken += tasks.erase(task);
  CHECK(taken == 1);
}

void TaskGroups::note_time(std::size_t task, double shared_s, double own_s) {
  const auto of = group_of_.find(task);
  if (of == group_of_.end()) return;  // what it took says nothing of those that are not known
  Group& group = groups_[of->second];
  group.shared_s = std::max(group.shared_s, shared_s);
  group.latest_own_s = own_s;
}

}  // namespace espalier

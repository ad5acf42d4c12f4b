// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace espalier {

/// Which task each worker does next. What the tasks of a group share, such as a plan, every worker
/// has to find out for itself: so a worker stays with its groups, and others help only where that
/// is a small part of what is left to do there. Who does what changes no answer.
class TaskGroups {
 public:
  /// Numbers of tasks and groups are the caller's; a task with a lower number comes first.
  void add(std::size_t task, std::size_t group);
  /// One that nobody else does: that worker has found out before what it takes.
  void add_for(std::size_t task, std::size_t worker);
  /// Nobody helps with these: they are answered by one worker, in their order.
  void keep_together(std::size_t group);

  /// Groups of a family share something, too, such as a machine and its bound.
  void put_in_family(std::size_t group, std::size_t family);

  /// The first task for this worker alone; else the first of its groups and of those that nobody
  /// has begun, where those of its families come first and those of other workers' last; else the
  /// last one of a group of others, if any needs help. Nothing if there is none.
  std::optional<std::size_t> next_for(std::size_t worker);
  /// Somebody does it who did not ask. \pre nobody has it
  void take(std::size_t task);

  /// How long a worker took for a task: for what later ones of the group need not find out again,
  /// and for the rest.
  void note_time(std::size_t task, double shared_s, double own_s);

 private:
  struct Group {
    std::set<std::size_t> open;          ///< that nobody has
    std::vector<std::size_t> workers;    ///< that have begun with it
    std::optional<double> latest_own_s;  ///< nothing: no task is done
    double shared_s = 0;
    bool is_together = false;
    std::optional<std::size_t> family;
  };

  bool needs_help(const Group& group) const;
  int distance(const Group& group, std::size_t worker) const;

  std::vector<Group> groups_;
  std::map<std::size_t, std::set<std::size_t>> families_;  ///< workers that have begun with each
  std::map<std::size_t, std::size_t> group_of_;       ///< by task; of none: it is for one worker
  std::map<std::size_t, std::set<std::size_t>> own_;  ///< open ones for one worker, by worker
};

}  // namespace espalier

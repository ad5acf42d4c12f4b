// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace espalier {

/// What a search is doing while the object lives, for whoever shows progress, in another thread.
/// Activities nest: "proving the bound: packing trees". One thread at a time has any.
class Activity {
 public:
  explicit Activity(std::string what);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  /// Says how much of what it may cost the innermost one has cost by now, from 0 to 1.
  static void note_part(double part);
  /// Says how much of its work the innermost one has done, from 0 to 1, where that is known.
  static void note_done(double part);

  /// What is being done, how much of its budget it has used, or how much it has done, and for how
  /// long it may still go on, as far as that is known: "packing trees: 40 % of its budget, about 6
  /// s left". Nothing where no search is under way.
  static std::optional<std::string> describe();
};

/// Memory in which a worker process says what it is doing and its parent reads it. Made before the
/// fork.
class SharedActivity {
 public:
  SharedActivity();
  ~SharedActivity();
  SharedActivity(const SharedActivity&) = delete;
  SharedActivity& operator=(const SharedActivity&) = delete;

  /// In the worker: what it does from now on stands here, not more than half a second late while it
  /// notes its parts.
  void publish();
  /// In the parent: Activity::describe() says what stands in `worker`'s while this process has no
  /// activity of its own; nullptr: no more.
  static void show(const SharedActivity* worker);

  struct Text;

 private:
  Text* text_;  ///< nullptr: there is no such memory, and nothing is said
};

}  // namespace espalier

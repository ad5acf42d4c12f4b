// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exec/mpi/board.h"
#include "exec/mpi/launcher.h"

namespace espalier {

/// The processes of a run that the same parent has started on this host, as /proc and what the
/// launcher says in their environment show them: known before they are connected.
class Siblings {
 public:
  /// `environment`: this process's own. Children of `parent` are of the same run where it says the
  /// same of the run.
  Siblings(pid_t parent, Environment environment);

  /// Those there are or have been, this process among them, by rank. Where the launcher says that
  /// all processes are on this host, also those that have not been seen yet, as `silent`.
  std::vector<RankView> look();
  /// Shows to the others that this process has told why all of them end: one that sees it gone has
  /// not lost it. By its name, as they have nothing in common yet.
  static void note_told();
  /// The ranks of this host, where the launcher says that all are here; nothing otherwise.
  const std::set<int>& expected() const { return expected_; }

 private:
  std::vector<pid_t> children() const;
  bool is_of_this_run(const Environment& other) const;

  const pid_t parent_;
  const Environment environment_;
  std::map<int, pid_t> known_;  ///< by rank
  std::set<int> expected_;      ///< ranks
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace espalier {

/// One part of a sweep's questions: question i of those that differ, counted from 0, is part of
/// shard i modulo `count`, counted from 0.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;
};

/// How the questions of scenarios are answered.
struct SweepOptions {
  int jobs = 0;           ///< worker processes; 0: one for each processor
  std::string journal{};  ///< a file that keeps answers, and is asked first; empty: none
  Shard shard{};  ///< others' questions are left open. \pre there is a journal, or one shard
  /// Journals that are asked, too, and not written.
  std::vector<std::string> merged{};
  /// For the searches of each question, in seconds. Answers that it cuts short are not kept in the
  /// journal: another run may find better ones.
  double budget_s = std::numeric_limits<double>::infinity();
  /// Whether all answers come with links and critical paths. If not, only those to the largest
  /// messages of each table do, whose fastest is drawn, and those of blocks that expect something
  /// of links. With journals all do, as others may ask for them.
  bool keep_details = true;
};

}  // namespace espalier

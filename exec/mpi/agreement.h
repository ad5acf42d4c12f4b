// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "exec/mpi/fingerprint.h"
#include "exec/mpi/processes.h"

namespace espalier {

/// Waits for all others as long as it lives, as the board shows.
class Meeting {
 public:
  explicit Meeting(const Board& board);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

 private:
  RankState& state_;
};

/// Why a process can't take part in a run.
struct Refusal {
  bool is_refused = false;
  bool is_memory = false;  ///< for want of memory
  ErrorKind kind = ErrorKind::runtime;
  std::string message;
  std::string help;
};

/// That of the error or the want of memory that `work` throws; otherwise nothing is refused.
Refusal refusal_of(const std::function<void()>& work);

/// Returns when all processes have agreed; throws in all of them when they can't: Error{usage} that
/// names the ranks with another fingerprint than rank 0, or the first refusal, as OutOfMemory where
/// it is one; ToldElsewhere in all but rank 0.
void agree(const Processes& processes, const Refusal& mine, const Fingerprint& print);

/// Throws an error that all processes have found alike; rank 0 tells it.
[[noreturn]] void throw_together(const Processes& processes, const Refusal& refusal);

}  // namespace espalier

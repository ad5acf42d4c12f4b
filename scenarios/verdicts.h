// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "ir/program.h"
#include "ir/verify.h"

namespace espalier {

/// Verdicts on right programs: questions about one machine after another are mostly answered by the
/// same few programs. Kept are the latest, of a quarter of a million ops together at most, whatever
/// else a study forgets.
class Verdicts {
 public:
  /// What `verify` says of the program. \pre it was built, or cut from one that was
  Verification of(const std::shared_ptr<const Program>& program);

  std::size_t programs() const { return known_.size(); }

 private:
  struct Known {
    std::shared_ptr<const Program> program;
    Verification verdict;
  };
  void keep(Known known);

  std::deque<Known> known_;  ///< the latest comes last
  std::size_t ops_ = 0;      ///< of them all
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>

#include "ir/program.h"
#include "ir/verify.h"

namespace espalier {

/// Verdicts on right programs: what is asked about ever other machines is mostly answered by the
/// same few programs. Kept are the latest, if they are not large.
class Verdicts {
 public:
  /// What `verify` says of the program.
  Verification of(const std::shared_ptr<const Program>& program);

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

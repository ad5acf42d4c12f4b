// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/console.h"
#include "scenarios/answers.h"

namespace espalier {

/// Prints the executions of one algorithm, row by row: exactly the table of nccl-tests, whose
/// parsers then work here too.
class ExecTable {
 public:
  /// The console must outlive it.
  explicit ExecTable(const Console& console) : console_(console) {}

  /// The row of one size; nothing when neither way ran.
  void add(const Outcome& out_of_place, const Outcome& in_place);
  /// What stands below the table.
  void finish(const Answers& answers);

 private:
  const Console& console_;
  bool has_header_ = false;
};

}  // namespace espalier

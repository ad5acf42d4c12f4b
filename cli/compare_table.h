// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/console.h"
#include "scenarios/scenario_runner.h"
#include "scenarios/tables.h"

namespace espalier {

/// Prints predictions beside measurements, row by row.
class CompareTable {
 public:
  /// `where` is what the machine is called; `measured_by` is who measured, where no back end did.
  /// The console must outlive it.
  CompareTable(const Console& console, std::string where, const TableHead& head,
               std::string measured_by = {});

  void add(const Comparison& row);
  /// The median errors.
  void finish(const Comparisons& comparisons);

 private:
  const Console& console_;
  std::string where_;
  std::string measured_by_;
  std::string profile_;  ///< of the head
  std::size_t width_;
  bool has_header_ = false;
  std::vector<Outcome> predicted_;  ///< without what they report: what notes are made of
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "report/json.h"
#include "report/page/page.h"

// Private to the room.

namespace espalier {

/// The rows of a run's timeline: its lanes, or its places where there are many lanes. Where there
/// are many places, too, those are shown that the critical path crosses and then the busiest.
class Rows {
 public:
  /// Refers to the run. \pre it kept its timeline and program
  explicit Rows(const PagedRun& run);

  /// The number of an op's row among those shown, or -1.
  int of(const Op& op) const;
  /// Shown or not.
  std::size_t in_all() const { return count_; }
  /// On the rows that are shown.
  std::size_t ops() const { return ops_; }
  /// Names and places of those shown; with `bins` above 0, how busy each is in so many equal parts
  /// of the run's time, as shares_text has it.
  Json json(int bins) const;

 private:
  using Lane = std::pair<PlaceId, int>;

  std::vector<std::vector<double>> busy_shares(int bins) const;

  const PagedRun& run_;
  bool by_place_ = false;
  std::map<Lane, int> row_;  ///< of those shown, by lane; where a row is a place, by lane 0
  std::vector<Lane> shown_;
  std::size_t count_ = 0;
  std::size_t ops_ = 0;
};

/// The numbers of the ops of the critical path (RunReport::number); none of what was executed.
std::set<OpId> critical_ops(const RunReport& report);

}  // namespace espalier

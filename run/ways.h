// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace espalier {

/// The ways that a program's transfers take, each once: programs repeat few of them many times.
struct Ways {
  /// From one place to another one by an index into Program::vias, or -1.
  struct Way {
    PlaceId from = 0;
    PlaceId to = 0;
    int via = -1;
    OpId first = 0;  ///< op that goes it
    bool operator==(const Way&) const = default;
  };
  std::vector<Way> transfers;      ///< in the order of their first ops; not of ops in switches
  std::vector<OpId> in_switch;     ///< the first op in a switch of those between the same places
  int groups = 1;                  ///< whose ops these are: the first ones of a folded program
  std::int64_t longest_units = 0;  ///< of all transfers
};

/// Of the ops, and of what they are in the first `groups` groups of a folded program.
Ways find_ways(const Program& program, int groups);

}  // namespace espalier

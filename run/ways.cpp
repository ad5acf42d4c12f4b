// SPDX-License-Identifier: Apache-2.0
#include "run/ways.h"

#include <algorithm>

#include "core/interruption.h"
#include "run/switches.h"
#include "run/transfer_key.h"

namespace espalier {

Ways find_ways(const Program& program, int groups) {
  Ways ways;
  ways.groups = groups;
  SeenTransfers seen(program);
  SwitchPlaces switches;
  for (OpId id = 0; id < program.ops.size(); ++id) {
    check_interruption_at(id);
    const Op& op = program.ops[id];
    bool moves = false;
    if (op.in_switch) {
      for_each_transfer(program, op, [&](PlaceId, PlaceId) { moves = true; });
      if (switches.is_new(program, op)) ways.in_switch.push_back(id);
    } else {
      for_each_transfer_of_groups(program, op, groups, [&](PlaceId from, PlaceId to) {
        moves = true;
        const bool is_new = seen.add(from, to, op.via);
        if (is_new) ways.transfers.push_back({from, to, op.via, id});
        return is_new;
      });
    }
    if (moves) ways.longest_units = std::max<std::int64_t>(ways.longest_units, op.length);
  }
  return ways;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "run/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "ir/builder.h"
#include "ir/unfold.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

using WaySet = std::set<std::tuple<PlaceId, PlaceId, int>>;

/// Those of every op, one after the other.
WaySet ways_of_ops(const Program& program) {
  WaySet ways;
  for (const Op& op : program.ops) {
    if (op.in_switch) continue;
    for_each_transfer(program, op,
                      [&](PlaceId from, PlaceId to) { ways.emplace(from, to, op.via); });
  }
  return ways;
}

/// Checks that each is there once, and named after the first op of the program that goes it.
WaySet found(const Program& program, const Ways& ways) {
  WaySet all;
  OpId before = 0;
  for (const Ways::Way& way : ways.transfers) {
    EXPECT_TRUE(all.emplace(way.from, way.to, way.via).second) << way.from << " to " << way.to;
    EXPECT_GE(way.first, before);
    EXPECT_EQ(program.ops[way.first].via, way.via);
    before = way.first;
  }
  return all;
}

std::int64_t longest_transfer(const Program& program) {
  std::int64_t longest = 0;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op, [&](PlaceId, PlaceId) {
      longest = std::max<std::int64_t>(longest, op.length);
    });
  }
  return longest;
}

TEST(Ways, AreThoseOfAllOps) {
  for (const Program& program : sample_programs()) {
    SCOPED_TRACE(program.name);
    const Ways ways = find_ways(program, 1);
    EXPECT_EQ(found(program, ways), ways_of_ops(program));
    EXPECT_TRUE(ways.in_switch.empty());
    EXPECT_EQ(ways.longest_units, longest_transfer(program));
  }
}

/// A ring of which the ops of the first ranks alone are there.
TEST(Ways, AreThoseOfAsManyGroupsAsAreAskedFor) {
  constexpr int kRanks = 6;
  Contract contract;
  contract.collective = Collective::allgather;
  contract.ranks = kRanks;
  contract.units = kRanks;
  for (const int groups : {2, 3, 6}) {
    Builder builder("ring", contract, turned_by_blocks(contract, groups));
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int step = 0; step + 1 < kRanks; ++step) {
        const int block = (rank + kRanks - step) % kRanks;
        builder.copy(builder.output((rank + 1) % kRanks, block, 1), builder.output(rank, block, 1),
                     {.lane = step % 2});
      }
    }
    const Program program = builder.finish();
    ASSERT_EQ(program.fold.groups, groups);
    for (int asked = 1; asked <= groups; ++asked) {
      const Ways ways = find_ways(program, asked);
      EXPECT_EQ(ways.groups, asked);
      EXPECT_EQ(ways.transfers.size(), static_cast<std::size_t>(kRanks / groups * asked));
    }
    EXPECT_EQ(found(program, find_ways(program, groups)), ways_of_ops(unfold(program)));
  }
}

/// Of ops in switches, the first between the same places; a switch that is named is another way.
TEST(Ways, LeaveSwitchesToThemselves) {
  Contract contract;
  contract.collective = Collective::allreduce;
  contract.ranks = 3;
  contract.units = 3;
  Builder builder("switch", contract);
  for (int unit = 0; unit < 3; ++unit) {
    for (const char* via : {"", "switch1"}) {
      builder.combine(
          builder.output(0, unit, 1),
          {builder.input(0, unit, 1), builder.input(1, unit, 1), builder.input(2, unit, 1)},
          {.at = 0, .via = via, .in_switch = true});
    }
  }
  builder.copy(builder.output(1, 0, 2), builder.output(0, 0, 2), {.via = "gpu2"});
  builder.copy(builder.output(1, 2, 1), builder.output(0, 2, 1));
  const Program program = builder.finish();
  const Ways ways = find_ways(program, 1);
  EXPECT_EQ(ways.in_switch, (std::vector<OpId>{0, 1}));
  EXPECT_EQ(found(program, ways), (WaySet{{0, 1, program.ops[6].via}, {0, 1, -1}}));
  EXPECT_EQ(ways.transfers.front().first, OpId{6});
  EXPECT_EQ(ways.longest_units, 2);
}

}  // namespace
}  // namespace espalier

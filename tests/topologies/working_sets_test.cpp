// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "topologies/topology.h"

namespace espalier {
namespace {

WorkingSet of(double bytes, double gbps, double node_reduce_gbps) {
  WorkingSet one;
  one.bytes = bytes;
  one.gbps = gbps;
  one.node_reduce_gbps = node_reduce_gbps;
  return one;
}

TEST(WorkingSets, TimesOfAByteGrowWithTheLogarithmOfTheBytesBetweenThoseThatAreKnown) {
  SharedMemory memory;
  memory.gbps = 10;
  EXPECT_FALSE(memory.speeds_for(1));
  memory.working_sets = {of(1e6, 100, 0), of(16e6, 20, 5)};
  EXPECT_EQ(memory.speeds_for(1)->gbps, 100);
  EXPECT_EQ(memory.speeds_for(1e6)->gbps, 100);
  EXPECT_EQ(memory.speeds_for(16e6)->gbps, 20);
  // Half of the way from 1 MB to 16 MB: 0.01 and 0.05 ns for a byte make 0.03 ns.
  const WorkingSet between = memory.speeds_for(4e6).value();
  EXPECT_NEAR(between.gbps, 1 / 0.03, 1e-9);
  // Additions that are not modelled take no time: 0 and 0.2 ns make 0.1 ns.
  EXPECT_NEAR(between.node_reduce_gbps, 10, 1e-9);
  EXPECT_EQ(between.exchange_gbps, 0);
  // Beyond the last one, the memory's own figures hold.
  EXPECT_FALSE(memory.speeds_for(16.1e6));
}

}  // namespace
}  // namespace espalier

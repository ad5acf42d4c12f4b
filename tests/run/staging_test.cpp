// SPDX-License-Identifier: Apache-2.0
// Programs whose GPUs would exchange data with more peers than they can map.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "algorithms/algorithm.h"
#include "ir/interpret.h"
#include "ir/reroute.h"
#include "ir/verify.h"
#include "run/routes.h"
#include "run/staging.h"
#include "tests/ir/random_program.h"
#include "topologies/load.h"

namespace espalier {
namespace {

class Staging : public testing::Test {
 protected:
  Staging()
      : topology_(load_topology("p2.16xlarge")),
        router_(topology_, topology_.profile("copy_engine")),
        target_{&router_, place_ranks(router_, {})} {}

  Program build_for(const std::string& algorithm, Collective collective) const {
    const BuildRequest request = request_for(collective, 0, false, router_, target_.placement);
    const AlgorithmChoice choice = parse_algorithm(algorithm);
    EXPECT_FALSE(unsupported(choice, request)) << algorithm;
    return build(choice, request);
  }

  Topology topology_;
  Router router_;
  Target target_;
};

TEST_F(Staging, GpusMapTheirNearestPeers) {
  // Each of 16 GPUs talks to 15 others and can map 8.
  for (const char* algorithm : {"parameter_server:sharded=1", "all_pairs", "flat_two_stage"}) {
    SCOPED_TRACE(algorithm);
    const Program whole = build_for(algorithm, Collective::allreduce);
    ASSERT_FALSE(check_routes(whole, target_).empty());
    const auto staged = stage_beyond_peer_limits(whole, target_);
    ASSERT_TRUE(staged);
    EXPECT_TRUE(check_routes(staged->program, target_).empty());
    // 120 pairs, of which 16 x 8 / 2 may be mapped.
    EXPECT_GE(staged->pairs, 120 - 64);
    EXPECT_LE(staged->pairs, 120 - 56);  // all within a half of the machine are mapped
    EXPECT_TRUE(verify(staged->program).ok());
    for (const Op& op : staged->program.ops) {
      for_each_transfer(staged->program, op, [&](PlaceId from, PlaceId to) {
        EXPECT_TRUE(from / 8 != to / 8 || op.via < 0) << "r" << from << " and r" << to;
      });
    }
    constexpr std::int64_t kElements = 33;
    Memory memory = initial_memory(staged->program, DataType::int32, ReduceOp::sum, kElements);
    interpret(staged->program, DataType::int32, ReduceOp::sum, kElements, memory);
    EXPECT_EQ(count_wrong(staged->program, DataType::int32, ReduceOp::sum, kElements, memory), 0);
  }
}

TEST_F(Staging, LeavesOthersAlone) {
  const Program ring = build_for("ring", Collective::allreduce);
  EXPECT_FALSE(stage_beyond_peer_limits(ring, target_));
}

/// Everything that random programs hold in the end is the same, whichever ways transfers take.
TEST_F(Staging, PathsDoNotChangeWhatAProgramDoes) {
  int rewritten = 0, divided = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Program program = random_program(random, {.max_units = 3, .max_ops = 12});
    const auto other = reroute(program, [](PlaceId from, PlaceId to) {
      return (from + to) % 2 == 0 ? std::string("cpu0") : std::string();
    });
    if (!other) continue;
    ++rewritten;
    divided += other->ops.size() > program.ops.size() ? 1 : 0;
    constexpr std::int64_t kElements = 11;
    Memory before = initial_memory(program, DataType::int32, ReduceOp::sum, kElements);
    Memory after = initial_memory(*other, DataType::int32, ReduceOp::sum, kElements);
    interpret(program, DataType::int32, ReduceOp::sum, kElements, before);
    interpret(*other, DataType::int32, ReduceOp::sum, kElements, after);
    EXPECT_EQ(before.places, after.places);
    for (const Op& op : other->ops) {
      if (op.in_switch) continue;
      for_each_transfer(*other, op, [&](PlaceId from, PlaceId to) {
        const bool named = op.via >= 0 && other->vias[static_cast<std::size_t>(op.via)] != "cpu0";
        EXPECT_TRUE(named || (op.via >= 0) == ((from + to) % 2 == 0));
      });
    }
  }
  EXPECT_GT(rewritten, 200);
  EXPECT_GT(divided, 20);
}

}  // namespace
}  // namespace espalier

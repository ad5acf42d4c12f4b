// SPDX-License-Identifier: Apache-2.0
// No simulated program has more blocks in flight on a GPU than its profile says there are: all
// algorithms and collectives, whole and cut, on machines of every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "run/blocks.h"
#include "run/routes.h"
#include "sim/simulator.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

constexpr std::size_t kMaxOps = 4000;

/// The largest number of ops that hold their lanes on a GPU at the same time.
int most_in_flight(const Program& program, const RunReport& report) {
  int most = 0;
  for (PlaceId place = 0; place < program.places(); ++place) {
    if (place_number(program, place).kind == PlaceKind::host) continue;
    std::vector<std::pair<double, int>> changes;
    for (const OpTiming& timing : report.timeline) {
      const Op& op = program.ops[timing.op];
      if (op.at != place || op.kind != OpKind::combine || timing.end_s <= timing.start_s) continue;
      // What ends and begins within a rounding follows each other.
      changes.emplace_back(timing.start_s + 1e-12, 1);
      changes.emplace_back(timing.end_s, -1);
    }
    std::ranges::sort(changes);
    int now = 0;
    for (const auto& [unused, change] : changes) most = std::max(most, now += change);
  }
  return most;
}

class Blocks : public testing::TestWithParam<const char*> {};

TEST_P(Blocks, NeverMoreInFlightThanThereAre) {
  const Topology machine = load_topology(GetParam());
  Simulator simulator;
  int tried = 0, merged_ones = 0;
  for (const int blocks : {3, 32}) {
    Profile profile = machine.profile("kernel");
    profile.blocks = blocks;
    const Router router(machine, profile);
    const Target target{&router, place_ranks(router, {})};
    for (const Algorithm* algorithm : all_algorithms()) {
      for (const Collective collective : algorithm->collectives) {
        const AlgorithmChoice choice = parse_algorithm(algorithm->name);
        const BuildRequest request = request_for(collective, 0, false, router, target.placement);
        if (unsupported(choice, request)) continue;
        Program program = build(choice, request);
        if (!check_routes(program, target).empty()) continue;
        if (program.ops.size() <= kMaxOps / 4) program = chunk(program, {4, 1});
        if (program.ops.size() > kMaxOps) continue;
        SCOPED_TRACE(
            fmt::format("{} {}, {} blocks", algorithm->name, to_string(collective), blocks));
        RunOptions options;
        options.size_bytes = 1'000'003;
        options.timeline = true;
        const RunReport report = simulator.run(program, target, options);
        EXPECT_LE(most_in_flight(program, report), blocks);
        ++tried;

        const auto merged = simulator.on_blocks(program, target, options);
        EXPECT_EQ(merged.has_value(), too_many_lanes(program, target).has_value());
        if (!merged) continue;
        ++merged_ones;
        EXPECT_FALSE(too_many_lanes(*merged, target));
        EXPECT_TRUE(verify(*merged).ok());
        EXPECT_FALSE(simulator.on_blocks(*merged, target, options));
        // Put onto blocks for good, it takes what it took while blocks chose their ops, but for
        // ops that become free at the same moment.
        const RunReport again = simulator.run(*merged, target, options);
        EXPECT_LE(most_in_flight(*merged, again), blocks);
        EXPECT_NEAR(again.time_s / report.time_s, 1, 0.02);
      }
    }
  }
  EXPECT_GT(tried, 20);
  EXPECT_GT(merged_ones, 2);
}

INSTANTIATE_TEST_SUITE_P(Machines, Blocks,
                         testing::Values("dgx1-v100", "dgx-a100", "mist:nodes=2", "p2.8xlarge",
                                         "mi300x", "dgx-h100", "switch:n=5,gbps=50"),
                         [](const auto& param) {
                           std::string name;
                           for (const char letter : std::string(param.param)) {
                             if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
                               name += letter;
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace espalier

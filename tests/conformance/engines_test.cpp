// SPDX-License-Identifier: Apache-2.0
// The engines that divide links between transfers, SimGrid and our own, tell the same times of
// every algorithm, for every collective it serves, on machines of every kind of link. One size, at
// which latency and bandwidth both count; ESPALIER_ALL_TESTS=1 (./dev test --all) adds messages
// that are all latency and messages that are all bandwidth.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/chunk.h"
#include "run/routes.h"
#include "sim/simulator.h"
#include "tests/sample.h"
#include "topologies/load.h"
#include "topologies/placement.h"

namespace espalier {
namespace {

/// What both promise (docs/validation.md).
constexpr double kAccuracy = 1e-9;
/// How far SimGrid, which rounds in another order, may be from what the twelfth digit of bandwidths
/// moves at most: `nccl` on two Mist nodes, 21 504 ops, is 16 times as far.
constexpr double kGrowth = 20;
/// Programs of more ops than these are not cut as well: SimGrid would take minutes.
constexpr std::size_t kMaxOps = 1000;

class Engines : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  Engines()
      : topology_(load_topology(std::get<0>(GetParam()))),
        router_(topology_, topology_.profile(std::get<1>(GetParam()))),
        target_{&router_, place_ranks(router_, {})} {}

  RunReport run(const Program& program, std::int64_t size_bytes, SimEngine engine) {
    RunOptions options;
    options.size_bytes = size_bytes;
    options.engine = engine;
    return simulator_.run(program, target_, options);
  }

  /// Lanes that share a block choose among ops that become free at the same time, and roundings
  /// decide which came first: once it is decided, it is the same for both.
  void compare(const Program& given) {
    RunOptions options;
    options.size_bytes = 1'000'003;
    const auto merged = simulator_.on_blocks(given, target_, options);
    const Program& program = merged ? *merged : given;
    if (merged) expect_not_abandoned(given, run(given, 1'000'003, SimEngine::classes));
    std::vector<std::int64_t> sizes = {1'000'003};
    if (all_cases_wanted()) sizes.insert(sizes.end(), {1021, 50'000'000});
    for (const std::int64_t size_bytes : sizes) {
      SCOPED_TRACE(fmt::format("{} bytes, {} ops", size_bytes, program.ops.size()));
      const RunReport reference = run(program, size_bytes, SimEngine::simgrid);
      const RunReport ours = run(program, size_bytes, SimEngine::classes);
      EXPECT_EQ(reference.simulated->engine, "simgrid");
      EXPECT_EQ(ours.simulated->engine, "classes");
      const double apart_s = std::abs(ours.time_s - reference.time_s);
      if (apart_s > kAccuracy * reference.time_s) {
        EXPECT_LE(apart_s, kGrowth * shift_by_roundings_s(program, size_bytes, ours.time_s));
      }
      EXPECT_EQ(ours.transfers, reference.transfers);
      expect_not_abandoned(program, ours);
      for (const LinkUse& link : ours.simulated->links) EXPECT_LE(link.utilization, 1 + kAccuracy);
    }
  }

  /// A limit that it keeps does not change a simulation.
  void expect_not_abandoned(const Program& program, const RunReport& unlimited) {
    RunOptions options;
    options.size_bytes = unlimited.message_bytes;
    options.limits = SimLimits{.time_s = unlimited.time_s * (1 + kAccuracy)};
    const RunReport limited = simulator_.run(program, target_, options);
    EXPECT_EQ(limited.simulated->end, SimEnd::finished);
    EXPECT_EQ(limited.time_s, unlimited.time_s);
  }

  /// What a program takes at least, however it is cut, is no more than what it takes when it is cut
  /// `into` times as finely as it is written.
  void expect_no_less(const Program& program, std::int64_t into) {
    RunOptions options;
    options.size_bytes = 1'000'003;
    const LeastTimes least = simulator_.least_times(program, target_, options, 1e9);
    const Program cut = chunk(program, {into, 1});
    const auto piece_bytes =
        static_cast<std::int64_t>(std::ceil(1'000'003 / static_cast<double>(cut.contract.units)));
    EXPECT_LE(least.of_chunks(piece_bytes), run(cut, 1'000'003, SimEngine::classes).time_s);
  }

  /// How far the time moves with bandwidths that differ in the twelfth digit: by more than that
  /// digit where the program is chaotic on this machine (docs/validation.md).
  double shift_by_roundings_s(const Program& program, std::int64_t size_bytes, double time_s) {
    double maximum_s = 0;
    for (int k = 1; k <= 8; ++k) {
      Topology other = topology_;
      for (Link& link : other.links) link.gbps *= 1 + k * 1e-12;
      const Router router(other, other.profile(std::get<1>(GetParam())));
      RunOptions options;
      options.size_bytes = size_bytes;
      options.engine = SimEngine::classes;
      const RunReport moved = simulator_.run(program, {&router, target_.placement}, options);
      maximum_s = std::max(maximum_s, std::abs(moved.time_s - time_s));
    }
    return maximum_s;
  }

  Topology topology_;
  Router router_;
  Target target_;
  Simulator simulator_;
};

TEST_P(Engines, AgreeOnEveryAlgorithm) {
  int compared = 0;
  for (const Algorithm* algorithm : all_algorithms()) {
    for (const Collective collective : algorithm->collectives) {
      const AlgorithmChoice choice = parse_algorithm(algorithm->name);
      const BuildRequest request = request_for(collective, 0, false, router_, target_.placement);
      if (unsupported(choice, request)) continue;
      const Program program = build(choice, request);
      if (!check_routes(program, target_).empty()) continue;
      SCOPED_TRACE(fmt::format("{} {}", algorithm->name, to_string(collective)));
      compare(program);
      if (program.ops.size() <= kMaxOps) {
        compare(chunk(program, {3, 1}));
        expect_no_less(program, 3);
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 15);
}

std::string name_of(const testing::TestParamInfo<Engines::ParamType>& param) {
  const std::string machine = std::get<0>(param.param);
  std::string name;
  for (const char letter : machine.substr(0, machine.find(':')) + '_' + std::get<1>(param.param)) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_') name += letter;
  }
  return name;
}

/// Whether a library of that name has been loaded into this process.
bool is_loaded(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

TEST(SimGrid, IsLoadedWhenItIsAskedFor) {
  const Topology topology = load_topology("ring:n=4");
  const Router router(topology, topology.profile("ideal"));
  const Target target{&router, place_ranks(router, {})};
  const AlgorithmChoice choice = parse_algorithm("ring");
  const Program program =
      build(choice, request_for(Collective::allreduce, 0, false, router, target.placement));
  if (is_loaded("libsimgrid")) GTEST_SKIP() << "by an earlier test of this process";
  RunOptions options;
  options.size_bytes = 1000;
  Simulator().run(program, target, options);
  EXPECT_FALSE(is_loaded("libsimgrid"));
  options.engine = SimEngine::simgrid;
  Simulator().run(program, target, options);
  EXPECT_TRUE(is_loaded("libsimgrid"));
}

INSTANTIATE_TEST_SUITE_P(
    Machines, Engines,
    testing::Combine(testing::Values("dgx1-v100", "p2.8xlarge", "mist:nodes=2", "kesch",
                                     "torus:x=3,y=2,z=2,gbps=20,latency_us=1,forward=1",
                                     "switch:n=12,gbps=50,nvswitch0.combines=1"),
                     testing::Values("ideal", "kernel", "copy_engine")),
    name_of);
/// Proxies, which post messages between nodes one after the other.
INSTANTIATE_TEST_SUITE_P(Proxies, Engines,
                         testing::Combine(testing::Values("mist:nodes=2"),
                                          testing::Values("kernel:ll")),
                         name_of);

}  // namespace
}  // namespace espalier

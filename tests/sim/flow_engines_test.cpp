// SPDX-License-Identifier: Apache-2.0
// What every flow engine must do, and that the engines agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/class_engine.h"
#include "sim/simgrid_engine.h"

namespace espalier {
namespace {

struct Flow {
  std::vector<ResourceId> resources;
  double latency_s = 0;
  double bytes = 0;
  ResourceId alone = kNoResource;
};

/// Starts all flows at date 0 and answers when each ends, ticks being seconds. The engine is told
/// to expect the sum of all times, times `expectation`.
std::vector<double> end_times(FlowEngine& engine, const std::vector<double>& capacities,
                              const std::vector<Flow>& flows, double expectation = 1) {
  std::optional<Expectation> expected = Expectation{};
  for (const Flow& flow : flows) {
    expected->largest_bytes = std::max(expected->largest_bytes, flow.bytes);
    double alone_s = flow.latency_s;
    for (const ResourceId id : flow.resources) alone_s += flow.bytes / capacities[id];
    if (flow.alone != kNoResource) alone_s += flow.bytes / capacities[flow.alone];
    expected->time = expected->time + Ticks{alone_s * expectation};
  }
  std::vector<double> ends(flows.size(), -1);
  while (expected) {
    engine.begin(*expected);
    for (const double capacity : capacities) engine.add_resource(capacity);
    for (FlowToken i = 0; i < flows.size(); ++i) {
      const Flow& flow = flows[i];
      engine.start(flow.resources, flow.alone, Ticks{flow.latency_s}, flow.bytes, i);
    }
    expected = engine.run([&](FlowToken flow) { ends[flow] = engine.now().value; });
  }
  return ends;
}

std::vector<double> simgrid_times(const std::vector<double>& capacities,
                                  const std::vector<Flow>& flows, double expectation = 1) {
  return end_times(SimGridEngine::instance(), capacities, flows, expectation);
}

class FlowEngines : public testing::TestWithParam<std::string> {
 protected:
  FlowEngine& engine() {
    return GetParam() == "classes" ? static_cast<FlowEngine&>(classes_) : SimGridEngine::instance();
  }
  std::vector<double> times(const std::vector<double>& capacities, const std::vector<Flow>& flows) {
    return end_times(engine(), capacities, flows);
  }

 private:
  ClassEngine classes_;
};

INSTANTIATE_TEST_SUITE_P(Both, FlowEngines, testing::Values("simgrid", "classes"),
                         [](const auto& param) { return param.param; });

void expect_times(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], 1e-9 * wanted[i]) << "flow " << i;
  }
}

TEST_P(FlowEngines, AFlowTakesLatencyThenBytesOverBandwidth) {
  // 1 us + 25 000 / 25e9 = 2 us.
  expect_times(times({25e9}, {{{0}, 1e-6, 25000}}), {2e-6});
}

TEST_P(FlowEngines, ShortSimulationsAreAsExactAsLongOnes) {
  // A latency, then a share of half the link, then the rest alone; a picosecond to a year long.
  for (int exponent = -12; exponent <= 8; ++exponent) {
    SCOPED_TRACE(exponent);
    const double s = std::pow(10.0, exponent);
    const double rate = 64 / s;
    // From s on both move at rate / 2; flow 1 ends its 16 bytes at s + 0.5 s, flow 0 has 48 left.
    const std::vector<double> ends = times({rate}, {{{0}, s, 64}, {{0}, s, 16}});
    EXPECT_NEAR(ends[1], 1.5 * s, 2e-12 * s);
    EXPECT_NEAR(ends[0], 2.25 * s, 4e-12 * s);
  }
}

TEST_P(FlowEngines, PartsOfAByteCount) {
  const double bytes = std::ldexp(1.0 / 3, -20);
  const std::vector<double> ends = times({1e6}, {{{0}, 0, bytes}, {{0}, 0, 3 * bytes}});
  EXPECT_NEAR(ends[0], 2 * bytes / 1e6, 1e-11 * bytes / 1e6);
  EXPECT_NEAR(ends[1], 4 * bytes / 1e6, 1e-11 * bytes / 1e6);
}

TEST_P(FlowEngines, ADelayNeedsNoResource) {
  expect_times(times({}, {{{}, 3e-6, 0}, {{}, 1e-6, 0}}), {3e-6, 1e-6});
}

TEST_P(FlowEngines, ZeroBytesTakeTheLatencyOnly) {
  expect_times(times({1e9}, {{{0}, 2e-6, 0}, {{0}, 0, 1000}}), {2e-6, 1e-6});
}

TEST_P(FlowEngines, FlowsShareEquallyWhateverTheirLatency) {
  // The first moves alone for 1 s (10 of its 30 bytes), then both at 5/s: the second ends its 10 at
  // 1 + 2 = 3, the first has 10 left and ends at 4.
  expect_times(times({10}, {{{0}, 0, 30}, {{0}, 1, 10}}), {4, 3});
  // Latencies a million times apart do not change the shares either: both move from about 0 at 5/s.
  const std::vector<double> ends = times({10}, {{{0}, 1e-9, 10}, {{0}, 1e-3, 10}});
  EXPECT_NEAR(ends[0], 2, 2e-3);
  EXPECT_NEAR(ends[1], 2, 2e-3);
}

TEST_P(FlowEngines, ThreeFlowsShareTwoLinksMaxMin) {
  // A carries 10/s, B 4/s. Flow 0 uses A, 1 uses A and B, 2 uses B. B's fair share is 2, so 1 and 2
  // get 2 each and 0 gets 10 - 2 = 8. At t = 1 flow 0 (8 bytes) and flow 2 (2 bytes) end; flow 1
  // has 8 - 2 = 6 left and B alone, 4/s: 1 + 6/4 = 2.5.
  expect_times(times({10, 4}, {{{0}, 0, 8}, {{0, 1}, 0, 8}, {{1}, 0, 2}}), {1, 2.5, 1});
}

TEST_P(FlowEngines, AResourceListedTwiceCarriesTheBytesTwice) {
  expect_times(times({10}, {{{0, 0}, 0, 10}}), {2});
  // Rates are equal: 2x + x = 10. Flow 1 ends at 10 / (10/3) = 3; flow 0 then has 20 - 10 left at
  // 5/s: 3 + 2 = 5.
  expect_times(times({10}, {{{0, 0}, 0, 20}, {{0}, 0, 10}}), {5, 3});
}

TEST_P(FlowEngines, WhatFlowsHaveAloneLimitsEachOfThem) {
  // Three flows over a link of 10/s, each with something of its own: two of 2/s, one of 20/s. The
  // two get 2/s each, the third what is left, 6/s: it ends at 12 / 6 = 2. Nothing else limits the
  // two then, which go on at 2/s.
  const std::vector<Flow> flows = {{{0}, 0, 8, 1}, {{0}, 0, 8, 2}, {{0}, 0, 12, 3}, {{}, 0, 5, 4}};
  expect_times(times({10, 2, 2, 20, 2.5}, flows), {4, 4, 2, 2});
  // A link of 3/s is less than both: 1.5/s for either.
  expect_times(times({3, 2, 2}, {{{0}, 0, 6, 1}, {{0}, 0, 6, 2}}), {4, 4});
}

TEST_P(FlowEngines, FractionsOfBytesCount) {
  const double bytes = 1000.0 / 7;
  expect_times(times({1e9}, {{{0}, 0, bytes}}), {bytes / 1e9});
  const double many = static_cast<double>(std::int64_t{1} << 50) / 7;
  expect_times(times({1e12}, {{{0}, 1e-6, many}}), {1e-6 + many / 1e12});
}

TEST_P(FlowEngines, ACallbackStartsTheNextFlow) {
  engine().begin({.largest_bytes = 1000, .time = {2e-4}, .flows_in_turn = 100});
  const ResourceId link = engine().add_resource(1e9);
  int left = 100;
  engine().start(std::vector{link}, Ticks{1e-6}, 1000, 0);
  ASSERT_FALSE(engine().run([&](FlowToken) {
    if (--left > 0) engine().start(std::vector{link}, Ticks{1e-6}, 1000, 0);
  }));
  EXPECT_EQ(left, 0);
  EXPECT_NEAR(engine().now().value, 100 * 2e-6, 1e-9 * 2e-4);
}

/// Max-min shares by progressive filling, stepped from event to event: slow and independent.
std::vector<double> fluid_model(const std::vector<double>& capacities, std::vector<Flow> flows) {
  std::vector<double> ends(flows.size(), -1);
  double now = 0;
  while (std::ranges::count(ends, -1) > 0) {
    std::map<std::size_t, double> rate;  // of flows that have paid their latency
    std::vector<bool> is_set(flows.size(), false);
    std::vector<double> left = capacities;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (ends[i] < 0 && flows[i].latency_s <= now) rate[i] = 0;
    }
    for (std::size_t frozen = 0; frozen < rate.size();) {
      double share = std::numeric_limits<double>::infinity();
      std::size_t tightest = 0;
      for (std::size_t r = 0; r < capacities.size(); ++r) {
        double weight = 0;
        for (const auto& [i, unused] : rate) {
          if (!is_set[i]) weight += std::ranges::count(flows[i].resources, r);
        }
        if (weight > 0 && left[r] / weight < share) {
          share = left[r] / weight;
          tightest = r;
        }
      }
      for (auto& [i, value] : rate) {
        if (is_set[i] || std::ranges::count(flows[i].resources, tightest) == 0) continue;
        value = share;
        is_set[i] = true;
        ++frozen;
        for (const ResourceId r : flows[i].resources) left[r] -= share;
      }
    }
    double step = std::numeric_limits<double>::infinity();
    for (const auto& [i, value] : rate) step = std::min(step, flows[i].bytes / value);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (flows[i].latency_s > now) step = std::min(step, flows[i].latency_s - now);
    }
    const bool is_latency = std::ranges::any_of(flows, [&](const Flow& flow) {
      return flow.latency_s > now && flow.latency_s - now == step;
    });
    const double before = now;
    now += step;
    for (Flow& flow : flows) {
      if (is_latency && flow.latency_s - before == step) flow.latency_s = now;
    }
    for (const auto& [i, value] : rate) {
      flows[i].bytes -= value * step;
      if (flows[i].bytes <= 1e-12) ends[i] = now;
    }
  }
  return ends;
}

/// Random flows over random resources. `latency` draws the latency of one.
template <typename Latency>
void expect_fluid_model(FlowEngine& engine, Latency latency) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto number = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    std::vector<double> capacities(6);
    for (double& capacity : capacities) capacity = number(1, 100);
    std::vector<Flow> flows(30);
    for (Flow& flow : flows) {
      const int length = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < length; ++i) flow.resources.push_back(random() % capacities.size());
      flow.latency_s = latency(random);
      flow.bytes = number(1, 50);
    }
    expect_times(end_times(engine, capacities, flows), fluid_model(capacities, flows));
  }
}

TEST_P(FlowEngines, AgreesWithAFluidModel) {
  expect_fluid_model(engine(), [](std::mt19937& random) {
    return random() % 3 == 0 ? 0 : std::uniform_real_distribution<double>(0, 5)(random);
  });
}

TEST_P(FlowEngines, AgreesWithAFluidModelWhenManyLatenciesEndTogether) {
  // SimGrid's solver overlooks links of flows that begin to move at the same moment (see its
  // start).
  expect_fluid_model(engine(),
                     [](std::mt19937& random) { return static_cast<double>(random() % 3); });
}

/// Ends of a desynchronised pattern, to the last bit.
std::vector<double> awkward_pattern() {
  std::vector<Flow> flows;
  for (int i = 0; i < 40; ++i) {
    flows.push_back({{static_cast<ResourceId>(i % 3), static_cast<ResourceId>(i % 5)},
                     1e-6 / (i + 3),
                     12345.0 / (i + 7)});
  }
  return simgrid_times({25e9, 11e9 / 3, 50e9 / 7, 1e9, 3e9}, flows);
}

TEST(SimGridEngine, ResultsDoNotDependOnEarlierSimulations) {
  const std::vector<double> first = awkward_pattern();
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    // Other simulations of 0 to 0.1 s, together many epochs long.
    simgrid_times({1e9}, {{{0}, 0, 1.0 + static_cast<double>(random() % 100'000'000)}});
    ASSERT_EQ(awkward_pattern(), first) << "after " << i + 1 << " others";
  }
}

TEST(SimGridEngine, SimulationsLongerThanAnEpochAreReproducible) {
  // Expected to take nothing, so that epochs last 1 s; they take 10.
  const auto long_pattern = [] {
    return simgrid_times({10, 3}, {{{0}, 1.0 / 3, 70}, {{0, 1}, 0.1, 17}, {{1}, 0.7, 29}}, 0);
  };
  const std::vector<double> first = long_pattern();
  for (int i = 0; i < 20; ++i) {
    simgrid_times({1e9}, {{{0}, 1e-6, 1e5 * (i + 1)}});
    ASSERT_EQ(long_pattern(), first);
  }
}

TEST(SimGridEngine, LongSimulationsDoNotWearItOut) {
  const std::vector<double> first = awkward_pattern();
  for (int i = 0; i < 5000; ++i) expect_times(simgrid_times({10}, {{{0}, 5, 100}}), {15});
  EXPECT_EQ(awkward_pattern(), first);
}

TEST(SimGridEngine, ShortSimulationsDoNotWearItOut) {
  const std::vector<double> first = awkward_pattern();
  for (int i = 0; i < 20'000; ++i) {
    const double bytes = 1.0 + i % 7;
    ASSERT_NEAR(simgrid_times({1e12}, {{{0}, 1e-9, bytes}})[0], 1e-9 + bytes / 1e12, 1e-20);
  }
  EXPECT_EQ(awkward_pattern(), first);
}

TEST(SimGridEngine, ReusesItsLinks) {
  const std::vector<double> capacities(50, 1e9);
  simgrid_times(capacities, {{{49}, 0, 1}});
  const std::size_t pooled = SimGridEngine::instance().pooled_resources();
  for (int i = 0; i < 100; ++i) simgrid_times(capacities, {{{49}, 0, 1}});
  EXPECT_EQ(SimGridEngine::instance().pooled_resources(), pooled);
}

TEST(SimGridEngine, LeavesSignalsAlone) {
  SimGridEngine::instance();
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    ASSERT_EQ(sigaction(signal, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "sim/class_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/date_heap.h"
#include "sim/max_min.h"

namespace espalier {
namespace {

TEST(MaxMin, FlowsOfAClassShareAlike) {
  // Three flows over A (12/s) and B (30/s), one over B alone: 4 each, and the one takes 30 - 12.
  MaxMin max_min;
  const ResourceId a = max_min.add_resource(12);
  const ResourceId b = max_min.add_resource(30);
  const ClassId both = max_min.class_of(std::vector{a, b});
  const ClassId alone = max_min.class_of(std::vector{b});
  EXPECT_EQ(max_min.class_of(std::vector{b, a}), both);
  for (int i = 0; i < 3; ++i) max_min.add(both);
  max_min.add(alone);
  max_min.solve();
  EXPECT_DOUBLE_EQ(max_min.rate(both), 4);
  EXPECT_DOUBLE_EQ(max_min.rate(alone), 18);
  // One of the three ends: 6 each, 30 - 12 is left again.
  max_min.remove(both);
  max_min.solve();
  EXPECT_DOUBLE_EQ(max_min.rate(both), 6);
  EXPECT_DOUBLE_EQ(max_min.rate(alone), 18);
}

TEST(MaxMin, SolvesForWhatIsConcernedOnly) {
  MaxMin max_min;
  std::vector<ClassId> classes;
  for (int i = 0; i < 3; ++i) {
    classes.push_back(max_min.class_of(std::vector{max_min.add_resource(10)}));
    max_min.add(classes.back());
  }
  EXPECT_EQ(max_min.solve().size(), 3U);
  max_min.add(classes[1]);
  const auto concerned = max_min.solve();
  ASSERT_EQ(concerned.size(), 1U);
  EXPECT_EQ(concerned[0], classes[1]);
  // One ends and one begins: nothing changes.
  max_min.remove(classes[1]);
  max_min.add(classes[1]);
  EXPECT_TRUE(max_min.solve().empty());
}

/// What makes rates max-min fair (Bertsekas and Gallager, Data Networks, section 6.5.2): no link
/// above its capacity, and every class has a full link where nobody is faster.
TEST(MaxMin, EveryClassHasABottleneckAndNoLinkIsAboveItsCapacity) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    MaxMin max_min;
    std::vector<double> capacities;
    for (int i = 0; i < 12; ++i) {
      capacities.push_back(std::uniform_real_distribution<double>(1, 100)(random));
      max_min.add_resource(capacities.back());
    }
    // What each flow of a class has alone, if anything.
    const std::vector<double> own = {0.5, 5, 20};
    for (const double capacity : own) max_min.add_resource(capacity);
    std::vector<std::vector<ResourceId>> routes;
    std::vector<double> most;  // by class: for a flow
    for (int i = 0; i < 40; ++i) {
      std::vector<ResourceId> route(1 + random() % 4);
      for (ResourceId& id : route) id = static_cast<ResourceId>(random() % capacities.size());
      const std::size_t alone = random() % (own.size() + 1);
      const bool has_own = alone < own.size();
      const auto own_id = static_cast<ResourceId>(capacities.size() + alone);
      if (max_min.class_of(route, has_own ? own_id : kNoResource) != routes.size()) continue;
      routes.push_back(route);
      most.push_back(has_own ? own[alone] : std::numeric_limits<double>::infinity());
    }
    for (int step = 0; step < 200; ++step) {
      const auto changed = static_cast<ClassId>(random() % routes.size());
      if (max_min.flows(changed) > 0 && random() % 2 == 0) {
        max_min.remove(changed);
      } else {
        max_min.add(changed);
      }
      max_min.solve();
      std::vector<double> used(capacities.size(), 0), fastest(capacities.size(), 0);
      for (ClassId id = 0; id < routes.size(); ++id) {
        if (max_min.flows(id) == 0) continue;
        for (const ResourceId resource : routes[id]) {
          used[resource] += max_min.flows(id) * max_min.rate(id);
          fastest[resource] = std::max(fastest[resource], max_min.rate(id));
        }
      }
      for (std::size_t i = 0; i < used.size(); ++i) ASSERT_LE(used[i], capacities[i] * (1 + 1e-12));
      for (ClassId id = 0; id < routes.size(); ++id) {
        if (max_min.flows(id) == 0) continue;
        ASSERT_LE(max_min.rate(id), most[id]);
        if (max_min.rate(id) >= most[id] * (1 - 1e-12)) continue;
        ASSERT_TRUE(
            std::ranges::any_of(routes[id],
                                [&](ResourceId resource) {
                                  return used[resource] >= capacities[resource] * (1 - 1e-12) &&
                                         max_min.rate(id) >= fastest[resource] * (1 - 1e-12);
                                }))
            << "class " << id << " in step " << step;
      }
    }
  }
}

/// Many flows over few resources, so that one change changes nearly all rates and they are soon all
/// solved for; then few again, of which a change concerns some. What was solved for from nothing
/// says what is right.
TEST(MaxMin, AgreesWithWhatIsSolvedFromNothing) {
  std::mt19937 random(7);
  std::vector<double> capacities(30);
  for (double& capacity : capacities) {
    capacity = std::uniform_real_distribution<double>(1, 4)(random);
  }
  std::vector<std::vector<ResourceId>> routes(120);
  for (std::vector<ResourceId>& route : routes) {
    for (int hop = 0; hop < 3; ++hop) {
      route.push_back(static_cast<ResourceId>(random() % capacities.size()));
    }
  }
  MaxMin max_min;
  for (const double capacity : capacities) max_min.add_resource(capacity);
  std::size_t known = 0;  // routes, which come while others are in use
  std::size_t moving = 0;
  std::size_t solved_for_all = 0;
  std::size_t solved_for_some = 0;
  for (int step = 0; step < 1500; ++step) {
    if (known < routes.size() && step % 2 == 0) max_min.class_of(routes[known++]);
    const auto id = static_cast<ClassId>(random() % max_min.classes());
    const bool fills = step % 500 < 400;
    if (max_min.flows(id) > 0 && (!fills || random() % 3 == 0)) {
      max_min.remove(id);
      moving -= max_min.flows(id) == 0 ? 1 : 0;
    } else if (fills) {
      moving += max_min.flows(id) == 0 ? 1 : 0;
      max_min.add(id);
    }
    const std::size_t solved = max_min.solve().size();
    ++(solved == moving ? solved_for_all : solved_for_some);
    if (step % 10 != 0) continue;
    MaxMin fresh;
    for (const double capacity : capacities) fresh.add_resource(capacity);
    for (std::size_t route = 0; route < known; ++route) fresh.class_of(routes[route]);
    for (ClassId other = 0; other < max_min.classes(); ++other) {
      for (std::uint32_t i = 0; i < max_min.flows(other); ++i) fresh.add(other);
    }
    fresh.solve();
    for (ClassId other = 0; other < max_min.classes(); ++other) {
      if (max_min.flows(other) == 0) continue;
      ASSERT_NEAR(max_min.rate(other), fresh.rate(other), 1e-12 * fresh.rate(other))
          << "class " << other << " in step " << step;
    }
  }
  EXPECT_GT(solved_for_all, 300U);
  EXPECT_GT(solved_for_some, 50U);
}

TEST(DateHeap, AgreesWithASortedMap) {
  std::mt19937 random(1);
  DateHeap heap;
  std::map<std::uint32_t, double> dates;
  for (int step = 0; step < 5000; ++step) {
    const auto id = static_cast<std::uint32_t>(random() % 60);
    if (random() % 3 == 0) {
      heap.remove(id);
      dates.erase(id);
    } else if (random() % 3 == 0) {  // a few of those that there are, or most, and new ones
      std::vector<DateHeap::Entry> entries;
      for (std::uint32_t other = id; other < 60; ++other) {
        dates[other] = random() % 20;
        entries.push_back({Ticks{dates[other]}, other});
      }
      heap.set(entries);
    } else {
      dates[id] = random() % 20;
      heap.set(id, Ticks{dates[id]});
    }
    ASSERT_EQ(heap.empty(), dates.empty());
    if (dates.empty()) continue;
    const auto first = std::ranges::min_element(
        dates, {}, [](const auto& entry) { return std::pair(entry.second, entry.first); });
    ASSERT_EQ(heap.top(), first->first);
    ASSERT_EQ(heap.top_date().value, first->second);
  }
}

TEST(ClassEngine, SimultaneousEndsComeInTheOrderOfStarts) {
  // All at 1 s: three over the link that they share, one over another, and a mere latency.
  ClassEngine engine;
  engine.begin({});
  const ResourceId shared = engine.add_resource(3);
  const ResourceId other = engine.add_resource(1);
  engine.start(std::vector{shared}, Ticks{0}, 1, 10);
  engine.start(std::vector{other}, Ticks{0}, 1, 11);
  engine.start({}, Ticks{1}, 0, 12);
  engine.start(std::vector{shared}, Ticks{0}, 1, 13);
  engine.start(std::vector{shared}, Ticks{0}, 1, 14);
  std::vector<FlowToken> order;
  EXPECT_FALSE(engine.run([&](FlowToken token) {
    order.push_back(token);
    EXPECT_DOUBLE_EQ(engine.now().value, 1);
  }));
  EXPECT_EQ(order, (std::vector<FlowToken>{10, 11, 12, 13, 14}));
}

/// Ten flows of 1 s, one after the other.
int run_ten_in_turn(ClassEngine& engine) {
  engine.begin({});
  const ResourceId link = engine.add_resource(1);
  int ended = 0;
  engine.start(std::vector{link}, Ticks{0}, 1, 0);
  EXPECT_FALSE(engine.run([&](FlowToken) {
    if (++ended < 10) engine.start(std::vector{link}, Ticks{0}, 1, 0);
  }));
  return ended;
}

TEST(ClassEngine, GivesUpAtADate) {
  ClassEngine engine({.time = {2.5}});
  EXPECT_EQ(run_ten_in_turn(engine), 2);
  EXPECT_EQ(engine.end(), SimEnd::too_slow);
  ClassEngine to_the_end({.time = {10}});
  EXPECT_EQ(run_ten_in_turn(to_the_end), 10);
  EXPECT_EQ(to_the_end.end(), SimEnd::finished);
}

TEST(ClassEngine, GivesUpAfterSoMuchWork) {
  ClassEngine free;
  EXPECT_EQ(run_ten_in_turn(free), 10);
  EXPECT_GE(free.work(), 10 * kWorkPerOp);
  ClassEngine enough({.work = free.work()});
  EXPECT_EQ(run_ten_in_turn(enough), 10);
  EXPECT_EQ(enough.end(), SimEnd::finished);
  EXPECT_EQ(enough.work(), free.work());
  ClassEngine short_of_one({.work = free.work() - 1});
  EXPECT_LT(run_ten_in_turn(short_of_one), 10);
  EXPECT_EQ(short_of_one.end(), SimEnd::too_costly);
  // Once more, from the beginning.
  EXPECT_EQ(run_ten_in_turn(enough), 10);
  EXPECT_EQ(enough.work(), free.work());
}

TEST(ClassEngine, RoundingsDoNotAddUp) {
  // 100 000 flows of a third of a second each follow each other on 7 lanes of one link; the link is
  // never idle, so the last ends when all bytes have been carried.
  ClassEngine engine;
  engine.begin({});
  const ResourceId link = engine.add_resource(7.0 / 3);
  int left = 100'000;
  for (FlowToken lane = 0; lane < 7; ++lane)
    engine.start(std::vector{link}, Ticks{0}, 1.0 / 9, lane);
  left -= 7;
  EXPECT_FALSE(engine.run([&](FlowToken lane) {
    if (left-- > 0) engine.start(std::vector{link}, Ticks{0}, 1.0 / 9, lane);
  }));
  // 14 285 rounds of 7, and 5 flows that have the link to themselves.
  const double expected_s = 100'000 / 9.0 / (7.0 / 3);
  EXPECT_NEAR(engine.now().value, expected_s, 1e-12 * expected_s);
}

}  // namespace
}  // namespace espalier

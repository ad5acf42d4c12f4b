// SPDX-License-Identifier: Apache-2.0
// Searches stop when the time is up, wherever they are, with a plan that is right and a bound that
// holds. The clock counts how often it is looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/time_limit.h"
#include "planner/blink_plan.h"
#include "planner/bounds.h"
#include "planner/pack_allreduce.h"
#include "planner/pack_arborescences.h"
#include "planner/pack_paths.h"
#include "planner/packing/packing_master.h"
#include "topologies/load.h"

namespace espalier {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Goes on by a second with every look.
class Looks {
 public:
  TimeLimit::Clock clock() {
    return [this] { return static_cast<double>(looks_++); };
  }

 private:
  int looks_ = 0;
};

struct LimitedMachine {
  explicit LimitedMachine(const std::string& machine, const std::vector<int>& gpus = {},
                          const std::vector<int>& relays = {})
      : topology(load_topology(machine)),
        router(topology, topology.profile("ideal"), LinkScope::all),
        placement(place_ranks(router, gpus, relays)) {}

  Forest plan(Collective collective) const {
    if (collective == Collective::allreduce) return pack_allreduce(router, placement);
    if (has_paths(collective)) return pack_paths(collective, 0, router, placement);
    return pack_arborescences(collective, 0, router, placement);
  }

  Topology topology;
  Router router;
  Placement placement;
};

constexpr Collective kCollectives[] = {
    Collective::allreduce,     Collective::broadcast, Collective::reduce,   Collective::allgather,
    Collective::reducescatter, Collective::gather,    Collective::alltoall, Collective::sendrecv};

void expect_plans_at_any_time(const LimitedMachine& machine) {
  for (const Collective collective : kCollectives) {
    const Forest best = machine.plan(collective);
    const Bound proved = bandwidth_bound(collective, 0, machine.router, machine.placement);
    EXPECT_EQ(best.note, "");
    for (const int looks : {0, 1, 3, 10, 30, 100, 1000}) {
      SCOPED_TRACE(std::string(to_string(collective)) + " after " + std::to_string(looks));
      Looks counted;
      const TimeLimit limit(looks, counted.clock());
      const Forest forest = machine.plan(collective);
      EXPECT_GT(forest.algbw_gbps, 0);
      EXPECT_LE(forest.algbw_gbps, proved.algbw_gbps * (1 + 1e-9));
      EXPECT_THAT(check_forest(forest, machine.router, machine.placement), IsEmpty());
      if (!limit.has_cut_short()) {
        EXPECT_EQ(forest.exact_algbw, best.exact_algbw);
      }
      const Bound bound = bandwidth_bound(collective, 0, machine.router, machine.placement);
      EXPECT_TRUE(std::isfinite(bound.algbw_gbps));
      EXPECT_GE(bound.algbw_gbps, proved.algbw_gbps * (1 - 1e-9)) << "weaker, but a proof";
    }
  }
}

TEST(TimeLimitOfPlans, DirectLinks) { expect_plans_at_any_time(LimitedMachine("dgx1-v100")); }
TEST(TimeLimitOfPlans, Switches) { expect_plans_at_any_time(LimitedMachine("dgx-a100:nodes=2")); }
TEST(TimeLimitOfPlans, ATorus) {
  expect_plans_at_any_time(LimitedMachine("torus:x=3,y=3,z=2,gbps=10"));
}
TEST(TimeLimitOfPlans, SharedDirections) { expect_plans_at_any_time(LimitedMachine("summit")); }
TEST(TimeLimitOfPlans, Relays) {
  expect_plans_at_any_time(LimitedMachine("dgx1-v100", {0, 1, 4}, {2, 3}));
}

TEST(TimeLimitOfPlans, ThePlanSaysThatItsTimeRanOut) {
  const LimitedMachine machine("dgx-a100:nodes=2");
  Looks counted;
  const TimeLimit limit(0, counted.clock());
  EXPECT_THAT(machine.plan(Collective::allreduce).note,
              HasSubstr("the search stopped when its time ran out: a plan up to "));
  EXPECT_EQ(machine.plan(Collective::allgather).note,
            "the search stopped when its time ran out: a faster plan may exist");
}

TEST(TimeLimitOfPlans, TheSolverStopsBetweenTwoSteps) {
  PackingMaster master({1, 1, 1});
  for (const std::vector<std::int64_t>& loads :
       std::vector<std::vector<std::int64_t>>{{1, 1, 0}, {0, 1, 1}, {1, 0, 1}}) {
    master.add(loads);
  }
  Looks counted;
  const TimeLimit limit(1, counted.clock());
  WorkBudget budget(1'000'000);
  EXPECT_FALSE(master.solve(budget));
  EXPECT_TRUE(limit.has_cut_short());
  EXPECT_TRUE(master.solve()) << "who needs the solution has it, however long it takes";
}

TEST(TimeLimitOfPlans, BlinkHasNoLessThanItsPlan) {
  const LimitedMachine machine("dgx1-v100", {0, 1, 2, 3});
  const auto plan = [&] {
    return plan_blink(Collective::allreduce, 0, machine.router, machine.placement);
  };
  const Forest without = plan();
  Looks counted;
  const TimeLimit limit(0, counted.clock());
  EXPECT_EQ(plan().exact_algbw, without.exact_algbw);
}

}  // namespace
}  // namespace espalier

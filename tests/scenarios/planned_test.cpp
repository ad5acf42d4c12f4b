// SPDX-License-Identifier: Apache-2.0
#include "scenarios/planned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/text.h"
#include "scenarios/buildable.h"
#include "tests/scenarios/study_fixture.h"

namespace espalier {
namespace {

Query query(const std::string& topology, Collective collective, const std::string& algorithm) {
  return with(question(topology, collective), algorithm);
}

using PlannedTest = StudyFixture;

TEST_F(PlannedTest, ProgramsSurviveTheirTextFormAndAreRight) {
  for (const char* machine : {"dgx1-p100", "mist:nodes=2", "switch:n=5,gbps=10", "full:n=1"}) {
    for (const CollectiveInfo& collective : all_collectives()) {
      for (const std::string& algorithm : planning_algorithms(collective.id)) {
        SCOPED_TRACE(std::string(machine) + " " + algorithm + " " + std::string(collective.name));
        const Query asked = query(machine, collective.id, algorithm);
        if (algorithm == "blink" && asked.topology == "mist:nodes=2") continue;  // not two groups
        const Planned planned = plan_query(study_, asked);
        const Program read = parse_program(print_program(planned.program), "plan.esp");
        EXPECT_TRUE(same_program(read, planned.program));
        EXPECT_TRUE(verify(read).ok());
        EXPECT_EQ(not_routable(read, *planned.machine), std::nullopt);
        // Links that no tree crosses beyond its capacity, and one that is full unless the rate
        // stays below the bound.
        double busiest = 0;
        for (const LinkLoad& load : planned.loads) {
          busiest = std::max(busiest, share_used(load, planned.forest));
        }
        EXPECT_LE(busiest, 1 + 1e-9);
        EXPECT_LE(planned.fraction, 1 + 1e-9);
      }
    }
  }
}

TEST_F(PlannedTest, JudgesByTheLinksThatTheTreesUse) {
  // A ring of four: broadcast both ways round, 2 x 10 GB/s. The host's links would add to that, but
  // none is used when only the fabric is asked for.
  Query asked = query("ring:n=4,gbps=10,host_gbps=5", Collective::broadcast, "optimal");
  asked.links = LinkScope::fabric;
  const Planned fabric = plan_query(study_, asked);
  EXPECT_EQ(fabric.bound_links, LinkScope::fabric);
  EXPECT_EQ(fabric.forest.exact_algbw, "20");
  EXPECT_EQ(fabric.bound.exact, "20");
  EXPECT_DOUBLE_EQ(fabric.fraction, 1);
  asked.links = LinkScope::all;
  const Planned all = plan_query(study_, asked);
  EXPECT_EQ(all.bound_links, LinkScope::all);
  EXPECT_GT(all.bound.algbw_gbps, 20);
}

TEST_F(PlannedTest, OneRankHasNothingToSend) {
  Query asked = query("dgx1-v100", Collective::allgather, "blink");
  asked.gpus = {5};
  const Planned planned = plan_query(study_, asked);
  EXPECT_EQ(planned.forest.algbw_gbps, std::numeric_limits<double>::infinity());
  EXPECT_EQ(planned.fraction, 1);
  EXPECT_EQ(planned.gpu_name(0), "gpu5");
}

TEST_F(PlannedTest, FarPeersAreReachedThroughHostMemory) {
  // A GPU of this machine maps 8 peers at most: optimal plans within that, all_pairs is staged.
  const Query asked = query("p2.16xlarge", Collective::allreduce, "all_pairs");
  const Machine& machine = study_.machine(asked);
  const std::vector<std::string> possible = possible_algorithms(machine, asked);
  EXPECT_THAT(possible, testing::IsSupersetOf({"optimal", "ring", "all_pairs"}));
  for (const std::string& algorithm : possible) {
    Query other = query("p2.16xlarge", Collective::allreduce, algorithm);
    other.size_bytes = 1 << 20;
    EXPECT_TRUE(study_.ask(other).ran()) << algorithm;
  }
}

}  // namespace
}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "planner/bound_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "topologies/load.h"

namespace espalier {
namespace {

struct Proved {
  Topology machine;
  BoundProof proof;
  std::vector<double> capacity_gbps;  ///< by link
};

Proved prove(const std::string& machine, Collective collective, LinkScope scope) {
  Proved made{load_topology(machine), {}, {}};
  const Router router(made.machine, made.machine.profile("kernel:simple"), scope);
  const Placement placement = place_ranks(router, {});
  made.proof = proven_bound(collective, 0, router, placement);
  for (LinkId id = 0; id < static_cast<LinkId>(made.machine.links.size()); ++id) {
    made.capacity_gbps.push_back(router.capacity_gbps(id));
  }
  EXPECT_EQ(made.proof.bound.exact, bandwidth_bound(collective, 0, router, placement).exact);
  return made;
}

bool has(const std::vector<NodeId>& nodes, NodeId node) {
  return std::ranges::count(nodes, node) > 0;
}

TEST(BoundProof, CutIsTheSetWhoseLinksAreCounted) {
  const Proved made = prove("dgx1-v100", Collective::broadcast, LinkScope::fabric);
  ASSERT_EQ(made.proof.bound.kind, "cut");
  ASSERT_EQ(made.proof.parts.size(), 1U);
  double leaving = 0;
  for (std::size_t id = 0; id < made.machine.links.size(); ++id) {
    const Link& link = made.machine.links[id];
    if (link.link_class != LinkClass::gpu_fabric) continue;
    if (has(made.proof.parts[0], link.a) != has(made.proof.parts[0], link.b)) {
      leaving += made.capacity_gbps[id];
    }
  }
  // All of the message crosses a cut that has the root inside.
  EXPECT_TRUE(has(made.proof.parts[0], made.machine.gpus()[0]));
  EXPECT_NEAR(made.proof.bound.algbw_gbps, leaving, 1e-6);
}

TEST(BoundProof, PartitionHoldsEveryRankOnce) {
  const Proved made = prove("dgx1-v100", Collective::allreduce, LinkScope::fabric);
  ASSERT_EQ(made.proof.bound.kind, "partition");
  std::vector<NodeId> all;
  double between = 0;
  for (const std::vector<NodeId>& part : made.proof.parts) {
    all.insert(all.end(), part.begin(), part.end());
    for (std::size_t id = 0; id < made.machine.links.size(); ++id) {
      const Link& link = made.machine.links[id];
      if (link.link_class == LinkClass::gpu_fabric && has(part, link.a) != has(part, link.b)) {
        between += made.capacity_gbps[id];  // what leaves the part
      }
    }
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, made.machine.gpus());
  // Every byte takes 2 (k - 1) messages between k parts.
  const double messages = 2.0 * (static_cast<double>(made.proof.parts.size()) - 1);
  EXPECT_NEAR(made.proof.bound.algbw_gbps, between / messages, 1e-6);
}

TEST(BoundProof, PricesOfLinksAddUpToTheBound) {
  const Proved made = prove("dgx1-v100", Collective::allreduce, LinkScope::all);
  ASSERT_EQ(made.proof.bound.kind, "lp");
  EXPECT_TRUE(made.proof.parts.empty());
  double paid = 0;
  for (const LinkPrice& one : made.proof.prices) {
    EXPECT_TRUE(one.both);
    EXPECT_EQ(one.price, std::round(one.price));
    // In a second a link carries its capacity in each direction, and so twice what counts here,
    // unless both directions share it.
    const bool is_shared = made.machine.link(one.link).duplex != Duplex::full;
    paid +=
        one.price * made.capacity_gbps[static_cast<std::size_t>(one.link)] * (is_shared ? 0.5 : 1);
  }
  // The certificate: the cheapest tree costs a whole number, and every byte takes two.
  const double tree = paid / made.proof.bound.algbw_gbps;
  EXPECT_GT(tree, 1);
  EXPECT_NEAR(tree, std::round(tree), 1e-6);
}

}  // namespace
}  // namespace espalier

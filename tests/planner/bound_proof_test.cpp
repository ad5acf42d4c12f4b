// SPDX-License-Identifier: Apache-2.0
#include "planner/bound_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "topologies/load.h"

namespace espalier {
namespace {

struct Proved {
  Topology machine;
  BoundProof proof;
  std::vector<double> capacity_gbps;  ///< by link
  std::vector<NodeId> idle;           ///< GPUs that take no part
};

Proved prove(const std::string& machine, Collective collective, LinkScope scope,
             const std::vector<int>& gpus = {}) {
  Proved made{load_topology(machine), {}, {}, {}};
  const Router router(made.machine, made.machine.profile("kernel:simple"), scope);
  const Placement placement = place_ranks(router, gpus);
  made.proof = proven_bound(collective, 0, router, placement);
  for (LinkId id = 0; id < static_cast<LinkId>(made.machine.links.size()); ++id) {
    made.capacity_gbps.push_back(router.capacity_gbps(id));
  }
  for (const NodeId gpu : made.machine.gpus()) {
    if (std::ranges::count(placement.ranks, gpu) == 0) made.idle.push_back(gpu);
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

/// What the certificate of a cut or a partition says that links carry, in GB/s.
double stated_gbps(const Bound& bound) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(bound.certificate, found, std::regex("carry ([0-9.e+]+) GB/s")))
      << bound.certificate;
  return found.empty() ? 0 : std::stod(found[1]);
}

TEST(BoundProof, LinksThatAreCountedAddUpToTheCertificate) {
  struct Question {
    const char* machine;
    Collective collective;
    std::vector<int> gpus;
  };
  const std::vector<Question> questions = {{"dgx-h100:nodes=2", Collective::allreduce, {}},
                                           {"dgx-h100:nodes=2", Collective::broadcast, {}},
                                           {"dgx-h100:nodes=16", Collective::allreduce, {}},
                                           {"gb200-nvl72", Collective::broadcast, {}},
                                           {"gb200-nvl72", Collective::allgather, {}},
                                           {"dgx1-v100", Collective::allreduce, {0, 1, 2, 3}},
                                           {"dgx1-v100", Collective::broadcast, {0, 1, 2, 3}},
                                           {"dgx2", Collective::reduce, {}},
                                           {"p2.16xlarge", Collective::allreduce, {}},
                                           {"p2.16xlarge", Collective::allgather, {}},
                                           {"hosts:n=3", Collective::allreduce, {}},
                                           {"v100-pcie", Collective::allgather, {}}};
  int cuts = 0;
  int partitions = 0;
  for (const auto& [machine, collective, gpus] : questions) {
    const Proved made = prove(machine, collective, LinkScope::all, gpus);
    const BoundProof& proof = made.proof;
    if (proof.bound.kind == "lp") {
      EXPECT_TRUE(proof.counted.empty());
      continue;
    }
    (proof.bound.kind == "cut" ? cuts : partitions) += 1;
    double sum = 0;
    for (const CountedLink& one : proof.counted) {
      sum += one.gbps;
      for (const NodeId end : {made.machine.link(one.link).a, made.machine.link(one.link).b}) {
        EXPECT_FALSE(has(made.idle, end)) << machine << ": a link of an idle GPU";
      }
    }
    const double stated = stated_gbps(proof.bound);
    EXPECT_NEAR(sum, stated, 1e-5 * stated) << machine << ": " << proof.bound.certificate;
  }
  EXPECT_GE(cuts, 3);
  EXPECT_GE(partitions, 2);
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

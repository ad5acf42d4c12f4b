// SPDX-License-Identifier: Apache-2.0
#include "run/routes.h"
#include "run/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/builder.h"
#include "run/transfer_key.h"
#include "tests/ir/sample_programs.h"

namespace espalier {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two hosts: gpu0, gpu1 and gpu2 in a line of NVLinks and with a CPU on the first; gpu3 alone on
/// the second, reached from nowhere. PCIe is for staging only.
Topology small_machine() {
  Topology machine;
  machine.name = "small";
  machine.hosts = 2;
  machine.peer_access = Topology::PeerAccess::fabric;
  const auto add_node = [&](const char* name, NodeKind kind, int host) {
    Node node;
    node.name = name;
    node.kind = kind;
    node.host = host;
    machine.nodes.push_back(node);
  };
  add_node("gpu0", NodeKind::gpu, 0);
  add_node("gpu1", NodeKind::gpu, 0);
  add_node("gpu2", NodeKind::gpu, 0);
  add_node("gpu3", NodeKind::gpu, 1);
  add_node("cpu0", NodeKind::cpu, 0);
  const auto add_link = [&](NodeId a, NodeId b, const char* kind, LinkClass link_class) {
    Link link;
    link.a = a;
    link.b = b;
    link.kind = kind;
    link.link_class = link_class;
    link.gbps = 10;
    machine.links.push_back(link);
  };
  add_link(0, 1, "nvlink2", LinkClass::gpu_fabric);
  add_link(1, 2, "nvlink2", LinkClass::gpu_fabric);
  for (NodeId gpu = 0; gpu < 3; ++gpu) add_link(gpu, 4, "pcie3x16", LinkClass::host);
  machine.profiles["ideal"].name = "ideal";
  return machine;
}

/// The machine, a router on it and a placement of ranks 0.. on gpu0..
struct Machine {
  explicit Machine(Topology machine, int ranks, LinkScope scope = LinkScope::all)
      : topology(std::move(machine)), router(topology, topology.profile("ideal"), scope) {
    target.router = &router;
    for (NodeId gpu = 0; gpu < ranks; ++gpu) target.placement.ranks.push_back(gpu);
    if (topology.find("cpu0")) target.placement.hosts = {*topology.find("cpu0")};
  }
  Topology topology;
  Router router;
  Target target;
};

std::vector<std::string> problems_of(const Program& program, const Target& target) {
  std::vector<std::string> all;
  for (const Diagnostic& problem : check_routes(program, target)) {
    EXPECT_EQ(problem.rule, "R10");
    all.push_back(problem.message + (problem.suggestion.empty() ? "" : " | " + problem.suggestion));
  }
  return all;
}

TEST(CheckRoutes, RingsFit) {
  Machine machine(small_machine(), 3);
  EXPECT_THAT(problems_of(ring_allreduce(3, false), machine.target), IsEmpty());
  EXPECT_THAT(problems_of(parameter_server(3), machine.target), IsEmpty());
}

TEST(CheckRoutes, WithoutARouterThereIsNothingToCheck) {
  EXPECT_THAT(problems_of(ring_allreduce(64, false), Target{}), IsEmpty());
}

TEST(CheckRoutes, NamesEachPairOnceWithItsFirstOp) {
  Machine machine(small_machine(), 4);
  // Ring over 4 ranks, 6 steps: gpu3 has no link, so 2 -> 3 and 3 -> 0 carry 6 transfers each. Op
  // 4 * step + r is rank r's.
  EXPECT_THAT(
      problems_of(ring_allreduce(4, false), machine.target),
      ElementsAre(
          "op 2: no route from r2 (gpu2) to r3 (gpu3) (and 5 more transfers between the two)",
          "op 3: no route from r3 (gpu3) to r0 (gpu0) (and 5 more transfers between the two)"));
}

TEST(CheckRoutes, SaysWhenTheFabricAloneIsTooLittle) {
  Machine machine(small_machine(), 3, LinkScope::fabric);
  Builder b("direct", {Collective::sendrecv, 3, 0, 1, false});
  for (int r = 0; r < 3; ++r) b.copy(b.output((r + 1) % 3, 0, 1), b.input(r, 0, 1));
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("op 2: no route from r2 (gpu2) to r0 (gpu0) over the GPU fabric | "
                          "allow all links, or choose an algorithm that only uses neighbours"));
}

TEST(CheckRoutes, ViaANode) {
  Machine machine(small_machine(), 4);
  Builder b("via", {Collective::broadcast, 4, 0, 1, false});
  b.copy(b.output(0, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(2, 0, 1), b.input(0, 0, 1), {.via = "gpu1"});
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1), {.via = "gpu3"});
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("op 2: no route from r0 (gpu0) to r1 (gpu1) via gpu3"));

  Builder typo("typo", {Collective::broadcast, 2, 0, 1, false});
  typo.copy(typo.output(1, 0, 1), typo.input(0, 0, 1), {.via = "cpu00"});
  EXPECT_THAT(
      problems_of(typo.finish(), machine.target),
      ElementsAre(
          "the program routes via 'cpu00', which is not a node of small | did you mean 'cpu0'?"));
}

TEST(CheckRoutes, SourcesComeToWhereTheOpIsCarriedOut) {
  // NVLinks 0 - 1 - 2. At r1, everything comes from neighbours. At r0, r2's input has no way to it,
  // though it has one to the destination.
  Machine machine(small_machine(), 3, LinkScope::fabric);
  for (const PlaceId at : {1, 0}) {
    Builder b("at", {Collective::reduce, 3, 1, 1, false});
    b.combine(b.output(1, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1), b.input(2, 0, 1)},
              {.at = at});
    const std::vector<std::string> problems = problems_of(b.finish(), machine.target);
    if (at == 1) {
      EXPECT_THAT(problems, IsEmpty());
    } else {
      EXPECT_THAT(problems,
                  ElementsAre("op 0: no route from r2 (gpu2) to r0 (gpu0) over the GPU fabric "
                              "| allow all links, or choose an algorithm that only uses "
                              "neighbours"));
    }
  }
}

TEST(CheckRoutes, ResultsGoFromWhereTheOpIsCarriedOut) {
  Machine machine(small_machine(), 3, LinkScope::fabric);
  Builder b("at", {Collective::reduce, 3, 2, 1, false});
  b.combine(b.output(2, 0, 1), {b.input(0, 0, 1), b.input(1, 0, 1)}, {.at = 0});
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("op 0: no route from r0 (gpu0) to r2 (gpu2) over the GPU fabric | "
                          "allow all links, or choose an algorithm that only uses neighbours"));
}

TEST(CheckRoutes, ViaIsTheWayOfEveryTransferOfAnOp) {
  Machine machine(small_machine(), 3);
  const auto combine = [](std::string_view via) {
    Builder b("via", {Collective::reduce, 3, 2, 1, false});
    b.combine(b.output(2, 0, 1), {b.input(0, 0, 1), b.input(2, 0, 1)}, {.at = 0, .via = via});
    return b.finish();
  };
  EXPECT_THAT(problems_of(combine("gpu1"), machine.target), IsEmpty());  // there and back
  Machine apart(small_machine(), 3, LinkScope::fabric);
  EXPECT_THAT(problems_of(combine("cpu0"), apart.target),
              ElementsAre("op 0: no route from r0 (gpu0) to r2 (gpu2) via cpu0 over the GPU fabric "
                          "| allow all links, or choose an algorithm that only uses neighbours",
                          "op 0: no route from r2 (gpu2) to r0 (gpu0) via cpu0 over the GPU fabric "
                          "| allow all links, or choose an algorithm that only uses neighbours"));
}

TEST(CheckRoutes, IdleGpusTakeNoPartUnlessTheyForward) {
  // gpu1 is no rank: data would rest on it all the same, and no bound counts its links.
  Topology topology = small_machine();
  for (const bool forwards : {false, true}) {
    topology.gpus_forward = forwards;
    Machine machine(topology, 0);
    machine.target.placement.ranks = {0, 2};
    Builder b("via", {Collective::broadcast, 2, 0, 1, false});
    b.copy(b.output(1, 0, 1), b.input(0, 0, 1), {.via = "gpu1"});
    const std::vector<std::string> problems = problems_of(b.finish(), machine.target);
    if (forwards) {
      EXPECT_THAT(problems, IsEmpty());
    } else {
      EXPECT_THAT(
          problems,
          ElementsAre(
              "the program routes via 'gpu1', which is a GPU but not one of its ranks or relays "
              "| name idle GPUs with --relay"));
    }
  }
}

TEST(CheckRoutes, PlacesWithoutANode) {
  Machine machine(small_machine(), 2);
  Builder b("hosts", {Collective::reduce, 3, 0, 1, false});
  b.add_host();
  b.add_host();
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("the program needs 3 ranks, but the placement on small has 2",
                          "the program needs 2 host memories, but the placement on small has 1"));
  b.add_relay();
  machine.target.placement.ranks.push_back(2);
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("the program needs 1 relays, but the placement on small has 0 | name "
                          "idle GPUs with --relay"));
}

/// gpu0 - gpu1 - gpu2 by NVLink: what gpu1 stores it may send on, though it is no rank.
TEST(CheckRoutes, RelaysAreWhereThePlacementSays) {
  Machine machine(small_machine(), 0, LinkScope::fabric);
  machine.target.placement.ranks = {0, 2};
  machine.target.placement.relays = {1};
  Builder b("relayed", {Collective::broadcast, 2, 0, 1, false});
  const PlaceId relay = b.add_relay();
  b.copy(b.output(0, 0, 1), b.input(0, 0, 1));
  b.copy(b.tmp(relay, 0, 1), b.input(0, 0, 1));
  b.copy(b.output(1, 0, 1), b.tmp(relay, 0, 1));
  EXPECT_THAT(problems_of(b.finish(), machine.target), IsEmpty());
  b.add_relay();
  b.copy(b.output(1, 0, 1), b.input(0, 0, 1));
  EXPECT_THAT(problems_of(b.finish(), machine.target),
              ElementsAre("op 0: no route from r0 (gpu0) to r1 (gpu2) over the GPU fabric | "
                          "allow all links, or choose an algorithm that only uses neighbours"));
}

TEST(CheckRoutes, PeerLimits) {
  // Six GPUs that all map each other, five peers each; at most four may be mapped.
  Topology full;
  full.name = "full";
  full.profiles["ideal"].name = "ideal";
  for (int i = 0; i < 6; ++i) {
    Node gpu;
    gpu.name = "gpu" + std::to_string(i);
    gpu.peer_limit = i == 3 ? 4 : 0;
    full.nodes.push_back(gpu);
    for (NodeId other = 0; other < i; ++other) {
      Link link;
      link.a = other;
      link.b = i;
      link.kind = "nvlink2";
      link.link_class = LinkClass::gpu_fabric;
      link.gbps = 25;
      full.links.push_back(link);
    }
  }
  Machine machine(full, 6);
  EXPECT_THAT(
      problems_of(direct_alltoall(6), machine.target),
      ElementsAre("gpu3 exchanges data directly with 5 GPUs, but can map the memory of only 4 "
                  "peers | choose an algorithm with fewer neighbours, such as ring, "
                  "or fewer GPUs"));
  // A ring has two peers each; five ranks have four.
  EXPECT_THAT(problems_of(ring_allreduce(6, true), machine.target), IsEmpty());
  EXPECT_THAT(problems_of(direct_alltoall(5), machine.target), IsEmpty());
}

TEST(CheckRoutes, StagedTransfersMapNoPeer) {
  Topology topology = small_machine();
  topology.nodes[0].peer_limit = 1;
  Machine machine(topology, 3);
  // gpu0 - gpu2 have no NVLink and rest in cpu0's memory; gpu1 is gpu0's only peer.
  EXPECT_THAT(problems_of(direct_alltoall(3), machine.target), IsEmpty());
  // gpu1's limit of 1 is exceeded by its two neighbours.
  topology.nodes[1].peer_limit = 1;
  Machine tight(topology, 3);
  EXPECT_THAT(
      problems_of(direct_alltoall(3), tight.target),
      ElementsAre("gpu1 exchanges data directly with 2 GPUs, but can map the memory of only 1 "
                  "peer | choose an algorithm with fewer neighbours, such as ring, "
                  "or fewer GPUs"));
}

TEST(CheckRoutes, RanksThatShareAGpuNeedNoRoute) {
  Machine machine(small_machine(), 0);
  machine.target.placement.ranks = {3, 3, 3, 3};
  EXPECT_THAT(problems_of(ring_allreduce(4, false), machine.target), IsEmpty());
}

/// Of few places and of many.
TEST(SeenTransfers, TellWaysApart) {
  for (const int ranks : {4, 5000}) {
    Program program;
    program.contract.ranks = ranks;
    SeenTransfers seen(program);
    const std::vector<std::vector<int>> ways = {{0, 1, -1}, {1, 0, -1},         {0, 1, 0},
                                                {0, 1, 1},  {0, ranks - 1, -1}, {ranks - 1, 0, -1}};
    for (const bool is_new : {true, false}) {
      for (const std::vector<int>& way : ways) {
        EXPECT_EQ(seen.add(way[0], way[1], way[2]), is_new) << ranks << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace espalier

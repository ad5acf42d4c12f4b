// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/builder.h"
#include "run/backend.h"
#include "sim/simulator.h"
#include "topologies/placement.h"
#include "topologies/route.h"

namespace espalier {

/// A profile under which nothing but wires counts, like `ideal`.
inline Profile bare_profile() {
  Profile profile;
  profile.name = "bare";
  return profile;
}

inline Topology machine_of_gpus(int gpus) {
  Topology topology;
  topology.name = "test";
  for (int i = 0; i < gpus; ++i) {
    Node node;
    node.name = "gpu" + std::to_string(i);
    topology.nodes.push_back(node);
  }
  return topology;
}

inline Link gpu_link(NodeId a, NodeId b, double gbps, double latency_s) {
  Link link;
  link.a = a;
  link.b = b;
  link.kind = "nvlink2";
  link.link_class = LinkClass::gpu_fabric;
  link.gbps = gbps;
  link.latency_s = latency_s;
  return link;
}

/// GPUs in a cycle, full duplex; two GPUs share one link.
inline Topology ring_machine(int gpus, double gbps, double latency_s) {
  Topology topology = machine_of_gpus(gpus);
  for (int i = 0; i < (gpus == 2 ? 1 : gpus); ++i) {
    topology.links.push_back(gpu_link(i, (i + 1) % gpus, gbps, latency_s));
  }
  return topology;
}

/// GPUs around one NVSwitch; a transfer crosses two links.
inline Topology switch_machine(int gpus, double gbps, double latency_s) {
  Topology topology = machine_of_gpus(gpus);
  Node hub;
  hub.name = "switch";
  hub.kind = NodeKind::nvswitch;
  topology.nodes.push_back(hub);
  for (int i = 0; i < gpus; ++i) {
    topology.links.push_back(gpu_link(i, gpus, gbps, latency_s));
  }
  return topology;
}

/// A machine ready to simulate on: keeps what a router refers to.
class TestMachine {
 public:
  explicit TestMachine(Topology topology, Profile profile = bare_profile())
      : topology_(std::move(topology)),
        profile_(std::move(profile)),
        router_(topology_, profile_),
        target_{&router_, place_ranks(router_, {})} {}
  TestMachine(const TestMachine&) = delete;
  TestMachine& operator=(const TestMachine&) = delete;

  const Target& target() const { return target_; }
  RunReport run(const Program& program, std::int64_t size_bytes, bool timeline = false) const {
    RunOptions options;
    options.size_bytes = size_bytes;
    options.timeline = timeline;
    return Simulator().run(program, target_, options);
  }

 private:
  Topology topology_;
  Profile profile_;
  Router router_;
  Target target_;
};

inline Contract allreduce_contract(int ranks, std::int64_t units = 1) {
  Contract contract;
  contract.collective = Collective::allreduce;
  contract.ranks = ranks;
  contract.units = units;
  return contract;
}

/// Reduce-scatter, then allgather, round the ring; n parts, 2(n - 1) steps.
inline Program ring_allreduce(int ranks) {
  Builder builder("ring", allreduce_contract(ranks, ranks));
  for (int step = 0; step < ranks - 1; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int part = (rank - step + ranks) % ranks;
      const int next = (rank + 1) % ranks;
      const Slice partial =
          step == 0 ? builder.input(rank, part, 1) : builder.output(rank, part, 1);
      builder.combine(builder.output(next, part, 1), {builder.input(next, part, 1), partial});
    }
  }
  for (int step = 0; step < ranks - 1; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const int part = (rank + 1 - step + ranks) % ranks;
      const int next = (rank + 1) % ranks;
      builder.copy(builder.output(next, part, 1), builder.output(rank, part, 1));
    }
  }
  return builder.finish();
}

}  // namespace espalier

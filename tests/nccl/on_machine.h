// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "nccl/graph.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

/// Ranks on a machine under NCCL's profile: what NCCL sees of them, and its programs and times.
class OnMachine {
 public:
  explicit OnMachine(Topology topology, const std::vector<int>& gpus = {})
      : topology_(std::move(topology)),
        router_(topology_, topology_.profile("nccl:simple")),
        placement_(place_ranks(router_, gpus)),
        machine_(nccl_machine(router_, placement_)) {}
  explicit OnMachine(const std::string& name, const std::vector<int>& gpus = {})
      : OnMachine(load_topology(name), gpus) {}
  OnMachine(const OnMachine&) = delete;  // the router keeps a reference
  OnMachine& operator=(const OnMachine&) = delete;

  const Router& router() const { return router_; }
  const Placement& placement() const { return placement_; }
  const NcclMachine& machine() const { return machine_; }
  int ranks() const { return machine_.ranks; }
  int node(int rank) const { return machine_.node_of(rank); }
  NcclGraph graph(int version, bool pxn = true) const {
    return nccl_graph(machine_, router_, placement_, version, pxn);
  }

  Program program(const std::string& spec, Collective collective, std::int64_t bytes,
                  bool in_place = false) const {
    const BuildRequest request = requested(collective, bytes, in_place);
    const AlgorithmChoice choice = parse_algorithm(spec);
    EXPECT_FALSE(unsupported(choice, request)) << spec;
    return build(decided(choice, library_call(choice, request)), request);
  }
  RunReport run(const std::string& spec, Collective collective, std::int64_t bytes) const {
    RunOptions options;
    options.size_bytes = bytes;
    options.blocks =
        library_call(parse_algorithm(spec), requested(collective, bytes, false)).blocks;
    Simulator simulator;
    return simulator.run(program(spec, collective, bytes), {&router_, placement_}, options);
  }
  double time_us(const std::string& spec, Collective collective, std::int64_t bytes) const {
    return 1e6 * run(spec, collective, bytes).time_s;
  }

 private:
  BuildRequest requested(Collective collective, std::int64_t bytes, bool in_place) const {
    BuildRequest request = request_for(collective, 0, in_place, router_, placement_);
    request.size_bytes = bytes;
    return request;
  }

  Topology topology_;
  Router router_;
  Placement placement_;
  NcclMachine machine_;
};

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "ir/chunk.h"
#include "ir/verify.h"
#include "run/routes.h"
#include "sim/simulator.h"
#include "tests/algorithms/programs.h"
#include "tests/topologies/subsets.h"
#include "topologies/load.h"
#include "topologies/placement.h"

// For algorithms that look at the machine.

namespace espalier::programs {

/// Some GPUs of a machine.
struct Machine {
  explicit Machine(const std::string& spec, const std::vector<int>& gpus = {},
                   LinkScope scope = LinkScope::fabric, const std::string& profile = "ideal",
                   const std::vector<int>& relays = {})
      : Machine(load_topology(spec), gpus, scope, profile, relays) {}
  explicit Machine(Topology machine, const std::vector<int>& gpus = {},
                   LinkScope scope = LinkScope::fabric, const std::string& profile = "ideal",
                   const std::vector<int>& relays = {})
      : topology(std::move(machine)),
        router(topology, topology.profile(profile), scope),
        placement(place_ranks(router, gpus, relays)) {}

  int ranks() const { return static_cast<int>(placement.ranks.size()); }
  BuildRequest request(Collective collective, int root = 0, bool in_place = false) const {
    return request_for(collective, root, in_place, router, placement);
  }
  /// Why not, or an empty text.
  std::string refusal(const std::string& spec, Collective collective) const {
    return unsupported(parse_algorithm(spec), request(collective)).value_or("");
  }
  Program make(const std::string& spec, Collective collective, int root = 0,
               bool in_place = false) const {
    return build(parse_algorithm(spec), request(collective, root, in_place));
  }

  /// Simulated time of a message whose longest ops are cut into `pieces`.
  double time_s(const Program& program, double size_bytes, std::int64_t pieces = 1) {
    std::int64_t longest = 1;
    for (const Op& op : program.ops) {
      if (is_remote(program, op)) longest = std::max<std::int64_t>(longest, op.length);
    }
    RunOptions options;
    options.size_bytes = static_cast<std::int64_t>(size_bytes);
    Simulator simulator;
    return simulator.run(chunk(program, {pieces, longest}), {&router, placement}, options).time_s;
  }

  Topology topology;
  Router router;
  Placement placement;
};

/// Right by every rule, the machine's routes included, whole and cut.
inline void expect_right_on(Machine& machine, const Program& program, bool cut) {
  const Verification verification = verify(program);
  ASSERT_TRUE(verification.ok()) << render(verification.problems.front());
  EXPECT_TRUE(verification.order_consistent);
  const auto routes = check_routes(program, {&machine.router, machine.placement});
  ASSERT_TRUE(routes.empty()) << render(routes.front());
  if (cut) {
    EXPECT_TRUE(verify(chunk(program, {2, 1})).ok());
  }
}

}  // namespace espalier::programs

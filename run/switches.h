// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>

#include "run/target.h"

namespace espalier {

/// What carries out an op in a switch (Op::in_switch), and what that costs.
struct SwitchUse {
  NodeId node = 0;
  const SwitchOps* costs = nullptr;  ///< of the target's profile
};

/// The switch that the op names with `via`, or else the one that joins the GPUs of its operands;
/// nothing when there is none that combines, or the profile's runtime makes no such ops.
/// \pre there is a router, and `op` is in a switch
std::optional<SwitchUse> switch_of(const Program& program, const Op& op, const Target& target);

/// Which ops in switches were seen before, or others between the same places by the same way: a
/// switch is found for those once, as programs repeat few of them many times.
class SwitchPlaces {
 public:
  /// \pre `op` is in a switch, of the program that all others are of
  bool is_new(const Program& program, const Op& op);

 private:
  std::unordered_set<std::uint64_t> seen_;  ///< places and way, mixed
};

/// What a call with ops in switches costs beside all else; 0 without such ops.
double switch_call_s(const Program& program, const Target& target);

}  // namespace espalier

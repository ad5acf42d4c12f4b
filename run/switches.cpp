// SPDX-License-Identifier: Apache-2.0
#include "run/switches.h"

#include <algorithm>
#include <vector>

#include "core/hash.h"

namespace espalier {

std::optional<SwitchUse> switch_of(const Program& program, const Op& op, const Target& target) {
  std::vector<NodeId> gpus = {node_of(program, target.placement, op.at)};
  const auto add = [&](const Operand& operand) {
    gpus.push_back(node_of(program, target.placement, operand.place));
  };
  for (const Operand& source : program.sources_of(op)) add(source);
  for_each_destination(program, op, add);
  std::sort(gpus.begin() + 1, gpus.end());
  gpus.erase(std::unique(gpus.begin() + 1, gpus.end()), gpus.end());

  const Router& router = *target.router;
  const Topology& topology = router.topology();
  std::optional<NodeId> named;
  if (op.via >= 0) {
    named = topology.find(program.vias[static_cast<std::size_t>(op.via)]);
    if (!named) return std::nullopt;
  }
  const std::optional<NodeId> found = router.combining_switch(gpus, named);
  if (!found) return std::nullopt;
  const bool in_network = topology.node(*found).kind == NodeKind::fabric;
  return SwitchUse{*found,
                   router.profile().switch_ops(topology.node(gpus.front()).model, in_network)};
}

bool SwitchPlaces::is_new(const Program& program, const Op& op) {
  std::uint64_t key =
      mix64(static_cast<std::uint64_t>(op.at) << 16 | static_cast<std::uint16_t>(op.via));
  const auto add = [&](const Operand& one) {
    key = mix64(key + static_cast<std::uint64_t>(one.place));
  };
  for (const Operand& source : program.sources_of(op)) add(source);
  for_each_destination(program, op, add);
  return seen_.insert(key).second;
}

double switch_call_s(const Program& program, const Target& target) {
  double call_s = 0;
  const std::vector<Node>& nodes = target.router->topology().nodes;
  if (std::ranges::none_of(nodes, &Node::combines)) return call_s;  // few machines have one
  SwitchPlaces seen;
  for (const Op& op : program.ops) {
    if (!op.in_switch || !seen.is_new(program, op)) continue;
    if (const auto use = switch_of(program, op, target)) {
      call_s = std::max(call_s, use->costs->call_s);
    }
  }
  return call_s;
}

}  // namespace espalier

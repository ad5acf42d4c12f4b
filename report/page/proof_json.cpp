// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <utility>

#include "report/page/parts.h"

namespace espalier {

namespace {

/// By drawn node: the part of a proof that it is in, or the number of parts where it is outside of
/// a cut, or -1. What is no site (switches, CPUs, NICs) counts with the sites it is nearest to,
/// unless these are of several parts.
std::vector<int> sides_of(const BoundProof& proof, const Placement& placement,
                          const DrawnMachines::One& machine) {
  const Topology& topology = *machine.topology;
  std::vector<int> side(topology.nodes.size(), -1);
  std::vector<NodeId> level = placement.ranks;
  for (const NodeId rank : placement.ranks) {
    side[static_cast<std::size_t>(rank)] = static_cast<int>(proof.parts.size());
  }
  for (std::size_t part = 0; part < proof.parts.size(); ++part) {
    for (const NodeId node : proof.parts[part]) {
      side[static_cast<std::size_t>(node)] = static_cast<int>(part);
    }
  }
  std::set<NodeId> reached(level.begin(), level.end());
  while (!level.empty()) {
    const std::set<NodeId> nearer(level.begin(), level.end());
    std::map<NodeId, std::set<int>> next;
    for (const Link& link : topology.links) {
      for (const auto& [from, to] : {std::pair(link.a, link.b), {link.b, link.a}}) {
        if (!nearer.contains(from) || reached.contains(to)) continue;
        next[to].insert(side[static_cast<std::size_t>(from)]);
      }
    }
    level.clear();
    for (const auto& [node, sides] : next) {
      if (sides.size() == 1) side[static_cast<std::size_t>(node)] = *sides.begin();
      reached.insert(node);
      level.push_back(node);
    }
  }
  std::vector<int> drawn_sides;
  for (const DrawnNode& node : machine.drawing.nodes) {
    std::set<int> sides;
    for (const NodeId one : node.nodes) sides.insert(side[static_cast<std::size_t>(one)]);
    drawn_sides.push_back(sides.size() == 1 ? *sides.begin() : -1);
  }
  return drawn_sides;
}

}  // namespace

Json proof_json(const BoundProof& proof, const Placement& placement, DrawnMachines::One& machine) {
  Json parts = Json::array();
  for (const std::vector<NodeId>& part : proof.parts) {
    std::set<int> nodes;
    for (const NodeId node : part) nodes.insert(machine.node_index[static_cast<std::size_t>(node)]);
    parts.push_back(nodes);
  }
  Json prices = Json::array();
  for (const LinkPrice& one : proof.prices) {
    const int link = machine.number_of(one.link);
    if (link < 0) continue;
    prices.push_back({{"link", link},
                      {"name", link_name(*machine.topology, one.link, one.forward)},
                      {"price", drawn(one.price)}});
  }
  return {{"kind", proof.bound.kind},
          {"algbw_gbps", drawn(proof.bound.algbw_gbps)},
          {"certificate", proof.bound.certificate},
          {"parts", std::move(parts)},
          {"sides", sides_of(proof, placement, machine)},
          {"prices", std::move(prices)}};
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <string>
#include <utility>

#include "report/page/parts.h"

namespace espalier {

namespace {

/// Numbers of the links on the page that a link is drawn as: those of all its medium's links, where
/// it is of one; none within a fold.
std::set<int> drawn_as(LinkId link, DrawnMachines::One& machine) {
  const Topology& topology = *machine.topology;
  const Link& one = topology.link(link);
  std::set<int> numbers;
  const auto add = [&](LinkId id) {
    const int number = machine.number_of(id);
    if (number >= 0) numbers.insert(number);
  };
  if (one.duplex != Duplex::shared) {
    add(link);
    return numbers;
  }
  for (LinkId id = 0; id < static_cast<LinkId>(topology.links.size()); ++id) {
    const Link& other = topology.link(id);
    if (other.duplex == Duplex::shared && other.medium == one.medium) add(id);
  }
  return numbers;
}

Json prices_json(const BoundProof& proof, DrawnMachines::One& machine) {
  Json prices = Json::array();
  for (const LinkPrice& one : proof.prices) {
    for (const int link : drawn_as(one.link, machine)) {
      prices.push_back({{"link", link},
                        {"name", link_name(*machine.topology, one.link, one.forward)},
                        {"price", drawn(one.price)}});
    }
  }
  return prices;
}

/// Links that are drawn as one are one here.
Json counted_json(const BoundProof& proof, DrawnMachines::One& machine) {
  struct Sum {
    std::string name;
    double gbps = 0;
    int links = 0;
  };
  std::map<std::pair<std::set<int>, bool>, Sum> sums;  // by where and in which direction
  for (const CountedLink& one : proof.counted) {
    const std::set<int> links = drawn_as(one.link, machine);
    const Link& link = machine.topology->link(one.link);
    const bool is_turned =
        links.size() == 1 && machine.node_index[static_cast<std::size_t>(link.a)] !=
                                 machine.drawing
                                     .links[static_cast<std::size_t>(
                                         machine.shown[static_cast<std::size_t>(*links.begin())])]
                                     .a;
    Sum& sum = sums[{links, one.both || one.forward != is_turned}];
    if (sum.links == 0) sum.name = link_name(*machine.topology, one.link, one.forward);
    sum.gbps += one.gbps;
    ++sum.links;
  }
  Json counted = Json::array();
  for (const auto& [at, sum] : sums) {
    counted.push_back(
        {{"on", at.first}, {"name", sum.name}, {"links", sum.links}, {"gbps", drawn(sum.gbps)}});
  }
  return counted;
}

}  // namespace

Json proof_json(const BoundProof& proof, DrawnMachines::One& machine) {
  Json parts = Json::array();
  for (const std::vector<NodeId>& part : proof.parts) {
    std::set<int> nodes;
    for (const NodeId node : part) nodes.insert(machine.node_index[static_cast<std::size_t>(node)]);
    parts.push_back(nodes);
  }
  return {{"kind", proof.bound.kind},
          {"algbw_gbps", drawn(proof.bound.algbw_gbps)},
          {"certificate", proof.bound.certificate},
          {"parts", std::move(parts)},
          {"counted", counted_json(proof, machine)},
          {"prices", prices_json(proof, machine)}};
}

}  // namespace espalier

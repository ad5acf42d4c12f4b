// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/page/parts.h"

namespace espalier {

int DrawnMachines::number(const Topology& topology) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].topology == &topology) return static_cast<int>(i);
  }
  One one{&topology, draw_machine(topology), {}, {}};
  one.node_index.resize(topology.nodes.size(), -1);
  one.link_index.resize(topology.links.size(), -1);
  for (std::size_t i = 0; i < one.drawing.nodes.size(); ++i) {
    for (const NodeId node : one.drawing.nodes[i].nodes) {
      one.node_index[static_cast<std::size_t>(node)] = static_cast<int>(i);
    }
  }
  for (std::size_t i = 0; i < one.drawing.links.size(); ++i) {
    for (const LinkId link : one.drawing.links[i].links) {
      one.link_index[static_cast<std::size_t>(link)] = static_cast<int>(i);
    }
  }
  all_.push_back(std::move(one));
  return static_cast<int>(all_.size()) - 1;
}

Json DrawnMachines::json() const {
  Json machines = Json::array();
  for (const One& one : all_) {
    const Topology& topology = *one.topology;
    Json nodes = Json::array();
    for (const DrawnNode& node : one.drawing.nodes) {
      nodes.push_back({{"name", node.name},
                       {"label", node.label},
                       {"kind", node.is_fold() ? "hosts" : to_string(node.kind)},
                       {"model", node.is_fold() ? "" : topology.node(node.nodes.front()).model},
                       {"x", drawn(node.x)},
                       {"y", drawn(node.y)}});
    }
    Json links = Json::array();
    for (const DrawnLink& link : one.drawing.links) {
      const Link& first = topology.link(link.links.front());
      links.push_back({{"a", link.a},
                       {"b", link.b},
                       {"kind", first.kind},
                       {"class", to_string(first.link_class)},
                       {"count", first.count},
                       {"alike", link.links.size()}});
    }
    Json frames = Json::array();
    for (const DrawnFrame& frame : one.drawing.frames) {
      frames.push_back({{"label", frame.label},
                        {"x", drawn(frame.x)},
                        {"y", drawn(frame.y)},
                        {"width", drawn(frame.width)},
                        {"height", drawn(frame.height)}});
    }
    machines.push_back({{"name", topology.name},
                        {"title", topology.title},
                        {"width", drawn(one.drawing.width)},
                        {"height", drawn(one.drawing.height)},
                        {"nodes", std::move(nodes)},
                        {"links", std::move(links)},
                        {"frames", std::move(frames)}});
  }
  return machines;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "report/page/parts.h"

namespace espalier {

namespace {

/// Links of a machine that a page has room for.
constexpr std::size_t kMostShownLinks = 4000;

}  // namespace

void DrawnMachines::One::show(std::size_t drawn_link) {
  link_number[drawn_link] = static_cast<int>(shown.size());
  shown.push_back(static_cast<int>(drawn_link));
}

int DrawnMachines::One::number_of(LinkId link) {
  const int index = link_index[static_cast<std::size_t>(link)];
  return index < 0 ? -1 : number_of_drawn(index);
}

int DrawnMachines::One::number_of_drawn(int drawn_link) {
  const auto at = static_cast<std::size_t>(drawn_link);
  if (link_number[at] < 0 && shown.size() < kMostShownLinks) show(at);
  return link_number[at];
}

int DrawnMachines::number(const Topology& topology) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].topology == &topology) return static_cast<int>(i);
  }
  One one{&topology, draw_machine(topology), {}, {}, {}, {}};
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
  one.link_number.resize(one.drawing.links.size(), -1);
  if (one.drawing.links.size() <= kMostShownLinks) {
    for (std::size_t i = 0; i < one.drawing.links.size(); ++i) one.show(i);
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
                       {"y", drawn(node.y)},
                       {"width", drawn(node.width)},
                       {"height", drawn(node.height)}});
    }
    Json links = Json::array();
    for (const int index : one.shown) {
      const DrawnLink& link = one.drawing.links[static_cast<std::size_t>(index)];
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
                        {"links_in_all", one.drawing.links.size()},
                        {"nodes", std::move(nodes)},
                        {"links", std::move(links)},
                        {"frames", std::move(frames)}});
  }
  return machines;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topologies/load.h"
#include "topologies/route.h"

namespace espalier::testing {

/// "gpu7". Not written with + on a temporary, which GCC 12 warns of without reason (bug 105651).
inline std::string numbered(const char* prefix, int number) {
  std::string name = prefix;
  name += std::to_string(number);
  return name;
}

/// A machine and its router, with nodes asked for by name.
class Machine {
 public:
  explicit Machine(Topology topology, const std::string& profile = "ideal",
                   LinkScope scope = LinkScope::all)
      : topology_(std::move(topology)), router_(topology_, topology_.profile(profile), scope) {}
  explicit Machine(const std::string& spec, const std::string& profile = "ideal",
                   LinkScope scope = LinkScope::all)
      : Machine(load_topology(spec), profile, scope) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const Topology& topology() const { return topology_; }
  const Router& router() const { return router_; }

  NodeId node(const std::string& name) const {
    const auto id = topology_.find(name);
    EXPECT_TRUE(id.has_value()) << "no node " << name;
    return id.value_or(0);
  }
  const Route* route(const std::string& from, const std::string& to) const {
    return router_.route(node(from), node(to));
  }
  const Route* route(const std::string& from, const std::string& to, const std::string& via) const {
    return router_.route(node(from), node(to), node(via));
  }

  /// The nodes a route visits, "gpu0 plx0 cpu0"; "no route"; "broken at ..." when its hops do not
  /// join.
  std::string path(const std::string& from, const Route* route) const {
    if (route == nullptr) return "no route";
    NodeId at = node(from);
    std::string names = from;
    for (const Hop& hop : route->hops) {
      const Link& link = topology_.link(hop.link);
      if ((hop.forward ? link.a : link.b) != at) return "broken after " + names;
      at = hop.forward ? link.b : link.a;
      names += " " + topology_.node(at).name;
    }
    return names;
  }
  std::string path(const std::string& from, const std::string& to) const {
    return path(from, route(from, to));
  }

  /// GB/s of one transfer that has the machine for itself. A link passed in both directions counts
  /// twice when these share its bandwidth.
  double alone_gbps(const Route& route) const {
    double gbps = 1e9;
    for (const Hop& hop : route.hops) {
      const Link& link = topology_.link(hop.link);
      int uses = 0;
      for (const Hop& other : route.hops) {
        if (other.link != hop.link) continue;
        uses += link.duplex != Duplex::full || other.forward == hop.forward ? 1 : 0;
      }
      gbps = std::min(gbps, router_.capacity_gbps(hop.link) / uses);
    }
    return gbps;
  }

 private:
  Topology topology_;
  Router router_;
};

/// A machine written in code: nodes first, then links between them by index.
class Builder {
 public:
  NodeId add(const std::string& name, NodeKind kind, int host = 0) {
    Node node;
    node.name = name;
    node.kind = kind;
    node.host = host;
    topology_.nodes.push_back(node);
    topology_.hosts = std::max(topology_.hosts, host + 1);
    return static_cast<NodeId>(topology_.nodes.size()) - 1;
  }
  LinkId link(NodeId a, NodeId b, LinkClass link_class, double gbps = 10) {
    Link link;
    link.a = a;
    link.b = b;
    link.kind = "link";
    link.link_class = link_class;
    link.gbps = gbps;
    link.latency_s = 1e-6;
    topology_.links.push_back(link);
    return static_cast<LinkId>(topology_.links.size()) - 1;
  }
  Topology& topology() { return topology_; }
  /// With the profile "ideal".
  Topology done() {
    topology_.name = "built";
    topology_.profiles["ideal"].name = "ideal";
    EXPECT_TRUE(check_topology(topology_).empty());
    return topology_;
  }

 private:
  Topology topology_;
};

}  // namespace espalier::testing

// SPDX-License-Identifier: Apache-2.0
// Platform files of SimGrid (DTD version 4.1): hosts for GPUs and CPUs, links, and the routes that
// Espalier's router chooses, under profile `ideal`. Where the ways between hosts of a cluster are
// those to and from a network, each host of the cluster is a zone, so that a file does not hold the
// square of all of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>

#include "core/words.h"
#include "formats/format.h"
#include "formats/xml_text.h"
#include "topologies/route.h"

namespace espalier {
namespace {

/// GPUs and CPUs of one zone, all pairs of which have routes in the file; and of all zones, as the
/// ways between all pairs are looked at.
constexpr std::size_t kMaxOfZone = 512;
constexpr std::size_t kMaxOfAll = 1024;

constexpr double kNoLimitGbps = 1e12;

using Hops = std::vector<Hop>;

/// A way out to the network or in from it; there is none where a memory reaches no network.
using Half = std::optional<Hops>;

bool is_memory(const Node& node) {
  return node.kind == NodeKind::gpu || node.kind == NodeKind::cpu;
}

class PlatformMaker {
 public:
  explicit PlatformMaker(const Topology& machine)
      : machine_(machine), router_(machine, machine.profile("ideal")) {
    for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
      const Node& node = machine.node(id);
      if (is_memory(node)) memories_[node.host].push_back(id);
    }
  }

  Written write() {
    if (count() > kMaxOfAll) refuse(count(), kMaxOfAll, "");
    platform_ = document_.append_child("platform");
    set(platform_, "version", "4.1");
    add_config();
    if (memories_.size() > 1 && find_halves()) {
      add_zones();
    } else {
      add_one_zone();
    }
    add_notes();
    std::ostringstream out;
    out << "<?xml version='1.0'?>\n"
           "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";
    document_.save(out, "  ", pugi::format_indent | pugi::format_no_declaration);
    return {out.str(), std::move(notes_)};
  }

 private:
  static void set(pugi::xml_node node, const char* name, const std::string& value) {
    node.append_attribute(name).set_value(value.c_str());
  }

  std::size_t count() const {
    std::size_t all = 0;
    for (const auto& [host, memories] : memories_) all += memories.size();
    return all;
  }
  std::vector<NodeId> all() const {
    std::vector<NodeId> memories;
    for (const auto& [host, of_host] : memories_) {
      memories.insert(memories.end(), of_host.begin(), of_host.end());
    }
    return memories;
  }

  [[noreturn]] void refuse(std::size_t hosts, std::size_t most, const std::string& why) const {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} has {} GPUs and CPUs{}; a platform file holds {} at most",
                            machine_.name, hosts, why, most),
                "write a smaller machine (nodes=N)");
  }

  /// SimGrid as the simulator here uses it: links as fast as they say, and no acknowledgements.
  void add_config() {
    pugi::xml_node config = platform_.append_child("config");
    const auto prop = [&](const char* id, const char* value) {
      pugi::xml_node node = config.append_child("prop");
      set(node, "id", id);
      set(node, "value", value);
    };
    prop("network/model", "CM02");
    prop("network/crosstraffic", "0");
    prop("network/TCP-gamma", "1e300");
    prop("network/latency-factor", "1");
    prop("network/bandwidth-factor", "1");
    prop("network/weight-S", "0");
  }

  static std::string number(double value) { return fmt::format("{}", value); }

  void add_host(pugi::xml_node zone, NodeId id) {
    pugi::xml_node host = zone.append_child("host");
    set(host, "id", machine_.node(id).name);
    set(host, "speed", "1Gf");
  }

  static std::string link_id(LinkId id) { return fmt::format("l{}", id); }
  static std::string medium_id(const Link& link) { return "medium@" + link.medium; }

  void add_link(pugi::xml_node zone, const std::string& id, double gbps, double latency_s,
                const char* policy) {
    pugi::xml_node node = zone.append_child("link");
    set(node, "id", id);
    set(node, "bandwidth", number(gbps) + "GBps");
    set(node, "latency", number(latency_s) + "s");
    set(node, "sharing_policy", policy);
  }

  /// Of links that share a medium, each has its latency, and the medium the bandwidth.
  void add_links(pugi::xml_node zone, const std::vector<LinkId>& links) {
    for (const LinkId id : links) {
      const Link& link = machine_.link(id);
      const double gbps = router_.capacity_gbps(id);
      const bool is_shared = link.duplex == Duplex::shared;
      if (is_shared && media_.insert(link.medium).second) {
        add_link(zone, medium_id(link), gbps, 0, "SHARED");
      }
      add_link(zone, link_id(id), gbps, link.latency_s,
               is_shared                     ? "FATPIPE"
               : link.duplex == Duplex::full ? "SPLITDUPLEX"
                                             : "SHARED");
    }
  }

  void add_hops(pugi::xml_node route, const Hops& hops) {
    for (const Hop& hop : hops) {
      const Link& link = machine_.link(hop.link);
      pugi::xml_node node = route.append_child("link_ctn");
      set(node, "id", link_id(hop.link));
      if (link.duplex == Duplex::full) set(node, "direction", hop.forward ? "UP" : "DOWN");
      if (link.duplex == Duplex::shared) set(route.append_child("link_ctn"), "id", medium_id(link));
    }
  }

  static Hops reversed(Hops hops) {
    std::ranges::reverse(hops);
    for (Hop& hop : hops) hop.forward = !hop.forward;
    return hops;
  }

  /// One element for both directions where the way back is the way there.
  void add_route(pugi::xml_node zone, const std::string& from, const std::string& to,
                 const Half& there, const Half& back) {
    const bool is_symmetrical = there && back && reversed(*there) == *back;
    const auto add = [&](const std::string& a, const std::string& b, const Hops& hops) {
      pugi::xml_node route = zone.append_child("route");
      set(route, "src", a);
      set(route, "dst", b);
      set(route, "symmetrical", is_symmetrical ? "YES" : "NO");
      add_hops(route, hops);
    };
    if (there) add(from, to, *there);
    if (back && !is_symmetrical) add(to, from, *back);
  }

  Half hops_between(NodeId from, NodeId to) const {
    const Route* route = router_.route(from, to);
    if (route == nullptr) return std::nullopt;
    return route->hops;
  }

  /// Every pair of the zone. Pairs without a route have none in the file.
  void add_routes(pugi::xml_node zone, const std::vector<NodeId>& memories) {
    for (std::size_t a = 0; a < memories.size(); ++a) {
      for (std::size_t b = a + 1; b < memories.size(); ++b) {
        const Half there = hops_between(memories[a], memories[b]);
        const Half back = hops_between(memories[b], memories[a]);
        lost_ += !there + !back;
        add_route(zone, machine_.node(memories[a]).name, machine_.node(memories[b]).name, there,
                  back);
      }
    }
  }

  pugi::xml_node add_zone(pugi::xml_node parent, const std::string& id) {
    pugi::xml_node zone = parent.append_child("zone");
    set(zone, "id", id);
    set(zone, "routing", "Full");
    return zone;
  }

  void add_one_zone() {
    pugi::xml_node zone = add_zone(platform_, "machine@");
    if (count() > kMaxOfZone) {
      refuse(count(), kMaxOfZone, ", and the ways between its hosts are not those to one network");
    }
    std::vector<NodeId> memories = all();
    std::vector<LinkId> links(machine_.links.size());
    std::iota(links.begin(), links.end(), 0);
    for (const NodeId id : memories) add_host(zone, id);
    add_links(zone, links);
    add_routes(zone, memories);
  }

  /// Cuts the route from one memory to another at the middle of the network: behind the link that
  /// leaves the first host.
  static std::optional<std::size_t> cut_of(const Topology& machine, const Hops& hops) {
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const Link& link = machine.link(hops[i].link);
      const NodeId to = hops[i].forward ? link.b : link.a;
      if (machine.node(to).kind == NodeKind::fabric) return i + 1;
    }
    return std::nullopt;
  }

  /// Whether every route between two hosts is the first memory's way out and the second one's way
  /// in, whichever the other is.
  bool find_halves() {
    const auto agrees = [](std::map<NodeId, Half>& halves, NodeId id, const Half& half) {
      return halves.try_emplace(id, half).first->second == half;
    };
    for (const NodeId from : all()) {
      for (const NodeId to : all()) {
        if (machine_.node(from).host == machine_.node(to).host) continue;
        const Half hops = hops_between(from, to);
        const auto cut = hops ? cut_of(machine_, *hops) : std::nullopt;
        if (!cut) return false;
        const auto middle = hops->begin() + static_cast<std::ptrdiff_t>(*cut);
        if (!agrees(out_, from, Hops(hops->begin(), middle)) ||
            !agrees(in_, to, Hops(middle, hops->end()))) {
          return false;
        }
      }
    }
    return true;
  }

  /// A zone for each host, with a router that stands for the network.
  void add_zones() {
    pugi::xml_node top = add_zone(platform_, "machine@");
    std::map<int, std::vector<LinkId>> links_of;
    for (LinkId id = 0; id < static_cast<LinkId>(machine_.links.size()); ++id) {
      const Link& link = machine_.link(id);
      links_of[std::max(machine_.node(link.a).host, machine_.node(link.b).host)].push_back(id);
    }
    // SimGrid wants a zone's zones before its links, so what joins fabrics is in the first of them.
    std::vector<LinkId>& first = links_of[memories_.begin()->first];
    first.insert(first.end(), links_of[-1].begin(), links_of[-1].end());
    for (const auto& [host, memories] : memories_) {
      pugi::xml_node zone = add_zone(top, zone_of(host));
      for (const NodeId id : memories) add_host(zone, id);
      const std::string gateway = gateway_of(host);
      set(zone.append_child("router"), "id", gateway);
      add_links(zone, links_of[host]);
      add_routes(zone, memories);
      for (const NodeId id : memories) {
        add_route(zone, machine_.node(id).name, gateway, out_.at(id), in_.at(id));
      }
    }
    // Zones can't touch: between them is what has no limit.
    add_link(top, "network@", kNoLimitGbps, 0, "FATPIPE");
    for (const auto& [a, of_a] : memories_) {
      for (const auto& [b, of_b] : memories_) {
        if (b <= a) continue;
        pugi::xml_node route = top.append_child("zoneRoute");
        set(route, "src", zone_of(a));
        set(route, "dst", zone_of(b));
        set(route, "gw_src", gateway_of(a));
        set(route, "gw_dst", gateway_of(b));
        set(route.append_child("link_ctn"), "id", "network@");
      }
    }
  }

  // Names that no node has.
  static std::string zone_of(int host) { return fmt::format("zone@{}", host); }
  static std::string gateway_of(int host) { return fmt::format("gateway@{}", host); }

  void add_notes() {
    notes_.push_back(
        "bandwidths and latencies are those of profile ideal, theoretical ones; start-up costs, "
        "memory and reductions are not in the file");
    notes_.push_back(
        "SimGrid shares a link in inverse proportion to the latencies of routes, the simulator "
        "here "
        "equally");
    notes_.push_back("the speed of every host is 1Gf: computation is not described");
    if (lost_ > 0) {
      notes_.push_back(
          fmt::format("{} of hosts, by direction, have no route in the machine and none "
                      "in the file",
                      counted(lost_, "pair")));
    }
    if (std::ranges::any_of(machine_.nodes, [](const Node& node) { return node.combines; })) {
      notes_.push_back("SimGrid has no switches that combine (NVLS, SHARP)");
    }
  }

  const Topology& machine_;
  Router router_;
  std::map<int, std::vector<NodeId>> memories_;  ///< by host
  std::map<NodeId, Half> out_, in_;
  pugi::xml_document document_;
  pugi::xml_node platform_;
  std::set<std::string> media_;  ///< that are in the file
  std::size_t lost_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

const Format& simgrid_platform_format() {
  static const Format format = {
      .name = "simgrid-platform",
      .title = "platform XML that SimGrid simulates on",
      .extension = ".xml",
      .write_machine = [](const Topology& machine) { return PlatformMaker(machine).write(); }};
  return format;
}

}  // namespace espalier

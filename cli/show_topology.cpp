// SPDX-License-Identifier: Apache-2.0
#include "cli/show_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "cli/adjacency.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "topologies/route.h"

namespace espalier {

namespace {

/// A matrix of more GPUs would be wider than any page.
constexpr std::size_t kMaxMatrixGpus = 16;
/// Pairs listed for links of one kind.
constexpr std::size_t kMaxPairs = 64;

std::string or_dash(double value) { return value > 0 ? fmt::format("{:g}", value) : "-"; }

/// What there is to a node besides its name and host.
auto figures_of(const Node& node) {
  return std::tie(node.kind, node.combines, node.model, node.numa, node.memory_gbps,
                  node.reduce_gbps, node.access_gbps, node.exchange, node.memory, node.peer_limit,
                  node.copy_engines, node.speed, node.what_if);
}

/// What there is to a link besides its ends.
auto figures_of(const Link& link) {
  return std::tie(link.kind, link.count, link.gbps, link.measured_gbps, link.latency_s, link.duplex,
                  link.medium, link.what_if, link.measured_factor);
}

/// Nodes and links of a cluster repeat from host to host: those of the first are shown, those of
/// hosts that are not like it, and what is shared.
std::set<int> shown_hosts(const Topology& topology) {
  struct Host {
    std::vector<const Node*> nodes;
    std::vector<const Link*> links;
  };
  std::map<int, Host> hosts;
  for (const Node& node : topology.nodes) hosts[node.host].nodes.push_back(&node);
  for (const Link& link : topology.links) {
    const int host = std::max(topology.node(link.a).host, topology.node(link.b).host);
    hosts[host].links.push_back(&link);
  }
  const auto alike = [](const auto* a, const auto* b) { return figures_of(*a) == figures_of(*b); };
  std::set<int> shown = {-1, 0};
  for (const auto& [number, host] : hosts) {
    if (number > 0 && (!std::ranges::equal(host.nodes, hosts[0].nodes, alike) ||
                       !std::ranges::equal(host.links, hosts[0].links, alike))) {
      shown.insert(number);
    }
  }
  return shown;
}

void show_nodes(const Console& console, const Topology& topology, const std::set<int>& hosts) {
  // All are as fast as their models, and as their file says, unless somebody asked what if not.
  const bool speeds_differ =
      std::ranges::any_of(topology.nodes, [](const Node& node) { return node.speed != 1; });
  const bool changed =
      std::ranges::any_of(topology.nodes, [](const Node& node) { return !node.what_if.empty(); });
  Columns columns(std::string("llllrrrr") + (speeds_differ ? "r" : "") + (changed ? "l" : ""));
  const auto add = [&](std::vector<std::string> cells, std::string speed, std::string what_if) {
    if (speeds_differ) cells.push_back(std::move(speed));
    if (changed) cells.push_back(std::move(what_if));
    columns.add(cells);
  };
  add({"nodes", "kind", "model", "numa", "memory", "reduce", "peers", "engines"}, "speed",
      "what if");
  add({"", "", "", "", "(GB/s)", "(GB/s)", "", ""}, "", "");
  const auto stem = [](const Node& node) {
    return std::string_view(node.name).substr(0, node.name.find_last_not_of("0123456789") + 1);
  };
  const auto same = [&](const Node& a, const Node& b) {
    return stem(a) == stem(b) && a.host == b.host && figures_of(a) == figures_of(b);
  };
  const std::vector<Node>& nodes = topology.nodes;
  for (std::size_t i = 0; i < nodes.size();) {
    std::size_t last = i;
    while (last + 1 < nodes.size() && same(nodes[i], nodes[last + 1])) ++last;
    const Node& node = nodes[i];
    if (hosts.contains(node.host)) {
      const std::string name =
          last == i ? node.name : fmt::format("{} to {}", node.name, nodes[last].name);
      const std::string kind(to_string(node.kind));
      add({name, node.combines ? kind + ", combines" : kind, node.model.empty() ? "-" : node.model,
           node.numa < 0 ? "-" : fmt::format("{}", node.numa), or_dash(node.memory_gbps),
           or_dash(node.reduce_gbps), or_dash(node.peer_limit), or_dash(node.copy_engines)},
          node.kind == NodeKind::gpu || node.kind == NodeKind::cpu
              ? fmt::format("x{:g}", node.speed)
              : "-",
          node.what_if);
    }
    i = last + 1;
  }
  console.out << columns.render();
  for (const auto& [name, memory] : topology.memories) {
    console.out << fmt::format("memory {}, shared: {} GB/s, reductions {} GB/s\n", name,
                               or_dash(memory.gbps), or_dash(memory.reduce_gbps));
  }
  console.out << '\n';
}

/// What was measured, and what a what-if makes of it.
std::string measured_text(double gbps, double factor, const std::string& what_if) {
  if (gbps == 0) return {};
  const bool is_scaled =
      what_if.find("gbps=") != std::string::npos || what_if.find("count=") != std::string::npos;
  return fmt::format(", measured {} GB/s{}", format_gbps(gbps / factor),
                     is_scaled ? fmt::format(" x{:.3g}", factor) : "");
}

void show_links(const Console& console, const Topology& topology, const std::set<int>& hosts) {
  // Links that differ only in their ends, in the order of the first of them.
  using Kind = std::tuple<std::string, int, double, double, double, Duplex, std::string,
                          std::string, double>;
  std::vector<std::pair<Kind, std::vector<std::string>>> groups;
  std::map<Kind, std::size_t> group_of;
  for (const Link& link : topology.links) {
    const Node& a = topology.node(link.a);
    const Node& b = topology.node(link.b);
    if (!hosts.contains(std::max(a.host, b.host))) continue;
    const Kind kind = figures_of(link);
    const auto [group, is_new] = group_of.try_emplace(kind, groups.size());
    if (is_new) groups.push_back({kind, {}});
    groups[group->second].second.push_back(a.name + "-" + b.name);
  }
  for (const auto& [kind, pairs] : groups) {
    const auto& [name, count, gbps, measured_gbps, latency_s, duplex, medium, what_if, factor] =
        kind;
    console.out << fmt::format(
        "{} x{}: {}{} GB/s {}, {}{}{} ({})\n", name, count,
        count > 1 ? fmt::format("{} x ", count) : "", format_gbps(gbps),
        duplex == Duplex::full   ? "each way"
        : duplex == Duplex::half ? "both directions together"
                                 : fmt::format("shared by all of '{}'", medium),
        format_seconds(latency_s), measured_text(measured_gbps, factor, what_if),
        what_if.empty() ? "" : fmt::format(", what if {}", what_if), counted(pairs.size(), "link"));
    std::string list;
    for (std::size_t i = 0; i < std::min(pairs.size(), kMaxPairs); ++i) {
      if (i > 0) list += " ";
      list += pairs[i];
    }
    if (pairs.size() > kMaxPairs) list += fmt::format(" and {} more", pairs.size() - kMaxPairs);
    console.out << wrap(list, console.width, "    ");
  }
  console.out << '\n';
}

void show_matrix(const Console& console, const Topology& topology) {
  std::vector<NodeId> gpus = topology.gpus();
  const std::size_t all = gpus.size();
  if (all > kMaxMatrixGpus) {
    std::erase_if(gpus, [&](NodeId gpu) { return topology.node(gpu).host > 0; });
    if (gpus.size() > kMaxMatrixGpus) gpus.resize(kMaxMatrixGpus);
  }
  Columns columns(std::string(gpus.size() + 1, 'l'));
  std::vector<std::string> header = {""};
  for (const NodeId gpu : gpus) header.push_back(topology.node(gpu).name);
  columns.add(header);
  std::set<std::string> seen;
  for (const NodeId row : gpus) {
    std::vector<std::string> cells = {topology.node(row).name};
    for (const NodeId column : gpus) {
      cells.push_back(adjacency(topology, row, column));
      seen.insert(cells.back().substr(0, cells.back().find_first_of("0123456789")));
    }
    columns.add(cells);
  }
  console.out << columns.render();
  if (gpus.size() < all)
    console.out << fmt::format("(the first {} of {} GPUs)\n", gpus.size(), all);
  const std::vector<std::pair<std::string, std::string>> legend = {
      {"NV", "NV#   # bonded NVLinks, direct or to a common NVSwitch"},
      {"XG", "XG#   # bonded xGMI links"},
      {"L", "L#    # bonded links of the GPU fabric"},
      {"PIX", "PIX   one PCIe switch between them"},
      {"PXB", "PXB   several PCIe switches, no CPU"},
      {"PHB", "PHB   a CPU between them"},
      {"NODE", "NODE  several CPUs of one socket"},
      {"SYS", "SYS   CPUs of several sockets"},
      {"NET", "NET   on different hosts"},
      {"-", "-     not connected within the host"}};
  for (const auto& [cell, meaning] : legend) {
    if (seen.contains(cell)) console.out << "  " << meaning << '\n';
  }
  console.out << '\n';
}

/// What each profile makes of each kind of link.
void show_profiles(const Console& console, const Topology& topology) {
  std::vector<std::pair<std::string, LinkId>> bundles;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    const std::string name = fmt::format("{} x{}", link.kind, link.count);
    if (std::ranges::count(bundles, name, [](auto& one) { return one.first; }) == 0) {
      bundles.emplace_back(name, static_cast<LinkId>(i));
    }
  }
  std::string alignment(topology.profiles.size() + 1, 'r');
  alignment.front() = 'l';
  Columns columns(alignment);
  std::vector<std::string> header = {"capacity (GB/s) and cost of an op"};
  for (const auto& [name, profile] : topology.profiles) header.push_back(name);
  columns.add(header);
  for (const auto& [name, link] : bundles) {
    std::vector<std::string> cells = {name};
    for (const auto& [profile_name, profile] : topology.profiles) {
      const Router router(topology, topology.profile(profile_name));
      // Of the protocol for bulk data, where there are several.
      const Link& one = topology.link(link);
      const std::string cost = cost_text(profile, one.kind, one.link_class);
      cells.push_back(fmt::format("{}  {:>8}", format_gbps(router.capacity_gbps(link)),
                                  cost.substr(0, cost.find(" ("))));
    }
    columns.add(cells);
  }
  console.out << columns.render();
}

}  // namespace

void show_topology(const Console& console, const Topology& topology) {
  console.out << styled(console, Style::bold, topology.name) << ": " << topology.title << '\n';
  const std::size_t gpus = topology.gpus().size();
  const std::set<int> hosts = shown_hosts(topology);
  console.out << fmt::format(
      "{}, {}{}\n\n", counted(gpus, "GPU"),
      counted(static_cast<std::size_t>(topology.hosts), "host"),
      topology.hosts == 1 ? ""
      : hosts.size() == 2
          ? "; nodes and links of the first one:"
          : "; nodes and links of the first one, and of those that differ from it:");
  show_nodes(console, topology, hosts);
  show_links(console, topology, hosts);
  show_matrix(console, topology);
  show_profiles(console, topology);
  const auto list = [&](const char* title, const std::vector<std::string>& items) {
    if (!items.empty()) console.out << '\n' << title << '\n';
    for (const std::string& one : items) {
      std::string item = wrap(one, console.width, "    ");
      item[2] = '-';
      console.out << item;
    }
  };
  list("Notes", topology.notes);
  list("Sources", topology.sources);
}

std::string topology_dot(const Topology& topology) {
  std::string text = fmt::format("graph {} {{\n  layout=neato; overlap=false; splines=true;\n",
                                 dot_quoted(topology.name));
  for (const Node& node : topology.nodes) {
    const char* shape = node.kind == NodeKind::gpu   ? "box, style=filled, fillcolor=palegreen"
                        : node.kind == NodeKind::cpu ? "box"
                                                     : "ellipse";
    text += fmt::format("  {} [shape={}];\n", dot_quoted(node.name), shape);
  }
  for (const Link& link : topology.links) {
    const std::string label = fmt::format("{}{} {} GB/s", link.kind,
                                          link.count > 1 ? fmt::format(" x{}", link.count) : "",
                                          format_gbps(link.gbps * link.count));
    text += fmt::format("  {} -- {} [label={}];\n", dot_quoted(topology.node(link.a).name),
                        dot_quoted(topology.node(link.b).name), dot_quoted(label));
  }
  return text + "}\n";
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/check.h"
#include "topologies/machine_file.h"
#include "topologies/topology_checks.h"

namespace espalier {

std::string wrong_host_count(const MachineFile& machine, std::int64_t hosts) {
  const std::string& name = machine.one.name;
  if (hosts < 1) return fmt::format("{} nodes requested, but a machine has at least 1", hosts);
  if (hosts > machine.max_hosts) {
    return fmt::format("{} nodes requested, but '{}' has at most {}", hosts, name,
                       machine.max_hosts);
  }
  const auto count = static_cast<std::size_t>(hosts);
  if (count > kMaxNodes / machine.one.nodes.size() ||
      (!machine.one.links.empty() && count > kMaxLinks / machine.one.links.size())) {
    return fmt::format(
        "'{}' with {} nodes would have more than {} GPUs, CPUs, switches and adapters, or more "
        "than {} links",
        name, hosts, kMaxNodes, kMaxLinks);
  }
  return {};
}

Topology repeat_hosts(const MachineFile& machine, int hosts) {
  CHECK(wrong_host_count(machine, hosts).empty());
  const Topology& one = machine.one;
  const auto copies = static_cast<std::size_t>(hosts);
  Topology whole;
  whole.name = one.name;
  whole.title = one.title;
  whole.sources = one.sources;
  whole.hosts = hosts;
  whole.peer_access = one.peer_access;
  whole.gpus_forward = one.gpus_forward;
  whole.profiles = one.profiles;
  whole.memories = one.memories;
  whole.nodes.reserve(one.nodes.size() * copies);
  whole.links.reserve(one.links.size() * copies);

  std::vector<NodeId> ids(one.nodes.size());  // of the nodes of `one` in the host being added
  const auto add_nodes = [&](bool shared, int host, const std::string& prefix) {
    for (std::size_t i = 0; i < one.nodes.size(); ++i) {
      if (machine.shared[i] != shared) continue;
      ids[i] = static_cast<NodeId>(whole.nodes.size());
      Node& node = whole.nodes.emplace_back(one.nodes[i]);
      node.host = host;
      node.name.insert(0, prefix);
    }
  };
  const auto is_shared = [&](NodeId id) { return machine.shared[static_cast<std::size_t>(id)]; };
  const auto add_links = [&](const std::string& prefix, const auto& belongs) {
    for (const Link& original : one.links) {
      if (!belongs(original)) continue;
      Link& link = whole.links.emplace_back(original);
      link.a = ids[static_cast<std::size_t>(original.a)];
      link.b = ids[static_cast<std::size_t>(original.b)];
      // A medium that a shared node is on, an Ethernet hub, is one for all hosts.
      const bool inside = !is_shared(original.a) && !is_shared(original.b);
      if (inside && !link.medium.empty()) link.medium.insert(0, prefix);
    }
  };

  // Ids of the shared nodes, which come last, are known beforehand.
  std::size_t shared_count = 0;
  for (const bool shared : machine.shared) shared_count += shared ? 1 : 0;
  auto next_shared = static_cast<NodeId>((one.nodes.size() - shared_count) * copies);
  for (std::size_t i = 0; i < one.nodes.size(); ++i) {
    if (machine.shared[i]) ids[i] = next_shared++;
  }
  for (int host = 0; host < hosts; ++host) {
    const std::string prefix = hosts > 1 ? fmt::format("n{}.", host) : "";
    add_nodes(false, host, prefix);
    add_links(prefix, [&](const Link& link) { return !is_shared(link.a) || !is_shared(link.b); });
  }
  add_nodes(true, -1, "");
  add_links("", [&](const Link& link) { return is_shared(link.a) && is_shared(link.b); });
  return whole;
}

}  // namespace espalier

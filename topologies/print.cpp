// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <string>

#include "core/check.h"
#include "core/yaml.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// A flow map, key by key.
class FlowMap {
 public:
  void add(std::string_view key, std::string_view value) {
    text_ += fmt::format("{}{}: {}", text_.empty() ? "" : ", ", key, value);
  }
  void add(std::string_view key, double value) { add(key, fmt::format("{:.6g}", value)); }
  void add_if(std::string_view key, double value) {
    if (value != 0) add(key, value);
  }
  bool empty() const { return text_.empty(); }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string_view name_of(Topology::PeerAccess access) {
  switch (access) {
    case Topology::PeerAccess::all:
      return "all";
    case Topology::PeerAccess::socket:
      return "socket";
    case Topology::PeerAccess::fabric:
      return "fabric";
  }
  CHECK(false);
}

std::string_view name_of(ReductionMode mode) {
  switch (mode) {
    case ReductionMode::free:
      return "free";
    case ReductionMode::fused:
      return "fused";
    case ReductionMode::separate:
      return "separate";
  }
  CHECK(false);
}

std::string node_text(const Node& node) {
  FlowMap map;
  map.add("name", node.name);
  map.add("kind", to_string(node.kind));
  if (!node.model.empty()) map.add("model", yaml_quoted(node.model));
  if (node.numa >= 0) map.add("numa", node.numa);
  map.add_if("memory_gbps", node.memory_gbps);
  map.add_if("reduce_gbps", node.reduce_gbps);
  map.add_if("access_gbps", node.access_gbps);
  if (!node.memory.empty()) map.add("memory", yaml_quoted(node.memory));
  map.add_if("peer_limit", node.peer_limit);
  map.add_if("copy_engines", node.copy_engines);
  if (node.speed != 1) map.add("speed", node.speed);
  return map.text();
}

std::string link_text(const Topology& machine, const Link& link) {
  FlowMap map;
  map.add("a", machine.node(link.a).name);
  map.add("b", machine.node(link.b).name);
  map.add("kind", yaml_quoted(link.kind));
  if (link.count != 1) map.add("count", link.count);
  map.add("gbps", link.gbps);
  map.add_if("latency_us", link.latency_s * 1e6);
  map.add_if("measured_gbps", link.measured_gbps);
  if (link.duplex != Duplex::full) map.add("duplex", to_string(link.duplex));
  if (!link.medium.empty()) map.add("medium", yaml_quoted(link.medium));
  return map.text();
}

/// Where `profile` differs from `base`, which is what a reader begins with.
std::string profile_text(const Profile& profile, const Profile& base) {
  std::string text;
  const auto line = [&](std::string_view key, std::string_view value) {
    text += fmt::format("    {}: {}\n", key, value);
  };
  const auto micros = [&](std::string_view key, double value_s, double base_s) {
    if (value_s != base_s) line(key, fmt::format("{:.6g}", value_s * 1e6));
  };
  if (profile.title != base.title) line("title", yaml_quoted(profile.title));
  if (profile.uses_measured != base.uses_measured) {
    line("uses_measured", profile.uses_measured ? "true" : "false");
  }
  if (profile.models_memory != base.models_memory) {
    line("models_memory", profile.models_memory ? "true" : "false");
  }
  if (profile.reduction != base.reduction) line("reduction", name_of(profile.reduction));
  if (profile.gets_wait != base.gets_wait) line("gets_wait", profile.gets_wait ? "true" : "false");
  micros("call_overhead_us", profile.call_overhead_s, base.call_overhead_s);
  micros("local_overhead_us", profile.local_overhead_s, base.local_overhead_s);
  micros("reduce_overhead_us", profile.reduce_overhead_s, base.reduce_overhead_s);
  micros("staging_overhead_us", profile.staging_overhead_s, base.staging_overhead_s);
  std::string links;
  for (const auto& [kind, figures] : profile.links) {
    const auto known = base.links.find(kind);
    const LinkProfile before = known == base.links.end() ? LinkProfile{} : known->second;
    FlowMap map;
    if (figures.efficiency != before.efficiency) map.add("efficiency", figures.efficiency);
    if (figures.overhead_s != before.overhead_s) map.add("overhead_us", figures.overhead_s * 1e6);
    if (!map.empty()) links += fmt::format("      {}: {}\n", yaml_quoted(kind), map.text());
  }
  if (!links.empty()) text += "    links:\n" + links;
  return text;
}

/// Kinds that the built-in table has not, or has in another class.
std::string link_kinds_text(const Topology& machine) {
  std::map<std::string, LinkClass> kinds;
  for (const Link& link : machine.links) kinds.emplace(link.kind, link.link_class);
  std::string text;
  for (const auto& [kind, link_class] : kinds) {
    const auto& known = built_in_profiles().link_kinds;
    const auto found = known.find(kind);
    if (found != known.end() && found->second.link_class == link_class) continue;
    text += fmt::format("  {}: {{class: {}}}\n", yaml_quoted(kind), to_string(link_class));
  }
  return text;
}

std::string memories_text(const Topology& machine) {
  std::string text;
  for (const auto& [name, memory] : machine.memories) {
    FlowMap map;
    map.add("gbps", memory.gbps);
    map.add_if("reduce_gbps", memory.reduce_gbps);
    text += fmt::format("  {}: {}\n", yaml_quoted(name), map.text());
  }
  return text;
}

std::string profiles_text(const Topology& machine) {
  std::string text;
  for (const auto& [name, profile] : machine.profiles) {
    const auto& known = built_in_profiles().profiles;
    const auto base = known.find(name);
    const bool built_in = base != known.end();
    const std::string changes = profile_text(profile, built_in ? base->second : Profile{});
    if (changes.empty() && built_in) continue;
    text += fmt::format("  {}:{}\n{}", yaml_quoted(name), changes.empty() ? " {}" : "", changes);
  }
  return text;
}

}  // namespace

std::string print_topology(const Topology& machine) {
  CHECK(machine.hosts == 1);
  std::string text = "schema: espalier.topology/1\nname: " + yaml_quoted(machine.name) + "\n";
  if (!machine.title.empty()) text += "title: " + yaml_quoted(machine.title) + "\n";
  const auto section = [&](std::string_view name, const std::string& content) {
    if (!content.empty()) text += fmt::format("{}:\n{}", name, content);
  };
  std::string sources;
  for (const std::string& source : machine.sources) sources += "  - " + yaml_quoted(source) + "\n";
  section("sources", sources);
  text += fmt::format("peer_access: {}\n", name_of(machine.peer_access));
  if (machine.gpus_forward) text += "gpus_forward: true\n";
  section("link_kinds", link_kinds_text(machine));
  section("memories", memories_text(machine));
  std::string nodes;
  for (const Node& node : machine.nodes) nodes += "  - " + node_text(node) + "\n";
  section("nodes", nodes);
  std::string links;
  for (const Link& link : machine.links) links += "  - " + link_text(machine, link) + "\n";
  section("links", links);
  section("profiles", profiles_text(machine));
  return text;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "core/words.h"
#include "core/yaml.h"
#include "topologies/load.h"
#include "topologies/machine_file.h"
#include "topologies/profile_file.h"
#include "topologies/topology_checks.h"

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
    case ReductionMode::reading:
      return "reading";
  }
  CHECK(false);
}

/// A number where there is no more to say than that.
std::string exchange_text(const ExchangeRates& rates) {
  if (rates.unchanged_gbps == 0 && rates.passed_on_gbps == 0) {
    return fmt::format("{:.6g}", rates.gbps);
  }
  FlowMap map;
  map.add("fresh", rates.gbps);
  map.add_if("unchanged", rates.unchanged_gbps);
  map.add_if("passed_on", rates.passed_on_gbps);
  return map.text();
}

void add_exchange(FlowMap& map, const ExchangeRates& rates) {
  if (rates.gbps != 0) map.add("exchange_gbps", exchange_text(rates));
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
  add_exchange(map, node.exchange);
  if (!node.memory.empty()) map.add("memory", yaml_quoted(node.memory));
  map.add_if("peer_limit", node.peer_limit);
  map.add_if("copy_engines", node.copy_engines);
  if (node.combines) map.add("combines", "true");
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

/// Where `protocol` differs from `base`: the inside of a map.
std::string protocol_text(const Protocol& protocol, const Protocol& base) {
  constexpr double kKib = 1024;
  std::vector<std::string> entries;
  const auto figure = [&](std::string_view key, double value, double base_value, double unit) {
    if (value != base_value) entries.push_back(fmt::format("{}: {:.9g}", key, value / unit));
  };
  const auto by_model = [&](std::string_view key, const std::map<std::string, double>& values,
                            const std::map<std::string, double>& base_values, double unit) {
    if (values == base_values) return;
    std::vector<std::string> parts;
    for (const auto& [model, value] : values) {
      parts.push_back(fmt::format("{}: {:.9g}", yaml_quoted(model), value / unit));
    }
    entries.push_back(fmt::format("{}: {{{}}}", key, join(parts, ", ")));
  };
  if (protocol.title != base.title) entries.push_back("title: " + yaml_quoted(protocol.title));
  figure("wire", protocol.wire, base.wire, 1);
  figure("call_us", protocol.call_s, base.call_s, 1e-6);
  const auto hops = [&](std::string_view key, const std::map<LinkClass, double>& values,
                        const std::map<LinkClass, double>& base_values) {
    if (values == base_values) return;
    std::vector<std::string> parts;
    for (const auto& [link_class, hop_s] : values) {
      parts.push_back(fmt::format("{}: {:.9g}", to_string(link_class), hop_s * 1e6));
    }
    entries.push_back(fmt::format("{}: {{{}}}", key, join(parts, ", ")));
  };
  hops("hop_us", protocol.hop_s, base.hop_s);
  hops("hold_us", protocol.hold_s, base.hold_s);
  by_model("hop_more_us", protocol.hop_more_s, base.hop_more_s, 1e-6);
  figure("min_op_us", protocol.min_op_s, base.min_op_s, 1e-6);
  by_model("checked_gbps", protocol.checked_gbps, base.checked_gbps, 1);
  figure("slice_kib", protocol.slice_bytes, base.slice_bytes, kKib);
  figure("min_slice_kib", protocol.min_slice_bytes, base.min_slice_bytes, kKib);
  figure("slices_per_op", protocol.slices_per_op, base.slices_per_op, 1);
  figure("drift_ops", protocol.drift_ops, base.drift_ops, 1);
  figure("lockstep_kib", protocol.lockstep_bytes, base.lockstep_bytes, kKib);
  figure("step_kib", protocol.step_bytes, base.step_bytes, kKib);
  figure("loop_kib", protocol.loop_bytes, base.loop_bytes, kKib);
  figure("pass_kib", protocol.pass_bytes, base.pass_bytes, kKib);
  figure("streamed_parts", protocol.streamed_parts, base.streamed_parts, 1);
  figure("drain_gbps", protocol.drain_gbps, base.drain_gbps, 1);
  by_model("copy_gbps", protocol.copy_gbps, base.copy_gbps, 1);
  by_model("block_gbps", protocol.block_gbps, base.block_gbps, 1);
  by_model("gpu_gbps", protocol.gpu_gbps, base.gpu_gbps, 1);
  if (protocol.not_on != base.not_on) {
    std::vector<std::string> models;
    for (const std::string& model : protocol.not_on) models.push_back(yaml_quoted(model));
    entries.push_back(fmt::format("not_on: [{}]", join(models, ", ")));
  }
  if (protocol.over_host_links != base.over_host_links) {
    entries.push_back(protocol.over_host_links ? "over_host_links: true"
                                               : "over_host_links: false");
  }
  if (protocol.in_switch != base.in_switch) {
    entries.push_back(protocol.in_switch ? "in_switch: true" : "in_switch: false");
  }
  return join(entries, ", ");
}

std::string switch_ops_text(const SwitchOps& ops) {
  constexpr double kKib = 1024;
  FlowMap map;
  // All of them: a reader begins with those of the profile of that name.
  map.add("wire", ops.wire);
  map.add("call_us", ops.call_s * 1e6);
  map.add("slice_us", ops.slice_s * 1e6);
  std::vector<std::string> slices;
  for (const SwitchOps::Slices& cut : ops.slices) {
    FlowMap entry;
    entry.add_if("below_kib", cut.below_bytes / kKib);
    entry.add("kib", cut.bytes / kKib);
    entry.add_if("wire", cut.wire);
    entry.add_if("fill_us", cut.fill_s * 1e6);
    slices.push_back(entry.text());
  }
  map.add("slices", fmt::format("[{}]", join(slices, ", ")));
  return map.text();
}

/// What messages cost proxies, where that differs.
std::string messages_text(const Profile& profile, const Profile& base) {
  std::string text;
  if (profile.message_s != base.message_s) {
    text += fmt::format("    message_us: {:.6g}\n", profile.message_s * 1e6);
  }
  if (profile.message_more_s == base.message_more_s) return text;
  FlowMap map;
  for (const auto& [cpu, more_s] : profile.message_more_s) map.add(cpu, more_s * 1e6);
  return text + fmt::format("    message_more_us: {}\n", map.text());
}

/// Where they interpret files, what differs.
std::string interpreter_text(const Profile& profile, const Profile& base) {
  std::string text;
  if (profile.interprets != base.interprets) {
    text += fmt::format("    interprets: {}\n", profile.interprets ? "true" : "false");
  }
  if (profile.on_models == base.on_models) return text;
  FlowMap map;
  for (const auto& [model, stand_in] : profile.on_models) {
    map.add(yaml_quoted(model), yaml_quoted(stand_in));
  }
  return text + fmt::format("    on_models: {}\n", map.text());
}

std::string launch_text(const LaunchCosts& costs, const LaunchCosts& base) {
  const auto text_of = [](const LaunchCost& cost) {
    FlowMap map;
    if (cost.since > 0) map.add("since", yaml_quoted(version_text(cost.since)));
    map.add("call_us", cost.call_s * 1e6);
    map.add_if("block_us", cost.block_s * 1e6);
    return map.text();
  };
  FlowMap map;
  if (costs.per_gpu) map.add("per_gpu", text_of(*costs.per_gpu));
  std::vector<std::string> single;
  for (const LaunchCost& cost : costs.single) single.push_back(text_of(cost));
  if (!single.empty()) map.add("single", fmt::format("[{}]", join(single, ", ")));
  if (std::isfinite(costs.sharpness)) {
    map.add("sharpness", costs.sharpness);
  } else if (std::isfinite(base.sharpness)) {
    map.add("sharpness", std::string(kNoSharpness));
  }
  if (costs.graph_saves_s > 0) {
    map.add("graph", fmt::format("{{saves_us: {:.9g}}}", costs.graph_saves_s * 1e6));
  }
  return map.text();
}

std::string quoted_list(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(yaml_quoted(word));
  return fmt::format("[{}]", join(quoted, ", "));
}

std::string error_text(const ComparedError& row) {
  constexpr double kKib = 1024;
  FlowMap map;
  map.add("gpus", quoted_list(row.models));
  if (!row.collectives.empty()) map.add("collectives", quoted_list(row.collectives));
  if (!row.algorithms.empty()) map.add("algorithms", quoted_list(row.algorithms));
  if (!row.forced.empty()) map.add("forced", quoted_list(row.forced));
  if (!row.launches.empty()) {
    std::vector<std::string> names;
    for (const LaunchMode mode : row.launches) names.emplace_back(to_string(mode));
    map.add("launch", quoted_list(names));
  }
  if (row.min_ranks != kLeastComparedRanks) map.add("min_ranks", row.min_ranks);
  if (row.max_ranks != kMostComparedRanks) map.add("max_ranks", row.max_ranks);
  if (row.in_switch) map.add("in_switch", "true");
  if (!row.in_fabric) map.add("links", "all");
  map.add_if("above_kib", row.above_bytes / kKib);
  if (std::isfinite(row.up_to_bytes)) map.add("up_to_kib", row.up_to_bytes / kKib);
  map.add("percent", row.relative * 100);
  map.add("compared", yaml_quoted(row.compared));
  return map.text();
}

std::string errors_text(const std::vector<ComparedError>& errors) {
  std::string text = errors.empty() ? "" : "    errors:\n";
  for (const ComparedError& row : errors) text += fmt::format("      - {}\n", error_text(row));
  return text;
}

/// The protocols that `base` has otherwise, or not at all.
std::string protocols_text(const std::vector<Protocol>& all, const std::vector<Protocol>& base) {
  std::string text;
  for (const Protocol& protocol : all) {
    const auto known = std::ranges::find(base, protocol.name, &Protocol::name);
    const bool is_known = known != base.end();
    const std::string changes = protocol_text(protocol, is_known ? *known : Protocol{});
    if (is_known && changes.empty()) continue;
    text += fmt::format("      {}: {{{}}}\n", yaml_quoted(protocol.name), changes);
  }
  return text.empty() ? text : "    protocols:\n" + text;
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

void add_rates(FlowMap& map, const MemoryRates& rates) {
  map.add_if("gbps", rates.gbps);
  map.add_if("reduce_gbps", rates.reduce_gbps);
  add_exchange(map, rates.exchange);
}

std::string working_set_text(const WorkingSet& set) {
  FlowMap all;
  FlowMap one;
  add_rates(all, set.all);
  add_rates(one, set.one);
  FlowMap map;
  map.add("mib", set.bytes / kMebibyte);
  map.add("all", all.text());
  if (!one.empty()) map.add("one", one.text());
  return map.text();
}

std::string memories_text(const Topology& machine) {
  std::string text;
  for (const auto& [name, memory] : machine.memories) {
    FlowMap map;
    add_rates(map, memory);
    if (memory.working_sets.empty()) {
      text += fmt::format("  {}: {}\n", yaml_quoted(name), map.text());
      continue;
    }
    text += fmt::format("  {}:\n    gbps: {:.6g}\n", yaml_quoted(name), memory.gbps);
    if (memory.reduce_gbps != 0)
      text += fmt::format("    reduce_gbps: {:.6g}\n", memory.reduce_gbps);
    if (memory.exchange.gbps != 0) {
      text += fmt::format("    exchange_gbps: {}\n", exchange_text(memory.exchange));
    }
    text += "    working_sets:\n";
    for (const WorkingSet& set : memory.working_sets) {
      text += fmt::format("      - {}\n", working_set_text(set));
    }
  }
  return text;
}

std::string profiles_text(const Topology& machine) {
  std::string text;
  for (const auto& [name, profile] : machine.profiles) {
    const auto& known = built_in_profiles().profiles;
    const auto base = known.find(name);
    const bool built_in = base != known.end();
    // What has lost its protocols can't be told as changes.
    const bool is_bare = built_in && profile.protocols.empty() && !base->second.protocols.empty();
    const std::string changes =
        is_bare ? "    like: ideal\n" + print_profile(profile, known.at("ideal"))
                : print_profile(profile, built_in ? base->second : Profile{});
    if (changes.empty() && built_in) continue;
    text += fmt::format("  {}:{}\n{}", yaml_quoted(name), changes.empty() ? " {}" : "", changes);
  }
  return text;
}

/// The name as a file may have it: that of a path without its folders, "NAME-nodes=2".
std::string name_in_file(const std::string& name) {
  std::string valid = name.substr(name.rfind('/') + 1);
  for (char& c : valid) {
    if (kNotInNames.find(c) != std::string_view::npos) c = '-';
  }
  return valid.empty() ? "machine" : valid;
}

/// The host that a cluster repeats, with the nodes that its hosts share, which are on no host.
Topology first_host(const Topology& machine) {
  constexpr std::string_view kPrefix = "n0.";
  const auto without_prefix = [&](std::string& name) {
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  };
  Topology one = machine;
  one.hosts = 1;
  one.nodes.clear();
  one.links.clear();
  std::vector<NodeId> ids(machine.nodes.size(), -1);
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    if (machine.nodes[i].host > 0) continue;
    ids[i] = static_cast<NodeId>(one.nodes.size());
    without_prefix(one.nodes.emplace_back(machine.nodes[i]).name);
  }
  for (const Link& original : machine.links) {
    const NodeId a = ids[static_cast<std::size_t>(original.a)];
    const NodeId b = ids[static_cast<std::size_t>(original.b)];
    if (a < 0 || b < 0) continue;
    Link& link = one.links.emplace_back(original);
    link.a = a;
    link.b = b;
    without_prefix(link.medium);
  }
  return one;
}

/// Every node and link by its name.
std::vector<std::string> parts_of(const Topology& machine) {
  std::vector<std::string> parts;
  for (const Node& node : machine.nodes) parts.push_back(node_text(node));
  for (const Link& link : machine.links) parts.push_back(link_text(machine, link));
  return parts;
}

/// Throws Error{unsupported} where its hosts are not alike.
std::string print_cluster(const Topology& machine) {
  const Topology one = first_host(machine);
  std::vector<std::string> shared;
  for (const Node& node : one.nodes) {
    if (node.host < 0) shared.push_back(node.name);
  }
  const std::string text =
      print_topology(one) +
      fmt::format("cluster: {{nodes: {}, shared: [{}]}}\n", machine.hosts, join(shared, ", "));
  if (parts_of(parse_topology(text, machine.name)) == parts_of(machine)) return text;
  throw Error(
      ErrorKind::unsupported,
      fmt::format("the {} hosts of {} are not alike, and YAML lists the nodes and links of one",
                  machine.hosts, machine.name),
      "write one host, and repeat it with 'cluster' in the file");
}

std::string longer_text(const std::vector<StartUp::Longer>& longer) {
  constexpr double kKib = 1024;
  std::vector<std::string> texts;
  for (const StartUp::Longer& one : longer) {
    FlowMap map;
    map.add("above_kib", one.above_bytes / kKib);
    map.add("overhead_us", one.s * 1e6);
    texts.push_back(map.text());
  }
  return "[" + join(texts, ", ") + "]";
}

}  // namespace

std::string print_profile(const Profile& profile, const Profile& base) {
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
  if (profile.library != base.library) line("library", yaml_quoted(profile.library));
  if (profile.gets_wait != base.gets_wait) line("gets_wait", profile.gets_wait ? "true" : "false");
  micros("call_overhead_us", profile.call_overhead_s, base.call_overhead_s);
  micros("local_overhead_us", profile.local_overhead_s, base.local_overhead_s);
  micros("reduce_overhead_us", profile.reduce_overhead_s, base.reduce_overhead_s);
  micros("staging_overhead_us", profile.staging_overhead_s, base.staging_overhead_s);
  text += messages_text(profile, base);
  const auto count = [&](std::string_view key, int value, int base_value) {
    if (value != base_value) line(key, std::to_string(value));
  };
  count("blocks", profile.blocks, base.blocks);
  if (profile.splits_lanes != base.splits_lanes) {
    line("splits_lanes", profile.splits_lanes ? "true" : "false");
  }
  count("fifo_steps", profile.fifo_steps, base.fifo_steps);
  micros("dependence_us", profile.dependence_s, base.dependence_s);
  text += interpreter_text(profile, base);
  if (profile.launch != base.launch) {
    line("launch", launch_text(profile.launch, base.launch));
  }
  std::string links;
  for (const auto& [kind, figures] : profile.links) {
    const auto known = base.links.find(kind);
    const LinkProfile before = known == base.links.end() ? LinkProfile{} : known->second;
    FlowMap map;
    if (figures.efficiency != before.efficiency) map.add("efficiency", figures.efficiency);
    if (figures.overhead_s != before.overhead_s) map.add("overhead_us", figures.overhead_s * 1e6);
    if (figures.longer != before.longer) map.add("longer", longer_text(figures.longer));
    if (!map.empty()) links += fmt::format("      {}: {}\n", yaml_quoted(kind), map.text());
  }
  if (!links.empty()) text += "    links:\n" + links;
  text += protocols_text(profile.protocols, base.protocols);
  std::string switches;
  for (const auto& [model, ops] : profile.in_switch) {
    const auto known = base.in_switch.find(model);
    if (known != base.in_switch.end() && known->second == ops) continue;
    switches += fmt::format("      {}: {}\n", yaml_quoted(model), switch_ops_text(ops));
  }
  if (!switches.empty()) text += "    in_switch:\n" + switches;
  // A reader takes none from the base where anything is changed.
  if (!text.empty() || profile.errors != base.errors) text += errors_text(profile.errors);
  return text;
}

std::string print_topology(const Topology& machine) {
  if (machine.hosts != 1) return print_cluster(machine);
  std::string text =
      "schema: espalier.topology/1\nname: " + yaml_quoted(name_in_file(machine.name)) + "\n";
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

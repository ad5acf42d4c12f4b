// SPDX-License-Identifier: Apache-2.0
#include "topologies/topology_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/words.h"

namespace espalier {

namespace {

/// Calls `check(key, GB/s)` for what there is.
template <class Check>
void for_each_exchange(const ExchangeRates& rates, Check&& check) {
  if (rates == ExchangeRates{}) return;
  check("exchange_gbps", rates.gbps);
  if (rates.unchanged_gbps != 0) check("unchanged", rates.unchanged_gbps);
  if (rates.passed_on_gbps != 0) check("passed_on", rates.passed_on_gbps);
}

/// Goes over a machine once and collects what is wrong.
class Checker {
 public:
  Checker(const Topology& topology, const Locate& locate) : topology_(topology), locate_(locate) {}

  std::vector<Diagnostic> run(bool with_profiles) {
    check_machine();
    for (std::size_t i = 0; i < topology_.nodes.size(); ++i) check_node(i);
    bool ends_exist = true;
    for (std::size_t i = 0; i < topology_.links.size(); ++i) ends_exist &= check_link(i);
    if (ends_exist) check_parallel_links();
    check_total();
    check_media();
    if (with_profiles) {
      for (const auto& [name, profile] : topology_.profiles) check_profile(name, profile);
    }
    for (const auto& [name, memory] : topology_.memories) check_memory(name, memory);
    return problems_;
  }

 private:
  void add(Part part, std::size_t index, std::string message, std::string suggestion = {}) {
    problems_.push_back({{}, std::move(message), std::move(suggestion), locate_(part, index)});
  }

  /// `key` names the value in messages; its owner is named only if it is wrong.
  void check_value(Part part, std::size_t index, const Range& range, const char* key,
                   double value) {
    if (range.contains(value)) return;
    const std::string what = fmt::format("'{}' of {}", key, part_name(part, index));
    add(part, index, outside(range, what, value));
  }

  std::string part_name(Part part, std::size_t index) const {
    if (part == Part::node) return topology_.nodes[index].name;
    const Link& link = topology_.links[index];
    return "link " + node_name(link.a) + "-" + node_name(link.b);
  }

  void check_machine() {
    if (topology_.nodes.size() > kMaxNodes) {
      add(Part::machine, 0, fmt::format("more than {} nodes", kMaxNodes));
    }
    if (topology_.links.size() > kMaxLinks) {
      add(Part::machine, 0, fmt::format("more than {} links", kMaxLinks));
    }
    if (topology_.gpus().empty()) {
      add(Part::machine, 0, "the machine has no GPU", "add nodes of kind 'gpu'");
    }
  }

  void check_node(std::size_t index) {
    const Node& node = topology_.nodes[index];
    if (node.name.empty()) {
      add(Part::node, index, fmt::format("node number {} has no name", index));
    } else if (node.name.find('>') != std::string::npos) {
      add(Part::node, index, "the name " + quote(node.name) + " contains '>'",
          "'>' separates the nodes of a route");
    } else if (!node_names_.insert(node.name).second) {
      add(Part::node, index, "the name " + quote(node.name) + " is used by two nodes");
    }
    if (node.host < -1 || node.host >= topology_.hosts) {
      add(Part::node, index,
          fmt::format("node {} is in host {}, but the machine has {}", node.name, node.host,
                      topology_.hosts));
    }
    const auto check = [&](const Range& range, const char* key, double value) {
      check_value(Part::node, index, range, key, value);
    };
    if (node.memory_gbps != 0) check(kGbps, "memory_gbps", node.memory_gbps);
    if (node.reduce_gbps != 0) check(kGbps, "reduce_gbps", node.reduce_gbps);
    if (node.access_gbps != 0) check(kGbps, "access_gbps", node.access_gbps);
    for_each_exchange(node.exchange,
                      [&](const char* key, double gbps) { check(kGbps, key, gbps); });
    if (!node.memory.empty() && !topology_.memories.contains(node.memory)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : topology_.memories) known.push_back(name);
      add(Part::node, index,
          fmt::format("{} uses memory {}, which does not exist", node.name, quote(node.memory)),
          known.empty() ? "describe it under 'memories'" : did_you_mean(node.memory, known));
    }
    check(kLimit, "peer_limit", node.peer_limit);
    check(kLimit, "copy_engines", node.copy_engines);
    check(kSpeed, "speed", node.speed);
    if (node.combines && !is_switch(node)) {
      add(Part::node, index, fmt::format("{} combines, but is no switch", node.name),
          "nodes of kind nvswitch and fabric can");
    }
  }

  bool is_node(NodeId id) const {
    return id >= 0 && static_cast<std::size_t>(id) < topology_.nodes.size();
  }

  const std::string& node_name(NodeId id) const { return topology_.node(id).name; }

  /// Whether both ends exist.
  bool check_link(std::size_t index) {
    const Link& link = topology_.links[index];
    if (!is_node(link.a) || !is_node(link.b)) {
      add(Part::link, index,
          fmt::format("link number {} ends at a node that does not exist", index));
      return false;
    }
    const auto check = [&](const Range& range, const char* key, double value) {
      check_value(Part::link, index, range, key, value);
    };
    check(kCount, "count", link.count);
    check(kGbps, "gbps", link.gbps);
    check(kSeconds, "latency_s", link.latency_s);
    const double total_gbps = link.gbps * link.count;
    if (kGbps.contains(link.gbps) && kCount.contains(link.count) && total_gbps > kGbps.high) {
      add(Part::link, index,
          fmt::format("{} has {} x {} GB/s, but a bundle may have at most {:.0f} GB/s",
                      part_name(Part::link, index), link.count, link.gbps, kGbps.high),
          "lower 'count' or 'gbps'");
    }
    if (link.measured_gbps != 0) check(kGbps, "measured_gbps", link.measured_gbps);
    if (link.measured_gbps > total_gbps) {
      add(Part::link, index,
          fmt::format("'measured_gbps' of {} is {}, but its links carry at most {} x {} GB/s",
                      part_name(Part::link, index), link.measured_gbps, link.count, link.gbps),
          "lower 'measured_gbps' or raise 'gbps'");
    }
    check_link_structure(index);
    return true;
  }

  void check_link_structure(std::size_t index) {
    const Link& link = topology_.links[index];
    if (link.a == link.b) {
      add(Part::link, index, "a link from " + node_name(link.a) + " to itself",
          "a link must join two different nodes");
    }
    if (link.duplex == Duplex::shared && link.medium.empty()) {
      add(Part::link, index, part_name(Part::link, index) + " is shared, but has no medium",
          "name a 'medium'; all links of a medium share its bandwidth");
    }
    if (link.duplex != Duplex::shared && !link.medium.empty()) {
      add(Part::link, index, part_name(Part::link, index) + " has a medium, but is not shared",
          "add 'duplex: shared'");
    }
  }

  /// Each link may be fine while all of them together are too much.
  void check_total() {
    double total_gbps = 0;
    for (const Link& link : topology_.links) {
      const double gbps = link.gbps * link.count;
      if (!kGbps.contains(gbps)) return;  // said about the link
      total_gbps += gbps;
    }
    if (total_gbps <= kMaxTotalGbps) return;
    add(Part::machine, 0,
        fmt::format("all links together have {:.6g} GB/s, but may have at most {:.0e}", total_gbps,
                    kMaxTotalGbps));
  }

  /// Of two bundles between the same two nodes, routes would use only one.
  void check_parallel_links() {
    const auto& links = topology_.links;
    std::vector<std::size_t> order(links.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t i) {
      return std::pair(std::min(links[i].a, links[i].b), std::max(links[i].a, links[i].b));
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
      const Link& link = links[order[i]];
      if (link.a == link.b || key(order[i]) != key(order[i - 1])) continue;
      const Link& other = links[order[i - 1]];
      const bool alike = link.kind == other.kind;
      add(Part::link, order[i],
          alike ? fmt::format("{} and {} are joined by two links of kind '{}'", node_name(link.a),
                              node_name(link.b), link.kind)
                : fmt::format("{} and {} are joined by links of kinds '{}' and '{}'",
                              node_name(link.a), node_name(link.b), other.kind, link.kind),
          alike ? "write one link with 'count'"
                : "two nodes can have only one link: keep the faster one, or put a switch into the "
                  "other");
    }
  }

  void check_media() {
    std::unordered_map<std::string, std::size_t> first_link;
    for (std::size_t i = 0; i < topology_.links.size(); ++i) {
      const Link& link = topology_.links[i];
      if (link.medium.empty()) continue;
      const auto [found, is_new] = first_link.emplace(link.medium, i);
      const Link& first = topology_.links[found->second];
      if (is_new || link.gbps * link.count == first.gbps * first.count) continue;
      add(Part::link, i,
          fmt::format("medium {} has {} GB/s here and {} GB/s elsewhere", quote(link.medium),
                      link.gbps * link.count, first.gbps * first.count),
          "all links of a medium must have the same bandwidth, which is that of the medium");
    }
  }

  void check_profile(const std::string& name, const Profile& profile) {
    // Messages are put together only where something is wrong: nearly all machines are right.
    const auto check_of = [&](const Range& range, const char* key, std::string_view of,
                              double value) {
      if (range.contains(value)) return;
      const std::string owner = of.empty() ? "" : fmt::format(" of {}", of);
      const std::string what = fmt::format("'{}'{} of profile {}", key, owner, quote(name));
      add(Part::machine, 0, outside(range, what, value));
    };
    const auto check = [&](const Range& range, const char* key, double value) {
      check_of(range, key, {}, value);
    };
    check(kSeconds, "call_overhead_s", profile.call_overhead_s);
    check(kSeconds, "local_overhead_s", profile.local_overhead_s);
    check(kSeconds, "reduce_overhead_s", profile.reduce_overhead_s);
    check(kSeconds, "staging_overhead_s", profile.staging_overhead_s);
    for (const auto& [kind, figures] : profile.links) {
      check_of(kEfficiency, "efficiency", kind, figures.efficiency);
      check_of(kSeconds, "overhead_s", kind, figures.overhead_s);
      check_longer(name, kind, figures);
    }
    check(kSeconds, "message_s", profile.message_s);
    for (const auto& [unused, more_s] : profile.message_more_s) {
      check(kSeconds, "message_more_s", more_s);
    }
    check(kSeconds, "dependence_s", profile.dependence_s);
    for (const auto& [model, ops] : profile.in_switch) {
      const std::string of = "ops in switches of " + model;
      check_of(kWire, "wire", of, ops.wire);
      check_of(kSeconds, "call_s", of, ops.call_s);
      check_of(kSeconds, "slice_s", of, ops.slice_s);
    }
    check(kLimit, "blocks", profile.blocks);
    check(kLimit, "fifo_steps", profile.fifo_steps);
    for (const Protocol& protocol : profile.protocols) {
      const auto check_part = [&](const Range& range, const char* key, double value) {
        check_of(range, key, protocol.name, value);
      };
      const auto check_all = [&](const Range& range, const char* key, const auto& values) {
        for (const auto& [unused, value] : values) check_part(range, key, value);
      };
      check_part(kWire, "wire", protocol.wire);
      check_part(kSeconds, "call_s", protocol.call_s);
      check_part(kSeconds, "min_op_s", protocol.min_op_s);
      check_all(kGbps, "checked_gbps", protocol.checked_gbps);
      check_all(kSeconds, "hop_more_s", protocol.hop_more_s);
      check_part(kCount, "slices_per_op", protocol.slices_per_op);
      check_part(kCount, "streamed_parts", protocol.streamed_parts);
      check_all(kGbps, "copy_gbps", protocol.copy_gbps);
      check_all(kSeconds, "hold_s", protocol.hold_s);
      check_all(kSeconds, "hop_s", protocol.hop_s);
      check_all(kGbps, "block_gbps", protocol.block_gbps);
      check_all(kGbps, "gpu_gbps", protocol.gpu_gbps);
    }
  }

  void check_longer(const std::string& profile, const std::string& kind,
                    const LinkProfile& figures) {
    StartUp::Longer before{0, figures.overhead_s};
    for (const StartUp::Longer& one : figures.longer) {
      if (!kSeconds.contains(one.s) || one.above_bytes <= before.above_bytes || one.s < before.s) {
        add(Part::machine, 0,
            fmt::format("start-ups of longer messages over {} in profile {} must come in order of "
                        "lengths, and none may be less than that of shorter ones",
                        quote(kind), quote(profile)));
        return;
      }
      before = one;
    }
  }

  void check_memory(const std::string& name, const SharedMemory& memory) {
    const auto check = [&](const Range& range, const char* key, double value) {
      std::string message =
          outside(range, fmt::format("'{}' of memory {}", key, quote(name)), value);
      if (!message.empty()) add(Part::machine, 0, std::move(message));
    };
    const auto check_rates = [&](const MemoryRates& rates, bool has_all) {
      if (has_all || rates.gbps != 0) check(kGbps, "gbps", rates.gbps);
      if (rates.reduce_gbps != 0) check(kGbps, "reduce_gbps", rates.reduce_gbps);
      for_each_exchange(rates.exchange,
                        [&](const char* key, double gbps) { check(kGbps, key, gbps); });
    };
    check_rates(memory, true);
    double bytes = 0;
    for (const WorkingSet& set : memory.working_sets) {
      check(kMebibytes, "mib", set.bytes / kMebibyte);
      check_rates(set.all, true);
      check_rates(set.one, false);
      if (set.bytes <= bytes) {
        add(Part::machine, 0,
            fmt::format("the working sets of memory {} are not in order: {:g} MiB after {:g}",
                        quote(name), set.bytes / kMebibyte, bytes / kMebibyte),
            "write the smaller ones first");
      }
      bytes = set.bytes;
    }
  }

  const Topology& topology_;
  const Locate& locate_;
  std::vector<Diagnostic> problems_;
  std::unordered_set<std::string_view> node_names_;
};

Location nowhere(Part, std::size_t) { return {}; }

}  // namespace

std::string outside(const Range& range, const std::string& what, double value) {
  if (range.contains(value)) return {};
  return fmt::format("{} is {}, but must be {}", what, value, range.wish);
}

std::vector<Diagnostic> check_topology(const Topology& topology, const Locate& locate) {
  return Checker(topology, locate).run(/*with_profiles=*/true);
}

std::vector<Diagnostic> check_topology(const Topology& topology) {
  return check_topology(topology, nowhere);
}

std::vector<Diagnostic> check_without_profiles(const Topology& topology) {
  return Checker(topology, nowhere).run(/*with_profiles=*/false);
}

}  // namespace espalier

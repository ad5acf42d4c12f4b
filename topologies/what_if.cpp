// SPDX-License-Identifier: Apache-2.0
#include "topologies/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/units.h"
#include "core/words.h"
#include "topologies/name_pattern.h"
#include "topologies/synonyms.h"
#include "topologies/topology_checks.h"

namespace espalier {

namespace {

constexpr std::string_view kWithout = "without";
constexpr std::string_view kFirstHost = "n0.";
constexpr double kMicro = 1e-6;

/// "x2" or "40".
struct NewValue {
  bool is_factor = false;
  double number = 0;

  double of(double old) const { return is_factor ? old * number : number; }
};

std::optional<NewValue> parse_value(std::string_view text) {
  NewValue value;
  value.is_factor = text.starts_with('x');
  const auto number = parse_number(value.is_factor ? text.substr(1) : text);
  if (!number || (value.is_factor && *number <= 0)) return std::nullopt;
  value.number = *number;
  return value;
}

/// A figure that can be changed: how to read it, and how to set it, with all that depends on it.
template <class Part>
struct Figure {
  const char* name;
  Range range;
  double (*get)(const Part& part);
  void (*set)(Part& part, double value);
  bool is_whole = false;
  bool zero_is_value = false;  ///< else 0 says that the figure is not known, or no limit
  bool of_gpus = false;        ///< and not of CPUs
  bool of_switches = false;    ///< and of nothing else
};

/// What was measured on a link keeps its part of theory.
void scale_measured(Link& link, double factor) {
  link.measured_gbps *= factor;
  link.measured_factor *= factor;
}

const std::array kLinkFigures = {
    Figure<Link>{"gbps", kGbps, [](const Link& link) { return link.gbps; },
                 [](Link& link, double value) {
                   scale_measured(link, value / link.gbps);
                   link.gbps = value;
                 }},
    Figure<Link>{.name = "latency_us",
                 .range = kMicroseconds,
                 .get = [](const Link& link) { return link.latency_s / kMicro; },
                 .set = [](Link& link, double value) { link.latency_s = value * kMicro; },
                 .zero_is_value = true},
    Figure<Link>{.name = "count",
                 .range = kCount,
                 .get = [](const Link& link) { return double(link.count); },
                 .set =
                     [](Link& link, double value) {
                       scale_measured(link, value / link.count);
                       link.count = static_cast<int>(value);
                     },
                 .is_whole = true},
};

const std::array kNodeFigures = {
    Figure<Node>{"speed", kSpeed, [](const Node& node) { return node.speed; },
                 [](Node& node, double value) {
                   const double factor = value / node.speed;
                   node.speed = value;
                   node.memory_gbps *= factor;
                   node.reduce_gbps *= factor;
                   node.access_gbps *= factor;
                 }},
    Figure<Node>{"memory_gbps", kGbps, [](const Node& node) { return node.memory_gbps; },
                 [](Node& node, double value) { node.memory_gbps = value; }},
    Figure<Node>{"reduce_gbps", kGbps, [](const Node& node) { return node.reduce_gbps; },
                 [](Node& node, double value) { node.reduce_gbps = value; }},
    Figure<Node>{"access_gbps", kGbps, [](const Node& node) { return node.access_gbps; },
                 [](Node& node, double value) { node.access_gbps = value; }},
    Figure<Node>{.name = "peer_limit",
                 .range = kLimit,
                 .get = [](const Node& node) { return double(node.peer_limit); },
                 .set = [](Node& node, double value) { node.peer_limit = static_cast<int>(value); },
                 .is_whole = true,
                 .of_gpus = true},
    Figure<Node>{
        .name = "copy_engines",
        .range = kLimit,
        .get = [](const Node& node) { return double(node.copy_engines); },
        .set = [](Node& node, double value) { node.copy_engines = static_cast<int>(value); },
        .is_whole = true,
        .of_gpus = true},
    Figure<Node>{.name = "combines",
                 .range = kYesOrNo,
                 .get = [](const Node& node) { return double(node.combines); },
                 .set = [](Node& node, double value) { node.combines = value != 0; },
                 .is_whole = true,
                 .zero_is_value = true,
                 .of_switches = true},
};

template <class Figures>
auto find_figure(const Figures& figures, std::string_view name) {
  const auto found = std::ranges::find(figures, name, &Figures::value_type::name);
  return found == figures.end() ? nullptr : &*found;
}

class Changer {
 public:
  Changer(Topology& machine, DiagnosticList& problems) : machine_(machine), problems_(problems) {
    for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
      const Node& node = machine.nodes[i];
      const auto id = static_cast<NodeId>(i);
      nodes_[node.name].push_back(id);
      if (machine.hosts == 1 || node.host < 0) continue;
      const std::string prefix = fmt::format("n{}.", node.host);
      if (node.name.starts_with(prefix)) nodes_[node.name.substr(prefix.size())].push_back(id);
    }
  }

  void apply(const MachineChange& change) {
    const std::size_t dot = change.key.rfind('.');
    if (dot == std::string::npos) {
      const std::vector<std::size_t> links = find_links(change.value);
      if (is_new(std::string(kWithout), links, change)) lost_.insert(links.begin(), links.end());
      return;
    }
    const std::string target = change.key.substr(0, dot);
    const std::string figure = change.key.substr(dot + 1);
    const auto value = parse_value(change.value);
    if (!value) {
      problem(fmt::format("{} can't be {}", printable(change.key), quote(change.value)),
              "a number, or a factor such as x2");
    } else if (const auto* of_links = find_figure(kLinkFigures, figure)) {
      const std::vector<std::size_t> links = find_links(target);
      if (!is_new(figure, links, change)) return;
      changed_links_.emplace_back(change, links);
      for (const std::size_t link : links) {
        if (!set(*of_links, machine_.link(link), *value, change)) return;
        if (!measured_is_known(machine_.link(link), change)) return;
      }
    } else if (const auto* of_nodes = find_figure(kNodeFigures, figure)) {
      const std::vector<std::size_t> nodes = find_nodes(target);
      if (!is_new(figure, nodes, change)) return;
      for (const std::size_t node : nodes) {
        if (!has(machine_.node(node), *of_nodes, change)) return;
        if (!set(*of_nodes, machine_.node(node), *value, change)) return;
      }
    } else {
      std::vector<std::string> known;
      for (const auto& one : kLinkFigures) known.push_back(one.name);
      for (const auto& one : kNodeFigures) known.push_back(one.name);
      problem(fmt::format("{}: {} is no figure of nodes or links", printable(to_string(change)),
                          quote(figure)),
              did_you_mean(figure, known, figure_synonyms()));
    }
  }

  /// A change that nothing is left of is a mistake.
  void check_lost_links() {
    for (const auto& [change, links] : changed_links_) {
      if (!links.empty() &&
          std::ranges::all_of(links, [&](std::size_t link) { return lost_.contains(link); })) {
        problem(
            fmt::format("{}: all of these links have been removed", printable(to_string(change))),
            "leave out this change, or the one that removes them");
      }
    }
  }

  void remove_lost_links() {
    std::vector<Link> kept;
    for (std::size_t i = 0; i < machine_.links.size(); ++i) {
      if (!lost_.contains(i)) kept.push_back(std::move(machine_.links[i]));
    }
    machine_.links = std::move(kept);
  }

 private:
  void problem(std::string message, std::string help) {
    problems_.add({}, std::move(message), std::move(help));
  }

  /// Whether no change before this one is of the same figure of the same links or nodes, however
  /// they were named: gpu0-gpu3 is gpu3-gpu0.
  bool is_new(const std::string& figure, std::vector<std::size_t> parts,
              const MachineChange& change) {
    if (parts.empty()) return true;  // has been said
    std::ranges::sort(parts);
    const auto [earlier, is_new] = seen_.try_emplace({figure, std::move(parts)}, change);
    if (!is_new) {
      problem(
          fmt::format("{} and {} {}", printable(to_string(earlier->second)),
                      printable(to_string(change)),
                      figure == kWithout ? "take away the same links" : "change the same figure"),
          "");
    }
    return is_new;
  }

  /// Whether a node is one that has such a figure.
  bool has(const Node& node, const Figure<Node>& figure, const MachineChange& change) {
    const bool is_cpu = node.kind == NodeKind::cpu;
    const bool computes = node.kind == NodeKind::gpu || (is_cpu && !figure.of_gpus);
    if (figure.of_switches ? is_switch(node) : computes) return !is_replaced(node, figure, change);
    const char* lack = figure.of_switches ? "not an NVSwitch or a switch of the network"
                       : figure.of_gpus   ? "not a GPU"
                                          : "neither a GPU nor a CPU";
    problem(fmt::format("{}: {} is {}, and has no {}", printable(to_string(change)),
                        printable(node.name), lack, figure.name),
            "links have gbps, latency_us and count");
    return false;
  }

  /// Whether working sets of the node's memory have figures in place of this one: with a change of
  /// it alone, small messages would be as before.
  bool is_replaced(const Node& node, const Figure<Node>& figure, const MachineChange& change) {
    const auto memory = machine_.memories.find(node.memory);
    const std::string_view name = figure.name;
    const bool has_sets = memory != machine_.memories.end() && !memory->second.working_sets.empty();
    if (!has_sets || (name != "speed" && name != "access_gbps" && name != "reduce_gbps")) {
      return false;
    }
    problem(fmt::format("{}: the working sets of memory {} have figures in place of {}'s",
                        printable(to_string(change)), quote(memory->first), printable(node.name)),
            "take working_sets out of a copy of the file");
    return true;
  }

  /// What was measured on a link must stay a figure, too.
  bool measured_is_known(const Link& link, const MachineChange& change) {
    if (link.measured_gbps == 0 || kGbps.contains(link.measured_gbps)) return true;
    problem(fmt::format("{} changes the measured bandwidth to {:g} GB/s, but it must be {}",
                        printable(to_string(change)), link.measured_gbps, kGbps.wish),
            "");
    return false;
  }

  /// Whether all went well; one link or node of many is enough to say what is wrong.
  template <class Part>
  bool set(const Figure<Part>& figure, Part& part, const NewValue& value,
           const MachineChange& change) {
    const double old = figure.get(part);
    if (value.is_factor && old == 0 && !figure.zero_is_value) {
      problem(fmt::format("{}: the machine gives no {} to multiply", printable(to_string(change)),
                          figure.name),
              fmt::format("write its value: {}=V", printable(change.key)));
      return false;
    }
    const double wanted = value.of(old);
    if (!figure.range.contains(wanted) || (figure.is_whole && std::trunc(wanted) != wanted)) {
      problem(fmt::format("{} changes {} to {}, but it must be {}{}", printable(to_string(change)),
                          figure.name, wanted, figure.is_whole ? "a whole number, " : "",
                          figure.range.wish),
              "");
      return false;
    }
    figure.set(part, wanted);
    part.what_if += fmt::format("{}{}={}", part.what_if.empty() ? "" : ",", figure.name,
                                printable(change.value));
    return true;
  }

  /// The names a pattern stands for; empty when it is wrong, or for more names than there are
  /// nodes.
  std::vector<std::string> expanded(std::string_view pattern) const {
    std::string ignored;
    return expand_names(pattern, machine_.nodes.size(), ignored)
        .value_or(std::vector<std::string>{});
  }

  /// The nodes that a name or a pattern means; none when it means nothing.
  std::vector<NodeId> named(std::string_view pattern) const {
    // The only host may be named, although its nodes are not called after it.
    if (machine_.hosts == 1 && pattern.starts_with(kFirstHost)) {
      pattern.remove_prefix(kFirstHost.size());
    }
    // Host and node are patterns of their own: a name in one has no '.'.
    const std::size_t dot = pattern.find('.');
    std::vector<std::string> prefixes = {""};
    if (dot != std::string_view::npos) {
      prefixes = expanded(pattern.substr(0, dot));
      for (std::string& prefix : prefixes) prefix += '.';
      pattern.remove_prefix(dot + 1);
    }
    const std::vector<std::string> names = expanded(pattern);
    if (prefixes.size() * names.size() > machine_.nodes.size()) return {};
    std::vector<NodeId> ids;
    for (const std::string& prefix : prefixes) {
      for (const std::string& name : names) {
        const auto found = nodes_.find(prefix + name);
        if (found == nodes_.end()) return {};
        ids.insert(ids.end(), found->second.begin(), found->second.end());
      }
    }
    return ids;
  }

  std::vector<std::size_t> find_nodes(const std::string& target) {
    std::vector<std::size_t> found;
    for (const NodeId id : named(target)) found.push_back(static_cast<std::size_t>(id));
    if (!found.empty()) return found;
    std::set<std::string> known;
    for (std::size_t i = 0; i < machine_.nodes.size(); ++i) {
      const Node& node = machine_.nodes[i];
      if (!node.model.empty()) known.insert(node.model);
      if (node.model == target || to_string(node.kind) == target) found.push_back(i);
    }
    if (found.empty()) {
      for (const auto& [name, ids] : nodes_) known.insert(name);
      problem(fmt::format("{} has no node or model {}", machine_.name, quote(target)),
              did_you_mean(target, {known.begin(), known.end()}));
    }
    return found;
  }

  /// Links of a kind, or between two nodes, whichever way round.
  std::vector<std::size_t> find_links(const std::string& target) {
    std::vector<std::size_t> found;
    const auto take = [&](const std::function<bool(const Link&)>& is_meant) {
      for (std::size_t i = 0; i < machine_.links.size(); ++i) {
        if (is_meant(machine_.links[i])) found.push_back(i);
      }
    };
    take([&](const Link& link) { return link.kind == target; });
    if (!found.empty()) return found;
    // Names may hold a '-', and patterns hold ranges: whatever split gives two names is meant.
    for (std::size_t at = target.find('-'); at != std::string::npos;
         at = target.find('-', at + 1)) {
      const auto a = named(std::string_view(target).substr(0, at));
      const auto b = named(std::string_view(target).substr(at + 1));
      if (a.empty() || b.empty()) continue;
      const std::unordered_set<NodeId> ends_a(a.begin(), a.end());
      const std::unordered_set<NodeId> ends_b(b.begin(), b.end());
      take([&](const Link& link) {
        return (ends_a.contains(link.a) && ends_b.contains(link.b)) ||
               (ends_a.contains(link.b) && ends_b.contains(link.a));
      });
      if (found.empty()) {
        problem(fmt::format("{} has no link {}", machine_.name, quote(target)),
                neighbours(a.front(), target.substr(at + 1)));
      }
      return found;
    }
    std::set<std::string> kinds;
    for (const Link& link : machine_.links) kinds.insert(link.kind);
    const std::string kind =
        did_you_mean(target, {kinds.begin(), kinds.end()}, link_kind_synonyms());
    problem(fmt::format("{} has no links {}", machine_.name, quote(target)),
            kind.ends_with('?') ? kind : kind + "; or two nodes, A-B");
    return found;
  }

  /// "for the other end of gpu0: one of: gpu1, gpu2"
  std::string neighbours(NodeId node, const std::string& wanted) const {
    const auto name = [&](NodeId id) { return machine_.node(id).name; };
    std::set<std::string> names;
    for (const Link& link : machine_.links) {
      if (link.a == node) names.insert(name(link.b));
      if (link.b == node) names.insert(name(link.a));
    }
    if (names.empty()) return name(node) + " has no links";
    return fmt::format("the other end of {} can be: {}", name(node),
                       did_you_mean(wanted, {names.begin(), names.end()}));
  }

  Topology& machine_;
  DiagnosticList& problems_;
  std::unordered_map<std::string, std::vector<NodeId>> nodes_;  ///< by name, with and without host
  std::unordered_set<std::size_t> lost_;
  std::vector<std::pair<MachineChange, std::vector<std::size_t>>> changed_links_;
  /// By figure, and the links or nodes it was changed of.
  std::map<std::pair<std::string, std::vector<std::size_t>>, MachineChange> seen_;
};

}  // namespace

bool is_change_key(std::string_view key) {
  return key == kWithout || key.find('.') != std::string_view::npos;
}

std::string change_subject(const MachineChange& change) {
  return change.key == kWithout ? to_string(change) : change.key;
}

std::string to_string(const MachineChange& change) { return change.key + "=" + change.value; }

void change_machine(Topology& machine, const std::vector<MachineChange>& changes,
                    DiagnosticList& problems) {
  if (changes.empty()) return;
  const std::size_t problems_before = problems.all().size();
  Changer changer(machine, problems);
  for (const MachineChange& change : changes) changer.apply(change);
  changer.check_lost_links();
  if (problems.all().size() > problems_before) return;
  changer.remove_lost_links();
  for (const Diagnostic& problem : check_without_profiles(machine)) problems.add(problem);
}

}  // namespace espalier

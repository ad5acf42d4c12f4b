// SPDX-License-Identifier: Apache-2.0
#include "run/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/interruption.h"
#include "core/words.h"
#include "ir/print.h"
#include "run/switches.h"
#include "run/transfer_key.h"

namespace espalier {
namespace {

/// R10, way by way.
class RouteChecker {
 public:
  RouteChecker(const Program& program, const Target& target)
      : program_(program), target_(target), router_(*target.router), placement_(target.placement) {}

  std::vector<Diagnostic> check(const Ways& ways) {
    if (!find_nodes() || !find_vias()) return std::move(problems_);
    std::size_t turn = 0;
    for (const Ways::Way& way : ways.transfers) {
      check_interruption_at(turn++);
      if (!has_route(way.from, way.to, way.via)) {
        missing_.try_emplace(transfer_key(way.from, way.to, way.via), Missing{way});
      }
    }
    if (!missing_.empty()) count_missing(ways.groups);
    const auto lacking = std::ranges::find_if(
        ways.in_switch, [&](OpId id) { return !switch_of(program_, program_.ops[id], target_); });
    if (lacking != ways.in_switch.end()) count_without_switch(*lacking);
    report_missing();
    report_switches();
    report_peer_limits();
    return std::move(problems_);
  }

 private:
  /// The transfers by a way for which there is no route.
  struct Missing {
    Ways::Way way;
    std::int64_t count = 0;  ///< of operands that use it
  };

  const Node& node(NodeId id) const { return router_.topology().node(id); }

  void problem(std::string message, std::string suggestion = {}, int line = 0) {
    problems_.push_back({"R10", std::move(message), std::move(suggestion), {{}, line, 0}});
  }

  /// The machine's node of every place.
  bool find_nodes() {
    const auto missing = [&](const char* what, int wanted, std::size_t there,
                             const char* suggestion = "") {
      if (static_cast<std::size_t>(wanted) <= there) return;
      problem(fmt::format("the program needs {} {}, but the placement on {} has {}", wanted, what,
                          router_.topology().name, there),
              suggestion);
    };
    missing("ranks", program_.ranks(), placement_.ranks.size());
    missing("host memories", program_.hosts, placement_.hosts.size());
    missing("relays", program_.relays, placement_.relays.size(), "name idle GPUs with --relay");
    if (!problems_.empty()) return false;
    nodes_ = nodes_of_places(program_, placement_);
    return true;
  }

  /// The line of the first op that goes that way.
  int line_of_via(int via) const {
    const auto first = std::ranges::find(program_.ops, via, &Op::via);
    const auto id = static_cast<std::size_t>(first - program_.ops.begin());
    return id < program_.lines.size() ? program_.lines[id] : 0;
  }

  bool find_vias() {
    for (const std::string& path : program_.vias) {
      const int line = line_of_via(static_cast<int>(vias_.size()));
      std::vector<NodeId>& stops = vias_.emplace_back();
      for (const std::string& name : path_names(path)) {
        if (const auto found = router_.topology().find(name)) {
          stops.push_back(*found);
          // Data rests on a GPU that does not forward, and bounds count those that take part.
          if (node(*found).kind == NodeKind::gpu && !router_.topology().gpus_forward &&
              std::ranges::count(nodes_, *found) == 0) {
            problem(fmt::format("the program routes via '{}', which is a GPU but not one of its "
                                "ranks or relays",
                                name),
                    "name idle GPUs with --relay", line);
          }
          continue;
        }
        std::vector<std::string> names;
        for (const Node& one : router_.topology().nodes) names.push_back(one.name);
        problem(fmt::format("the program routes via '{}', which is not a node of {}", name,
                            router_.topology().name),
                did_you_mean(name, names), line);
      }
    }
    return problems_.empty();
  }

  void count_missing(int groups) {
    SeenTransfers seen(program_);
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      check_interruption_at(id);
      const Op& op = program_.ops[id];
      if (op.in_switch) continue;
      for_each_transfer_of_groups(program_, op, groups, [&](PlaceId from, PlaceId to) {
        const auto known = missing_.find(transfer_key(from, to, op.via));
        if (known != missing_.end()) ++known->second.count;
        return seen.add(from, to, op.via);
      });
    }
  }

  void count_without_switch(OpId first) {
    first_without_switch_ = first;
    for (OpId id = first; id < program_.ops.size(); ++id) {
      check_interruption_at(id);
      const Op& op = program_.ops[id];
      if (op.in_switch && !switch_of(program_, op, target_)) ++without_switch_;
    }
  }

  void report_switches() {
    if (without_switch_ == 0) return;
    const OpId id = first_without_switch_;
    const Topology& machine = router_.topology();
    const Profile& profile = router_.profile();
    std::string reason, suggestion;
    if (std::ranges::none_of(machine.nodes, &Node::combines)) {
      reason = fmt::format("no switch of {} combines", machine.name);
      suggestion = "if one does, say 'combines: true' of it in the machine's file";
    } else if (profile.in_switch.empty()) {
      reason = fmt::format("profile {} has no ops in switches", profile.name);
      suggestion = "profiles ideal, kernel and nccl have, kernel and nccl with protocol simple";
    } else if (program_.ops[id].via >= 0) {
      reason = fmt::format("'{}' is no switch that combines and joins its GPUs",
                           program_.vias[static_cast<std::size_t>(program_.ops[id].via)]);
      suggestion = "leave out 'via': the operands say which switch it is";
    } else {
      std::vector<std::string> names;
      const Op& op = program_.ops[id];
      for (const Operand& source : program_.sources_of(op)) names.push_back(name_of(source.place));
      for_each_destination(program_, op,
                           [&](const Operand& dst) { names.push_back(name_of(dst.place)); });
      std::ranges::sort(names);
      names.erase(std::unique(names.begin(), names.end()), names.end());
      reason = fmt::format("no switch that combines joins {}", join(names, ", "));
    }
    const std::string others = without_switch_ == 1
                                   ? ""
                                   : fmt::format(" (and {} more op{})", without_switch_ - 1,
                                                 without_switch_ == 2 ? "" : "s");
    problem(fmt::format("op {} is in a switch, but {}{}", id, reason, others), suggestion,
            id < program_.lines.size() ? program_.lines[id] : 0);
  }

  bool has_route(PlaceId source, PlaceId dst, int via) {
    const NodeId from = nodes_[static_cast<std::size_t>(source)];
    const NodeId to = nodes_[static_cast<std::size_t>(dst)];
    if (via < 0) return follow(from, to);
    const std::vector<NodeId>& stops = vias_[static_cast<std::size_t>(via)];
    const Route* route = router_.route(from, to, stops);
    if (route == nullptr) return false;
    const bool rests =
        std::ranges::any_of(stops, [&](NodeId stop) { return node(stop).kind == NodeKind::gpu; });
    if (!rests) {
      note_peers(*route, from, to);
      return true;
    }
    NodeId at = from;
    for (const NodeId stop : stops) {
      if (!follow(at, stop)) return false;
      at = stop;
    }
    return follow(at, to);
  }

  /// Whether there is a route.
  bool follow(NodeId from, NodeId to) {
    if (from == to) return true;
    const Route* route = router_.route(from, to);
    if (route == nullptr) return false;
    note_peers(*route, from, to);
    return true;
  }

  void note_peers(const Route& route, NodeId from, NodeId to) {
    const bool limits_from = node(from).peer_limit > 0;
    const bool limits_to = node(to).peer_limit > 0;
    if (!limits_from && !limits_to) return;
    if (!maps_memory(router_.topology(), route, from, to)) return;
    if (limits_from) peers_[from].insert(to);
    if (limits_to) peers_[to].insert(from);
  }

  /// "r3 (gpu3)"
  std::string name_of(PlaceId place) const {
    return fmt::format("{} ({})", place_name(program_, place),
                       node(nodes_[static_cast<std::size_t>(place)]).name);
  }

  void report_missing() {
    std::vector<Missing> missing;
    for (const auto& [key, one] : missing_) missing.push_back(one);
    std::ranges::sort(missing, {}, [](const Missing& one) {
      return std::tuple(one.way.first, one.way.from, one.way.via);
    });
    const bool fabric = router_.scope() == LinkScope::fabric;
    for (const auto& [way, count] : missing) {
      const std::string via =
          way.via < 0 ? "" : " via " + program_.vias[static_cast<std::size_t>(way.via)];
      std::string others;
      if (count > 1) {
        others = fmt::format(" (and {} more transfer{} between the two)", count - 1,
                             count == 2 ? "" : "s");
      }
      problem(fmt::format("op {}: no route from {} to {}{}{}{}", way.first, name_of(way.from),
                          name_of(way.to), via, fabric ? " over the GPU fabric" : "", others),
              fabric ? "allow all links, or choose an algorithm that only uses neighbours" : "",
              way.first < program_.lines.size() ? program_.lines[way.first] : 0);
    }
  }

  void report_peer_limits() {
    for (const auto& [gpu, peers] : peers_) {
      const int limit = node(gpu).peer_limit;
      if (peers.size() <= static_cast<std::size_t>(limit)) continue;
      problem(
          fmt::format("{} exchanges data directly with {} GPUs, but can map the memory of only {} "
                      "peer{}",
                      node(gpu).name, peers.size(), limit, limit == 1 ? "" : "s"),
          "choose an algorithm with fewer neighbours, such as ring, or fewer GPUs");
    }
  }

  const Program& program_;
  const Target& target_;
  const Router& router_;
  const Placement& placement_;
  std::vector<NodeId> nodes_;
  std::vector<std::vector<NodeId>> vias_;
  std::unordered_map<std::uint64_t, Missing> missing_;  ///< by transfer_key
  std::map<NodeId, std::set<NodeId>> peers_;            ///< of GPUs that limit them
  std::int64_t without_switch_ = 0;                     ///< ops
  OpId first_without_switch_ = 0;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::vector<Diagnostic> check_routes(const Program& program, const Target& target) {
  if (target.router == nullptr) return {};
  // The machine may be alike for all groups.
  return check_routes(program, target, find_ways(program, groups_run(program, target.rotation)));
}

std::vector<Diagnostic> check_routes(const Program& program, const Target& target,
                                     const Ways& ways) {
  if (target.router == nullptr) return {};
  return RouteChecker(program, target).check(ways);
}

}  // namespace espalier

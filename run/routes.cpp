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

/// R10, transfer by transfer.
class RouteChecker {
 public:
  RouteChecker(const Program& program, const Target& target)
      : program_(program),
        target_(target),
        router_(*target.router),
        placement_(target.placement),
        groups_(groups_run(program, target.rotation)),
        seen_(program) {}

  std::vector<Diagnostic> check() {
    if (!find_nodes() || !find_vias()) return std::move(problems_);
    for (OpId id = 0; id < program_.ops.size(); ++id) {
      check_interruption_at(id);
      const Op& op = program_.ops[id];
      if (op.in_switch) {
        check_switch(id, op);
        continue;
      }
      for_each_transfer_of_groups(program_, op, groups_, [&](PlaceId from, PlaceId to) {
        return check_transfer(id, from, to, op.via);
      });
    }
    report_missing();
    report_switches();
    report_peer_limits();
    return std::move(problems_);
  }

 private:
  /// The transfers between two places by one way.
  struct Way {
    PlaceId source = 0;
    PlaceId dst = 0;
    int via = -1;
    OpId first = 0;          ///< op that uses it
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
    for (PlaceId place = 0; place < program_.places(); ++place) {
      nodes_.push_back(node_of(program_, placement_, place));
    }
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

  /// Whether it had not been met.
  bool check_transfer(OpId id, PlaceId source, PlaceId dst, int via) {
    const bool is_new = seen_.add(source, dst, via);
    if (is_new) {
      if (!has_route(source, dst, via)) {
        missing_.try_emplace(transfer_key(source, dst, via), Way{source, dst, via, id, 1});
      }
    } else if (!missing_.empty()) {
      const auto known = missing_.find(transfer_key(source, dst, via));
      if (known != missing_.end()) ++known->second.count;
    }
    return is_new;
  }

  void check_switch(OpId id, const Op& op) {
    // Where one is missing, all ops are asked: they are counted.
    const bool is_known = !switches_.is_new(program_, op) && without_switch_ == 0;
    if (is_known || switch_of(program_, op, target_)) return;
    if (without_switch_++ == 0) first_without_switch_ = id;
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
    std::vector<Way> missing;
    for (const auto& [key, way] : missing_) missing.push_back(way);
    std::sort(missing.begin(), missing.end(), [](const Way& a, const Way& b) {
      return std::tie(a.first, a.source, a.via) < std::tie(b.first, b.source, b.via);
    });
    const bool fabric = router_.scope() == LinkScope::fabric;
    for (const Way& way : missing) {
      const std::string via =
          way.via < 0 ? "" : " via " + program_.vias[static_cast<std::size_t>(way.via)];
      std::string others;
      if (way.count > 1) {
        others = fmt::format(" (and {} more transfer{} between the two)", way.count - 1,
                             way.count == 2 ? "" : "s");
      }
      problem(fmt::format("op {}: no route from {} to {}{}{}{}", way.first, name_of(way.source),
                          name_of(way.dst), via, fabric ? " over the GPU fabric" : "", others),
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
  const int groups_;  ///< whose transfers are checked: the machine may be alike for all of them
  std::vector<NodeId> nodes_;
  std::vector<std::vector<NodeId>> vias_;
  SeenTransfers seen_;
  std::unordered_map<std::uint64_t, Way> missing_;  ///< those without a route
  std::map<NodeId, std::set<NodeId>> peers_;        ///< of GPUs that limit them
  SwitchPlaces switches_;
  std::int64_t without_switch_ = 0;  ///< ops
  OpId first_without_switch_ = 0;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::vector<Diagnostic> check_routes(const Program& program, const Target& target) {
  if (target.router == nullptr) return {};
  return RouteChecker(program, target).check();
}

}  // namespace espalier

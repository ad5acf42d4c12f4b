// SPDX-License-Identifier: Apache-2.0
#include "run/staging.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/reroute.h"

namespace espalier {
namespace {

using Pair = std::pair<NodeId, NodeId>;  // the lower one first

Pair pair_of(NodeId a, NodeId b) { return {std::min(a, b), std::max(a, b)}; }

/// Decides which pairs of GPUs map each other's memory.
class Mapping {
 public:
  Mapping(const Program& program, const Target& target) : program_(program), target_(target) {
    for (const Op& op : program.ops) {
      if (op.in_switch) continue;
      for_each_transfer(program, op,
                        [&](PlaceId from, PlaceId to) { note(node(from), node(to), op); });
    }
    choose();
  }

  bool is_staged(PlaceId from, PlaceId to) const {
    return staged_.contains(pair_of(node(from), node(to)));
  }
  /// The name of the CPU whose memory is nearest to both.
  std::string host_between(PlaceId from, PlaceId to) const {
    const Topology& machine = target_.router->topology();
    std::optional<NodeId> best;
    std::size_t fewest = 0;
    for (NodeId id = 0; id < static_cast<NodeId>(machine.nodes.size()); ++id) {
      if (machine.node(id).kind != NodeKind::cpu) continue;
      if (machine.node(id).host != machine.node(node(from)).host) continue;
      const Route* route = target_.router->route(node(from), node(to), id);
      if (route == nullptr || (best && route->hops.size() >= fewest)) continue;
      best = id;
      fewest = route->hops.size();
    }
    return best ? machine.node(*best).name : "";
  }
  int pairs() const { return static_cast<int>(staged_.size()); }
  bool has_routes() const { return has_routes_; }

 private:
  struct Use {
    std::size_t hops = 0;
    double units = 0;
    bool is_named = false;  ///< by a path that an op gives
  };

  NodeId node(PlaceId place) const { return node_of(program_, target_.placement, place); }

  void note(NodeId from, NodeId to, const Op& op) {
    const Route* route =
        op.via < 0
            ? target_.router->route(from, to)
            : target_.router->route(from, to, program_.vias[static_cast<std::size_t>(op.via)]);
    if (route == nullptr) {
      has_routes_ = false;
      return;
    }
    if (!maps_memory(target_.router->topology(), *route, from, to)) return;
    Use& use = uses_[pair_of(from, to)];
    use.hops = route->hops.size();
    use.units += op.length;
    use.is_named = use.is_named || op.via >= 0;
  }

  void choose() {
    std::vector<std::pair<Pair, Use>> order(uses_.begin(), uses_.end());
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
      const auto rank = [](const Use& use) {
        return std::tuple(!use.is_named, use.hops, -use.units);
      };
      return rank(a.second) < rank(b.second);
    });
    std::map<NodeId, int> mapped;
    const auto has_room = [&](NodeId gpu) {
      const int limit = target_.router->topology().node(gpu).peer_limit;
      return limit == 0 || mapped[gpu] < limit;
    };
    for (const auto& [pair, use] : order) {
      if (!use.is_named && !(has_room(pair.first) && has_room(pair.second))) {
        staged_.insert(pair);
        continue;
      }
      ++mapped[pair.first];
      ++mapped[pair.second];
    }
  }

  const Program& program_;
  const Target& target_;
  std::map<Pair, Use> uses_;
  std::set<Pair> staged_;
  bool has_routes_ = true;  ///< for all transfers
};

}  // namespace

std::optional<Staged> stage_beyond_peer_limits(const Program& program, const Target& target) {
  const Mapping mapping(program, target);
  if (mapping.pairs() == 0 || !mapping.has_routes()) return std::nullopt;
  auto staged = reroute(program, [&](PlaceId from, PlaceId to) {
    return mapping.is_staged(from, to) ? mapping.host_between(from, to) : std::string();
  });
  if (!staged) return std::nullopt;
  return Staged{std::move(*staged), mapping.pairs()};
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/folding.h"

#include <set>
#include <utility>

#include "run/target.h"

namespace espalier {

std::optional<Rotation> find_rotation(const Topology& topology, const Placement& placement,
                                      const Fold& fold) {
  std::vector<int> next;
  for (int rank = 0; rank < static_cast<int>(placement.ranks.size()); ++rank) {
    next.push_back(fold.rank_moved(rank, 1));
  }
  auto found = Rotation::find(topology, placement, next, fold.groups);
  // What passes no CPU does not depend on which one is near: see folds_routes.
  return found ? found : Rotation::find(topology, placement, next, fold.groups, false);
}

std::optional<Folding> find_folding(const Machine& machine, const AlgorithmChoice& choice,
                                    const BuildRequest& request) {
  if (!machine.placement.relays.empty()) return std::nullopt;
  for (Fold& fold : folds(choice, request)) {
    auto rotation = find_rotation(*machine.topology, machine.placement, fold);
    if (!rotation) continue;
    return Folding{std::move(fold), std::make_shared<const Rotation>(std::move(*rotation))};
  }
  return std::nullopt;
}

bool folds_routes(const Program& program, const Machine& machine, const Rotation& rotation) {
  std::set<std::pair<PlaceId, PlaceId>> seen;
  bool all = true;
  for (const Op& op : program.ops) {
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
      if (!all || !seen.emplace(from, to).second) return;
      for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
        all = all && rotation.keeps_route(machine.runtime(runtime),
                                          node_of(program, machine.placement, from),
                                          node_of(program, machine.placement, to));
      }
    });
  }
  return all;
}

}  // namespace espalier

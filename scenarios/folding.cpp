// SPDX-License-Identifier: Apache-2.0
#include "scenarios/folding.h"

#include <set>
#include <utility>

#include "run/target.h"

namespace espalier {
std::optional<Folding> find_folding(const Machine& machine, const AlgorithmChoice& choice,
                                    const BuildRequest& request) {
  if (choice.algorithm->fold == nullptr || !machine.placement.relays.empty()) return std::nullopt;
  for (int each = 1; 2 * each <= request.ranks; ++each) {
    if (request.ranks % each != 0) continue;
    const int groups = request.ranks / each;
    auto rotation = Rotation::find(*machine.topology, machine.placement, groups);
    if (!rotation) continue;
    std::optional<Fold> found = fold(choice, request, groups);
    if (!found) continue;
    return Folding{std::move(*found), std::make_shared<const Rotation>(std::move(*rotation))};
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

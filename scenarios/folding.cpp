// SPDX-License-Identifier: Apache-2.0
#include "scenarios/folding.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/hash.h"
#include "ir/chunk.h"
#include "ir/unfold.h"
#include "run/switches.h"
#include "run/target.h"
#include "run/transfer_key.h"
#include "scenarios/buildable.h"

namespace espalier {

std::optional<Rotation> find_rotation(const Topology& topology, const Placement& placement,
                                      const Fold& fold) {
  std::vector<int> next;
  for (int rank = 0; rank < static_cast<int>(placement.ranks.size()); ++rank) {
    next.push_back(fold.rank_moved(rank, 1));
  }
  const auto of = [&](Rotation::Of what) {
    return Rotation::find(topology, placement, next, fold.groups, what);
  };
  // Routes that pass what is left out are not alike: see folds_routes. Those between hosts do.
  if (auto found = of(Rotation::Of::all)) return found;
  if (auto found = of(Rotation::Of::without_cpus)) return found;
  const auto host = [&](NodeId gpu) { return topology.node(gpu).host; };
  const bool is_one_host = std::ranges::all_of(
      placement.ranks, [&](NodeId gpu) { return host(gpu) == host(placement.ranks.front()); });
  return is_one_host ? of(Rotation::Of::gpu_fabric) : std::nullopt;
}

std::optional<Folding> folding_by(const Machine& machine, Fold fold) {
  if (!machine.placement.relays.empty()) return std::nullopt;
  auto rotation = find_rotation(*machine.topology, machine.placement, fold);
  if (!rotation) return std::nullopt;
  return Folding{std::move(fold), std::make_shared<const Rotation>(*std::move(rotation))};
}

std::optional<Folding> first_folding(const Machine& machine, std::vector<Fold> folds) {
  for (Fold& fold : folds) {
    if (auto folding = folding_by(machine, std::move(fold))) return folding;
  }
  return std::nullopt;
}

std::optional<Folding> find_folding(const Machine& machine, const AlgorithmChoice& choice,
                                    const BuildRequest& request) {
  return first_folding(machine, folds(choice, request));
}

bool are_cut_alike(const Program& program, const AlgorithmChoice& choice) {
  return !choice.algorithm->staggered || staggers_alike(program);
}

std::optional<Program> program_of_groups(const Machine& machine, const AlgorithmChoice& choice,
                                         BuildRequest request, const Backend& backend) {
  const bool is_possible = !choice.file && choice.algorithm->folds_anywhere &&
                           machine.placement.relays.empty() && !not_built(choice, request);
  if (!is_possible) return std::nullopt;
  const std::vector<Fold> all = folds(choice, request);
  if (all.empty()) return std::nullopt;
  request.fold = all.front();  // with the most groups
  Program program = build(choice, std::move(request));
  const auto groups = static_cast<std::int64_t>(program.fold.groups);
  const bool has_many = groups * static_cast<std::int64_t>(program.ops.size()) >= kMinOpsOfGroups;
  if (!has_many || not_routable(program, machine)) return std::nullopt;
  // Where it can't be cut, all ops are the better answer.
  if (!may_be_cut(program)) return std::nullopt;
  if (!are_cut_alike(program, choice)) return std::nullopt;
  for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
    const Target target{&machine.runtime(runtime), machine.placement, nullptr};
    if (!backend.runs_all_groups(program, target, {})) return std::nullopt;
  }
  return program;
}

namespace {

/// Whether groups use switches as the rotation moves them, and reach them alike; or none does,
/// under a runtime whose ops no switch carries out.
bool folds_switch(const Program& program, OpId id, const Machine& machine, const Router& router,
                  const Rotation& rotation) {
  const Target target{&router, machine.placement, nullptr};
  const Op& op = program.ops[id];
  const Program moved = op_of_group(program, id, 1);
  const auto here = switch_of(program, op, target);
  const auto there = switch_of(moved, moved.ops.front(), target);
  if (!here && !there) return true;
  if (!here || !there || rotation.next(here->node) != there->node) return false;
  const auto reaches = [&](PlaceId place) {
    const NodeId gpu = node_of(program, machine.placement, place);
    return rotation.keeps_route(router, gpu, here->node) &&
           rotation.keeps_route(router, here->node, gpu);
  };
  bool all = reaches(op.at);
  for (const Operand& source : program.sources_of(op)) all = all && reaches(source.place);
  for_each_destination(program, op, [&](const Operand& dst) { all = all && reaches(dst.place); });
  return all;
}

}  // namespace

bool folds_ways(const Forest& plan, const Machine& machine, const Rotation& rotation) {
  const std::vector<NodeId>& ranks = machine.placement.ranks;
  using Ends = std::pair<NodeId, NodeId>;
  const auto hash = [](const Ends& ends) {
    return mix64(static_cast<std::uint64_t>(ends.first) << 32 |
                 static_cast<std::uint32_t>(ends.second));
  };
  std::unordered_map<Ends, const std::vector<NodeId>*, decltype(hash)> ways(0, hash);
  for (const PlannedTree& tree : plan.trees) {
    if (tree.uses_relays(machine.ranks())) return false;
    for (const TreeEdge& edge : tree.edges) {
      const Ends ends = {ranks[static_cast<std::size_t>(edge.parent)],
                         ranks[static_cast<std::size_t>(edge.child)]};
      const auto [known, is_new] = ways.try_emplace(ends, &edge.path);
      if (!is_new && *known->second != edge.path) return false;
    }
  }
  return std::ranges::all_of(ways, [&](const auto& way) {
    const auto& [ends, path] = way;
    const auto moved = ways.find({rotation.next(ends.first), rotation.next(ends.second)});
    const auto is_moved = [&](NodeId there, NodeId here) { return there == rotation.next(here); };
    return moved == ways.end() || std::ranges::equal(*moved->second, *path, is_moved);
  });
}

bool folds_routes(const Program& program, const Machine& machine, const Rotation& rotation) {
  SeenTransfers seen(program);
  std::set<std::tuple<PlaceId, std::uint32_t, std::uint32_t>> seen_in_switch;
  bool all = true;
  for (OpId id = 0; all && id < program.ops.size(); ++id) {
    const Op& op = program.ops[id];
    if (op.in_switch && op.via >= 0) return false;
    const bool is_new =
        op.in_switch && seen_in_switch.emplace(op.at, op.src_count, op.copy_count).second;
    for (std::size_t runtime = 0; is_new && runtime <= machine.other_runtimes.size(); ++runtime) {
      all = all && folds_switch(program, id, machine, machine.runtime(runtime), rotation);
    }
    for_each_transfer(program, op, [&](PlaceId from, PlaceId to) {
      if (!all || !seen.add(from, to, op.via)) return;
      for (std::size_t runtime = 0; runtime <= machine.other_runtimes.size(); ++runtime) {
        const Router& router = machine.runtime(runtime);
        std::vector<NodeId> vias;
        if (op.via >= 0) vias = router.nodes_of(program.vias[static_cast<std::size_t>(op.via)]);
        all = all && rotation.keeps_route(router, node_of(program, machine.placement, from),
                                          node_of(program, machine.placement, to), vias);
      }
    });
  }
  return all;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/buildable.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "algorithms/program_file.h"
#include "core/activity.h"
#include "core/error.h"
#include "core/interruption.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "run/routes.h"
#include "run/switches.h"
#include "scenarios/kept_programs.h"
#include "scenarios/training_sweep.h"
#include "topologies/placement.h"

namespace espalier {

namespace {

/// Up to these many ranks all algorithms are built within a second or so.
constexpr int kMaxTriedRanks = 64;

/// Whether the ranks would be connected if all idle GPUs relayed.
bool idle_gpus_join(const Machine& machine, const Query& query) {
  const std::vector<int> idle = idle_gpus(*machine.topology, query.gpus);
  return !unreachable_pair(*machine.router, place_ranks(*machine.router, query.gpus, idle));
}

/// What to change in a question so that a program in a file answers it, where that is one thing.
std::string fitting_question(const ProgramFile& file, const Query& query, const Machine& machine) {
  const Program& program = file.program;
  const int ranks = machine.ranks();
  if (program.contract.collective != query.collective) {
    return fmt::format("--collective {}", to_string(program.contract.collective));
  }
  if (program.ranks() != ranks && (query.topology.empty() || machine.is_sized_by_ranks)) {
    return fmt::format("--ranks {}", program.ranks());
  }
  if (program.ranks() > ranks) return "a machine with more GPUs, or more of its --gpus";
  if (program.ranks() < ranks) {
    const int last = program.ranks() - 1;
    const std::string first =
        query.gpus.empty() && last > 0
            ? fmt::format("0-{}", last)
            : fmt::format("{}", fmt::join(first_gpus(query.gpus, last + 1), ","));
    return fmt::format("--gpus {}, or a program for {} ranks", first, ranks);
  }
  if (info(query.collective).rooted && program.contract.root != query.root) {
    return fmt::format("--root {}, or a program whose root is rank {}", program.contract.root,
                       query.root);
  }
  if (program.contract.in_place && !query.in_place) return "--in-place";
  if (query.in_place && !program.contract.in_place) {
    return "a program in place says so (the line 'in_place', or inplace=\"1\" of MSCCL) and finds "
           "its "
           "input in out";
  }
  if (static_cast<std::size_t>(program.relays) > machine.placement.relays.size()) {
    return query.topology.empty() ? "--topology names a machine, and --relay its idle GPUs"
                                  : "--relay names idle GPUs that may take part";
  }
  return {};
}

}  // namespace

void require_connected(const Machine& machine, const Query& query) {
  const auto pair = unreachable_pair(*machine.router, machine.placement);
  if (!pair) return;
  const bool fabric = query.links == LinkScope::fabric;
  std::vector<int> connected = most_connected(*machine.router, machine.placement);
  for (int& rank : connected) {
    if (!query.gpus.empty()) rank = query.gpus[static_cast<std::size_t>(rank)];
  }
  std::string help =
      fabric ? "allowing all links adds PCIe, CPU and network links"
      : connected.size() < 2
          ? "choose other GPUs"
          : fmt::format("--gpus {} takes the most that are connected", fmt::join(connected, ","));
  if (idle_gpus_join(machine, query)) help += "; or let idle GPUs relay with --relay all";
  const auto name = [&](int rank) -> const std::string& {
    return machine.topology->node(machine.placement.ranks[rank]).name;
  };
  throw Error(
      ErrorKind::unsupported,
      fmt::format("ranks {} ({}) and {} ({}) are not connected{}", pair->first, name(pair->first),
                  pair->second, name(pair->second), fabric ? " by the GPU fabric" : ""),
      help);
}

BuildRequest request_for(const Query& query, const Machine& machine) {
  BuildRequest request =
      request_for(query.collective, query.root, query.in_place, *machine.router, machine.placement);
  request.size_bytes = query.size_bytes;
  request.found = machine.found;
  return request;
}

std::optional<std::string> not_routable(const Program& program, const Machine& machine,
                                        const Ways& ways) {
  const auto problems = check_routes(program, {machine.router.get(), machine.placement}, ways);
  if (problems.empty()) return std::nullopt;
  return problems.front().message;
}

std::optional<std::string> not_routable(const Program& program, const Machine& machine) {
  return not_routable(program, machine, find_ways(program, groups_run(program, nullptr)));
}

LinksUsed links_used(const Program& program, const Machine& machine, const Ways& ways) {
  const Router& router = *machine.router;
  const Topology& topology = router.topology();
  LinksUsed used;
  bool only_fabric = true;
  bool has_detours = router.scope() == LinkScope::detours;
  for (const OpId id : ways.in_switch) {
    used.in_switch = true;
    const NodeId node = switch_of(program, program.ops[id], {&router, machine.placement})->node;
    only_fabric = only_fabric && topology.node(node).kind == NodeKind::nvswitch;
  }
  std::size_t turn = 0;
  for (const Ways::Way& way : ways.transfers) {
    check_interruption_at(turn++);
    const NodeId from = node_of(program, machine.placement, way.from);
    const NodeId to = node_of(program, machine.placement, way.to);
    const Route* route =
        way.via < 0 ? router.route(from, to) : router.route(from, to, program.vias[way.via]);
    only_fabric = only_fabric && route->kind == RouteKind::gpu_fabric;
    used.over_host =
        used.over_host || route->kind == RouteKind::peer || route->kind == RouteKind::staged;
    if (way.via < 0) continue;
    const bool is_inside = topology.node(from).host == topology.node(to).host;
    has_detours = has_detours || (is_inside && crosses_network(topology, *route));
    used.through_gpus = used.through_gpus || passes_gpu(topology, *route);
  }
  used.scope = has_detours ? LinkScope::detours : only_fabric ? LinkScope::fabric : router.scope();
  return used;
}

Machine routed_machine(std::shared_ptr<const Topology> topology, const std::vector<int>& gpus,
                       const std::vector<int>& relays) {
  Machine machine;
  machine.topology = std::move(topology);
  // Which links exist does not depend on the profile, and under this one switches do what they can.
  machine.router = std::make_unique<Router>(*machine.topology, machine.topology->profile("ideal"));
  machine.placement = place_ranks(*machine.router, gpus, relays);
  return machine;
}

std::vector<Diagnostic> machine_problems(const Program& program, const Machine& machine) {
  Placement placement = machine.placement;
  const auto ranks = static_cast<std::size_t>(program.ranks());
  const auto hosts = static_cast<std::size_t>(program.hosts);
  if (ranks > placement.ranks.size() || hosts > placement.hosts.size()) {
    return {
        {"R10",
         fmt::format("the program needs {} ranks and {} host memories, but {} has {} and {}", ranks,
                     hosts, machine.topology->name, placement.ranks.size(), placement.hosts.size()),
         "choose another machine or other --gpus",
         {}}};
  }
  if (static_cast<std::size_t>(program.relays) > placement.relays.size()) {
    return {{"R10",
             fmt::format("the program needs {}, but {} given",
                         counted(static_cast<std::size_t>(program.relays), "relay"),
                         placement.relays.empty() ? "none is"
                                                  : fmt::format("{} are", placement.relays.size())),
             "name idle GPUs with --relay",
             {}}};
  }
  placement.ranks.resize(ranks);
  return check_routes(program, {machine.router.get(), placement});
}

std::optional<Staged> staged_instead(const Program& program, const Machine& machine) {
  const Target target{machine.router.get(), machine.placement};
  std::optional<Staged> staged = stage_beyond_peer_limits(program, target);
  if (staged && !check_routes(staged->program, target).empty()) return std::nullopt;
  return staged;
}

Built build_on(const Machine& machine, const AlgorithmChoice& choice, const Query& query,
               const MakeProgram& make, KeptPrograms* kept, const PartOfProgram& part) {
  BuildRequest request = request_for(query, machine);
  request.fold = part.fold;
  request.rounds_left_out = part.rounds_left_out;
  Built built;
  built.why_not = not_built(choice, request);
  if (built.why_not) {
    if (choice.file) built.instead = fitting_question(*choice.file, query, machine);
    return built;
  }
  auto program = make ? make(request) : std::make_shared<const Program>(build(choice, request));
  if (choice.file) {
    built.verification = verify(*choice.file);
    if (!built.verification->ok()) {
      built.program = std::move(program);
      return built;
    }
  }
  built.notes = *request.notes;
  const int groups = groups_run(*program, part.rotation);
  built.ways = kept != nullptr ? kept->ways(*program, groups)
                               : std::make_shared<const Ways>(find_ways(*program, groups));
  built.why_not = not_routable(*program, machine, *built.ways);
  if (built.why_not && !choice.file) {
    if (auto staged = staged_instead(*program, machine)) {
      built.why_not.reset();
      built.notes.push_back(fmt::format(
          "GPUs can map fewer peers than they have here: {} exchange data through host memory",
          counted(staged->pairs, "pair")));
      program = std::make_shared<const Program>(std::move(staged->program));
      built.ways = nullptr;
    }
  }
  built.is_routing = built.why_not.has_value();
  if (!built.why_not) built.program = std::move(program);
  return built;
}

bool may_leave_out_rounds(const Query& query) {
  return !query.all_rounds && query.chunk_bytes.value_or(0) == 0 &&
         query.run.engine != SimEngine::simgrid;
}

std::int64_t rounds_to_leave_out(const Machine& machine, const AlgorithmChoice& choice,
                                 const Query& query, std::int64_t enough) {
  constexpr std::int64_t kManyTimes = 3;
  const BuildRequest request = request_for(query, machine);
  if (choice.algorithm->rounds == nullptr || unsupported(choice, request)) return 0;
  const std::int64_t all = rounds(choice, request);
  return all / kManyTimes < enough ? 0 : (all - enough) / kMultipleOfRounds * kMultipleOfRounds;
}

Forest plan_in_time(const AlgorithmChoice& choice, const BuildRequest& request) {
  constexpr double kTimeToPlan = 2.0 / 3;
  const Activity activity("planning");
  const TimeLimit limit(kTimeToPlan * time_left_s());
  return plan(choice, request);
}

std::vector<std::string> possible_algorithms(const Machine& machine, const Query& query) {
  std::vector<std::string> possible;
  if (machine.ranks() > kMaxTriedRanks) return possible;
  for (const std::string& name : Study::applicable(query.collective)) {
    try {
      if (build_on(machine, parse_algorithm(name), query).program) possible.push_back(name);
    } catch (const Error&) {
      // A planner found no way: not possible either.
    }
  }
  return possible;
}

std::string possible_here(const Machine& machine, const Query& query) {
  const std::vector<std::string> possible = possible_algorithms(machine, query);
  return possible.empty() ? std::string() : "possible here: " + join(possible, ", ");
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/planned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/activity.h"
#include "scenarios/buildable.h"

namespace espalier {

namespace {

[[noreturn]] void throw_impossible(const Query& query, const Machine& machine,
                                   const std::string& why_not) {
  throw Error(ErrorKind::unsupported,
              fmt::format("{} is not possible here: {}", query.algorithm, why_not),
              possible_here(machine, query));
}

}  // namespace

std::vector<std::string> planning_algorithms(Collective collective) {
  std::vector<std::string> names = Study::applicable(collective);
  std::erase_if(names,
                [](const std::string& name) { return find_algorithm(name)->plan == nullptr; });
  return names;
}

namespace {

/// Of all trees and paths of the plan; the program that is run may leave out small ones.
Program exact_program(AlgorithmChoice choice, const BuildRequest& request, const Planned& planned) {
  const auto& parameters = choice.algorithm->parameters;
  const bool rounds = std::ranges::count(parameters, "strips", &AlgorithmParameter::name) > 0;
  if (rounds) choice.parameters["strips"] = 0;
  return build(choice, request, planned.forest);
}

}  // namespace

Planned plan_query(Study& study, const Query& query) {
  const TimeLimit own(std::numeric_limits<double>::infinity());
  Machine& machine = study.machine(query);
  const AlgorithmChoice choice = parse_algorithm(query.algorithm);
  const BuildRequest request = request_for(query, machine);
  if (const auto reason = unsupported(choice, request)) throw_impossible(query, machine, *reason);
  Planned planned;
  planned.query = query;
  planned.machine = &machine;
  planned.forest = plan_in_time(choice, request);
  planned.program = build(choice, request, planned.forest);
  if (const auto reason = not_routable(planned.program, machine)) {
    throw_impossible(query, machine, *reason);
  }
  planned.loads = link_loads(planned.forest, *machine.router, machine.placement);
  const Program exact = exact_program(choice, request, planned);
  const Ways ways = find_ways(exact, groups_run(exact, nullptr));
  planned.bound_links = links_used(exact, machine, ways).scope;
  const Router router(*machine.topology, machine.router->profile(), planned.bound_links);
  Placement counted = machine.placement;
  if (!choice.algorithm->uses_relays) counted.relays.clear();
  const Activity activity("proving the bound");
  // Plans are made of trees and paths between GPUs.
  planned.bound =
      bandwidth_bound(query.collective, query.root, router, counted, {.in_switches = false});
  const Bound with_switches = bandwidth_bound(query.collective, query.root, router, counted);
  if (with_switches.algbw_gbps > planned.bound.algbw_gbps) {
    planned.bound_in_switches = with_switches;
  }
  if (std::isfinite(planned.bound.algbw_gbps)) {
    planned.fraction = planned.forest.algbw_gbps / planned.bound.algbw_gbps;
  }
  // What the search could not prove, the bound does.
  if (planned.forest.exact_algbw == planned.bound.exact) planned.forest.note.clear();
  planned.budget = own.granted();
  return planned;
}

void complete_plan(Study& study, Planned& planned) {
  Machine& machine = study.machine(planned.query);
  planned.machine = &machine;
  planned.program = build(parse_algorithm(planned.query.algorithm),
                          request_for(planned.query, machine), planned.forest);
  planned.loads = link_loads(planned.forest, *machine.router, machine.placement);
}

}  // namespace espalier

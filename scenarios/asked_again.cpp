// SPDX-License-Identifier: Apache-2.0
#include "scenarios/asked_again.h"

#include <fmt/format.h>

#include <utility>

#include "scenarios/describe.h"
#include "scenarios/tuner.h"

namespace espalier {

namespace {

/// What proves a bound that is known; its words alone, where there is no time to find it once more.
BoundProof proof_of(const Bound& known, const Query& query, const Router& router,
                    const Placement& placement, const BoundOptions& options) {
  BoundProof found = proven_bound(query.collective, query.root, router, placement, options);
  return found.bound.exact == known.exact ? std::move(found) : BoundProof{known, {}, {}, {}};
}

}  // namespace

Outcome ask_with_timeline(Study& study, const Outcome& outcome, TimelineOps ops) {
  Query query = outcome.query;
  query.run.timeline = true;
  query.against_nccl = false;
  query.may_fold = query.may_fold && ops == TimelineOps::one_group;
  query.all_rounds = query.all_rounds || ops == TimelineOps::all;
  // It need not be chosen again.
  if (!outcome.chosen.empty() && candidates_of(study, query)) query.algorithm = outcome.chosen;
  Outcome again = study.ask(query);
  if (again.skipped) {
    throw Error(ErrorKind::unsupported,
                fmt::format("there is no timeline of {}: it {}", query.algorithm, *again.skipped));
  }
  again.query.algorithm = outcome.query.algorithm;
  again.chosen = outcome.chosen;
  again.nccl = outcome.nccl;
  return again;
}

std::optional<BoundProof> proof_of_answer(Study& study, const Outcome& outcome) {
  if (!outcome.bound || outcome.bound->kind.empty()) return std::nullopt;
  Query ran = outcome.query;
  // A library runs under a profile of its own, and decides on the protocol.
  const std::string& algorithm = algorithm_that_ran(outcome);
  const Algorithm* const known = find_algorithm(algorithm.substr(0, algorithm.find(':')));
  if (known != nullptr && known->call != nullptr && !outcome.protocol.empty()) {
    ran.profile = fmt::format("{}:{}", outcome.profile, outcome.protocol);
  }
  const Machine& machine = study.machine(ran);
  Placement placement = machine.placement;
  if (!outcome.bound_relays) placement.relays.clear();
  const Router bounded(*machine.topology, machine.router->profile(), outcome.bound_links);
  return proof_of(*outcome.bound, outcome.query, bounded, placement,
                  {.helpers = outcome.bound_helpers});
}

BoundProof proof_of_plan(const Planned& plan) {
  const Machine& machine = *plan.machine;
  const Router bounded(*machine.topology, machine.router->profile(), plan.bound_links);
  return proof_of(plan.bound, plan.query, bounded, machine.placement, {.in_switches = false});
}

const Outcome* rival_of(const Outcome& best, const std::vector<Outcome>& outcomes) {
  const Outcome* rival = nullptr;
  const auto is_nccl = [](const Outcome& one) { return one.query.algorithm.starts_with("nccl"); };
  for (const Outcome& one : outcomes) {
    if (one.query.size_bytes != best.query.size_bytes || !one.report.simulated ||
        algorithm_that_ran(one) == algorithm_that_ran(best)) {
      continue;
    }
    const bool is_better =
        rival == nullptr || (is_nccl(one) && !is_nccl(*rival)) ||
        (is_nccl(one) == is_nccl(*rival) && one.report.time_s < rival->report.time_s);
    if (is_better) rival = &one;
  }
  return rival;
}

}  // namespace espalier

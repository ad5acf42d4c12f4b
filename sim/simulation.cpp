// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.h"

#include <algorithm>
#include <cmath>

#include "core/activity.h"
#include "run/switches.h"
#include "sim/found_out.h"

namespace espalier {
namespace {

/// Of a simulation that says how far it is: SimGrid may be at it for minutes.
constexpr std::size_t kFlowsBetweenNotes = 1024;

/// As if everything had begun so much later.
void delay(OpHistory& history, double seconds) {
  for (OpRecord& op : history.ops) op.start_s += seconds;
  for (OpEnd& op : history.ends) {
    op.end_s += seconds;
    op.seen_s += seconds;
  }
  history.last_seen_s += seconds;
}

/// When the call is over: not before it has begun everywhere; what has arrived by then is taken.
double end_s(const OpHistory& history, const std::vector<double>& starts_s, double overhead_s) {
  double end_s = std::max(overhead_s, history.last_seen_s);
  for (const double start_s : starts_s) end_s = std::max(end_s, overhead_s + start_s);
  return end_s;
}

/// What is left of the message without the rounds that the program has not.
double bytes_of(const Program& program, const RunOptions& options, const Rounds& rounds) {
  if (options.more_rounds == 0) return static_cast<double>(options.size_bytes);
  const std::int64_t blocks = program.contract.units / block_units(program.contract);
  const double units = static_cast<double>(program.contract.units);
  const double more = static_cast<double>(options.more_rounds * rounds.units * blocks);
  return static_cast<double>(options.size_bytes) * units / (units + more);
}

/// What earlier simulations have found out, or nothing.
std::shared_ptr<TextFindings> text_of(const Program& program, const RunOptions& options) {
  const FoundOut* const found = found_out(program, options);
  return found != nullptr ? found->text : std::make_shared<TextFindings>(program);
}

/// Of all groups, the ops of a round would not stand one behind the other.
Rounds rounds_of(TextFindings& text, const Target& target) {
  return groups_run(text.program(), target.rotation) == 1 ? text.rounds() : Rounds{};
}

}  // namespace

double slowest_link_gbps(const Router& router) {
  double slowest_gbps = 0;
  for (LinkId link = 0; link < static_cast<LinkId>(router.topology().links.size()); ++link) {
    const double gbps = router.capacity_gbps(link);
    if (gbps > 0 && (slowest_gbps == 0 || gbps < slowest_gbps)) slowest_gbps = gbps;
  }
  return slowest_gbps;
}

double call_overhead_s(const Program& program, const Target& target, const RunOptions& options) {
  if (!options.is_call) return 0;
  return target.router->profile().call_overhead_s + switch_call_s(program, target);
}

Simulation::Simulation(const Program& of, const Target& on, const RunOptions& as)
    : program(of),
      target(on),
      options(as),
      text(text_of(of, as)),
      names(of, groups_run(of, on.rotation), rounds_of(*text, on)),
      graph(text->graph()),
      blocks(of, graph, on, as.blocks),
      unit(slowest_link_gbps(*on.router)),
      message_bytes(bytes_of(of, as, names.rounds())) {}

double Simulation::call_overhead_s() const {
  return espalier::call_overhead_s(program, target, options);
}

const SentData& Simulation::sent() const {
  if (!sent_) {
    sent_ = profile().fifo_steps > 0 ? SentData(program, names.rounds()) : SentData();
  }
  return *sent_;
}

bool Simulation::is_limited() const {
  return options.limits && std::isfinite(options.limits->time_s);
}

EngineLimits Simulation::engine_limits() const {
  const SimLimits limits = options.limits.value_or(SimLimits{});
  return {.time = unit.unrounded_from_s(limits.time_s - call_overhead_s()), .work = limits.work};
}

std::optional<Expectation> run(FlowEngine& engine, Dispatcher& dispatcher, std::size_t ops) {
  std::size_t flows_done = 0;
  const auto on_done = [&](FlowToken op) {
    dispatcher.on_flow_done(op);
    if (++flows_done % kFlowsBetweenNotes == 0) {
      const auto left = static_cast<double>(dispatcher.unfinished());
      Activity::note_done(1 - left / static_cast<double>(ops));
    }
  };
  return engine.run(on_done, [&] { dispatcher.on_instant_over(); });
}

void take_times(const Simulation& of, SimulationOutcome& outcome, const MachineResources& machine,
                const std::vector<double>& starts_s,
                const std::function<double(double call_overhead_s)>& back_to_back) {
  const double overhead_s = of.call_overhead_s();
  delay(outcome.history, overhead_s);
  outcome.time_s = end_s(outcome.history, starts_s, overhead_s);
  outcome.together_s = outcome.time_s;
  // The engine knows nothing of the way of the last results.
  if (of.options.limits && outcome.time_s > of.options.limits->time_s) {
    outcome.end = SimEnd::too_slow;
  }
  outcome.longest_busy = machine.longest_busy();
  if (of.options.details) outcome.links = machine.report(outcome.time_s);
  outcome.back_to_back_s = of.options.is_call ? back_to_back(overhead_s) : outcome.time_s;
}

}  // namespace espalier

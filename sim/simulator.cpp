// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <algorithm>
#include <chrono>

#include "core/check.h"
#include "core/words.h"
#include "sim/critical_path.h"
#include "sim/dispatcher.h"
#include "sim/flow_engine.h"
#include "sim/machine_resources.h"
#include "sim/op_graph.h"

namespace espalier {
namespace {

/// The largest flow of a message of `message_bytes`.
double largest_flow_bytes(const Program& program, double message_bytes) {
  std::uint32_t longest = 0;
  for (const Op& op : program.ops) longest = std::max(longest, op.length);
  return message_bytes * longest / static_cast<double>(program.contract.units);
}

/// The start-up and latency of an op whose route has two of the slowest links.
double largest_latency_s(const Router& router) {
  const Profile& profile = router.profile();
  double link_s = 0;
  double overhead_s = profile.local_overhead_s;
  for (const Link& link : router.topology().links) {
    link_s = std::max(link_s, link.latency_s);
    const auto known = profile.links.find(link.kind);
    if (known != profile.links.end()) overhead_s = std::max(overhead_s, known->second.overhead_s);
  }
  return overhead_s + profile.reduce_overhead_s + 2 * link_s;
}

/// Roughly what a run will be.
struct Expectation {
  double time_s = 0;
  double ops_in_turn = 1;
};

/// The busiest lanes at the speed of the slowest link.
Expectation expectation(const Program& program, const OpGraph& graph, const Router& router,
                        double message_bytes) {
  double slowest_gbps = 0;
  for (LinkId link = 0; link < static_cast<LinkId>(router.topology().links.size()); ++link) {
    const double gbps = router.capacity_gbps(link);
    slowest_gbps = link == 0 ? gbps : std::min(slowest_gbps, gbps);
  }
  double seconds =
      graph.most_compute_in_lane_s() + graph.most_ops_in_lane() * largest_latency_s(router);
  if (slowest_gbps > 0) {
    const double units = static_cast<double>(program.contract.units);
    seconds += message_bytes * graph.most_units_in_lane() / units / (slowest_gbps * 1e9);
  }
  return {seconds, static_cast<double>(graph.most_ops_in_lane())};
}

/// A run that takes this many times as long as expected, or a part as short, is repeated with a
/// better expectation: it would use up the engine's epochs, or its dates would be rounded too much.
constexpr double kMostOff = 32;

struct Outcome {
  OpHistory history;
  std::vector<LinkUse> links;
  double time_s = 0;
};

/// One run from time 0; nothing when it has to be repeated (see FlowEngine::run), and then with a
/// better expectation if it was far off.
std::optional<Outcome> simulate(const Program& program, const Target& target, const OpGraph& graph,
                                double message_bytes, FlowEngine& engine, Expectation& expected) {
  engine.begin(largest_flow_bytes(program, message_bytes), expected.time_s, expected.ops_in_turn);
  MachineResources machine(program, target, engine);
  Dispatcher dispatcher(program, graph, target.router->profile(), message_bytes, machine, engine);
  dispatcher.start();
  const bool reproducible = engine.run([&](FlowToken op) { dispatcher.on_flow_done(op); });
  const double took_s = engine.now_s();
  const bool too_long = took_s > kMostOff * expected.time_s;
  const bool too_short = took_s > 0 && took_s * kMostOff < expected.time_s;
  if (too_long || too_short) {
    // What takes long waits for other lanes in turn.
    if (too_long && expected.time_s > 0) expected.ops_in_turn *= took_s / expected.time_s;
    expected.time_s = took_s;
    return std::nullopt;
  }
  if (!reproducible) return std::nullopt;

  const std::size_t unfinished = dispatcher.unfinished();
  Outcome outcome;
  outcome.history = dispatcher.take_history();
  if (unfinished > 0) {
    throw Error(ErrorKind::runtime, explain_stuck(program, graph, outcome.history));
  }
  for (const double end_s : outcome.history.end_s) {
    outcome.time_s = std::max(outcome.time_s, end_s);
  }
  outcome.links = machine.report(outcome.time_s);
  return outcome;
}

std::vector<OpTiming> timeline(const OpHistory& history) {
  std::vector<OpTiming> all(history.start_s.size());
  for (OpId id = 0; id < all.size(); ++id) {
    all[id] = {id, history.start_s[id], history.end_s[id]};
  }
  return all;
}

}  // namespace

Simulator::Simulator() = default;
Simulator::~Simulator() = default;

std::optional<std::string> Simulator::unsupported(const Program& program,
                                                  const Target& target) const {
  if (target.router == nullptr) return "the simulator needs a machine to simulate";
  const std::vector<Diagnostic> problems = check_routes(program, target);
  if (problems.empty()) return std::nullopt;
  std::vector<std::string> lines;
  lines.reserve(problems.size());
  for (const Diagnostic& problem : problems) lines.push_back(problem.message);
  return join(lines, "\n");
}

RunReport Simulator::run(const Program& program, const Target& target, const RunOptions& options) {
  CHECK(target.router != nullptr);
  const auto wall_start = std::chrono::steady_clock::now();
  FlowEngine& engine = FlowEngine::instance();
  const OpGraph graph(program);
  const auto message_bytes = static_cast<double>(options.size_bytes);
  Expectation expected = expectation(program, graph, *target.router, message_bytes);
  std::optional<Outcome> outcome;
  while (!outcome) {
    outcome = simulate(program, target, graph, message_bytes, engine, expected);
  }

  RunReport report;
  report.time_s = report.min_time_s = report.max_time_s = outcome->time_s;
  report.message_bytes = options.size_bytes;
  report.transfers = outcome->history.transfers;
  report.links = std::move(outcome->links);
  report.critical_path = critical_path(program, outcome->history);
  if (options.timeline) report.timeline = timeline(outcome->history);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_start;
  report.wall_s = wall.count();
  return report;
}

}  // namespace espalier

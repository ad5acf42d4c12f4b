// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "report/counted_in.h"
#include "report/objects.h"
#include "report/page/channels.h"
#include "report/page/parts.h"
#include "report/page/rows.h"
#include "run/target.h"
#include "scenarios/folding.h"

namespace espalier {

namespace {

/// An op may have thousands of operands.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMostBytes = 160;
  return text.size() <= kMostBytes ? text : text.substr(0, kMostBytes) + " ...";
}

const char* kind_of(const Op& op) {
  if (op.kind == OpKind::compute) return "compute";
  if (op.kind == OpKind::wait) return "wait";
  return op.src_count > 1 ? "combine" : "copy";
}

/// Of the ops on the rows that are shown the longest, and those of the critical path; in the order
/// in which they start.
std::vector<OpTiming> shown_ops(const PagedRun& run, const Rows& rows, std::size_t most) {
  const RunReport& report = run.outcome.report;
  const std::set<OpId> critical = critical_ops(report);
  std::vector<OpTiming> ops;
  std::ranges::copy_if(report.timeline, std::back_inserter(ops), [&](const OpTiming& timing) {
    return rows.of(run.outcome.program->ops[timing.op]) >= 0;
  });
  const auto is_first = [&](const OpTiming& a, const OpTiming& b) {
    const bool is_a = critical.contains(report.number(a.op));
    if (is_a != critical.contains(report.number(b.op))) return is_a;
    const double a_s = a.end_s - a.start_s;
    const double b_s = b.end_s - b.start_s;
    return a_s != b_s ? a_s > b_s : a.op < b.op;
  };
  if (ops.size() > most) {
    std::ranges::nth_element(ops, ops.begin() + static_cast<std::ptrdiff_t>(most), is_first);
    ops.resize(most);
  }
  std::ranges::sort(ops, [](const OpTiming& a, const OpTiming& b) {
    return a.start_s != b.start_s ? a.start_s < b.start_s : a.op < b.op;
  });
  return ops;
}

Json ops_json(const PagedRun& run, const PageDetail& detail, const Rows& rows, Channels* channels,
              const std::vector<int>& channel_number) {
  const Program& program = *run.outcome.program;
  const RunReport& report = run.outcome.report;
  Json ids = Json::array(), row = Json::array(), start = Json::array(), hold = Json::array(),
       landing = Json::array(), kind = Json::array(), what = Json::array(), over = Json::array();
  for (const OpTiming& timing : shown_ops(run, rows, detail.ops)) {
    const Op& op = program.ops[timing.op];
    ids.push_back(report.number(timing.op));
    row.push_back(rows.of(op));
    start.push_back(micros(timing.start_s));
    hold.push_back(micros(timing.end_s - timing.start_s));
    landing.push_back(micros(timing.landing_s));
    kind.push_back(kind_of(op));
    what.push_back(shortened(run.op_names.empty() ? op_text(program, report, timing.op)
                                                  : run.op_names[timing.op]));
    std::set<int> crossed;
    if (channels != nullptr) {
      for (const int channel : channels->of(op)) {
        const int number = channel_number[static_cast<std::size_t>(channel)];
        if (number >= 0) crossed.insert(number);
      }
    }
    over.push_back(crossed);
  }
  return {{"id", std::move(ids)},
          {"row", std::move(row)},
          {"start_us", std::move(start)},
          {"hold_us", std::move(hold)},
          {"landing_us", std::move(landing)},
          {"kind", std::move(kind)},
          {"what", std::move(what)},
          {"channels", std::move(over)}};
}

Json critical_json(const RunReport& report) {
  Json op = Json::array(), start = Json::array(), end = Json::array(), what = Json::array(),
       waited = Json::array();
  if (report.simulated) {
    for (const CriticalStep& step : report.simulated->critical_path) {
      op.push_back(step.op);
      start.push_back(micros(step.start_s));
      end.push_back(micros(step.end_s));
      what.push_back(shortened(step.what));
      waited.push_back(step.waited_for);
    }
  }
  return {{"op", std::move(op)},
          {"start_us", std::move(start)},
          {"end_us", std::move(end)},
          {"what", std::move(what)},
          {"waited_for", std::move(waited)},
          {"steps", report.simulated ? report.simulated->critical_steps : 0}};
}

Json rank_nodes(const Placement& placement, const DrawnMachines::One& machine) {
  Json ranks = Json::array();
  for (const NodeId gpu : placement.ranks) {
    ranks.push_back(machine.node_index[static_cast<std::size_t>(gpu)]);
  }
  return ranks;
}

/// The router of the runtime that the outcome ran under.
Router router_of(const PagedRun& run) {
  const Outcome& outcome = run.outcome;
  const Topology& topology = *run.machine->topology;
  std::string spec = outcome.profile.empty() ? outcome.query.profile : outcome.profile;
  if (!outcome.protocol.empty() && spec.find(':') == std::string::npos) {
    spec += ":" + outcome.protocol;
  }
  return Router(topology, topology.profile(spec), outcome.query.links);
}

}  // namespace

Json run_json(const PagedRun& run, const PageDetail& detail, DrawnMachines& machines) {
  const Outcome& outcome = run.outcome;
  const RunReport& report = outcome.report;
  const Program& program = *outcome.program;
  Json json = {{"name", run.name},
               {"backend", outcome.backend},
               {"collective", to_string(outcome.query.collective)},
               {"time_us", micros(report.time_s)},
               {"size_bytes", report.message_bytes},
               {"ops_in_all", report.number(static_cast<OpId>(program.ops.size()))}};
  const Rows rows(run);
  const Placement* const placement = run.machine ? &run.machine->placement : nullptr;
  // Where not every op is drawn, what lies between those that are is shown by how busy rows are.
  const bool are_all_drawn = rows.ops() <= detail.ops && report.repeated() == nullptr;
  json["rows"] = rows.json(are_all_drawn ? 0 : detail.bins / 4);
  json["rows_in_all"] = rows.in_all();
  json["ops_in_rows"] = rows.ops();
  json["critical"] = critical_json(report);
  if (report.repeated() != nullptr) json["counted_in"] = counted_rounds(*report.repeated());
  if (run.machine == nullptr) {
    json["machine"] = nullptr;
    json["ops"] = ops_json(run, detail, rows, nullptr, {});
    return json;
  }
  const int number = machines.number(*run.machine->topology);
  DrawnMachines::One& machine = machines.at(number);
  const Router router = router_of(run);
  const std::optional<Rotation> rotation =
      program.fold.is_folded() ? find_rotation(*run.machine->topology, *placement, program.fold)
                               : std::nullopt;
  const Target target{&router, *placement, rotation ? &*rotation : nullptr};
  Channels channels(program, target);
  load_in_time(program, report, detail.bins, channels);
  // Routes that only ops without bytes take are no channels.
  std::vector<int> numbers;
  json["machine"] = number;
  json["ranks"] = rank_nodes(*placement, machine);
  json["bins"] = detail.bins;
  json["folded"] = program.fold.is_folded();
  json["channels_in_all"] = channels.all().size();
  json["channels"] =
      channels_json(channels.all(), detail.links, target.rotation, machine, &numbers);
  json["ops"] = ops_json(run, detail, rows, &channels, numbers);
  if (run.proof) json["proof"] = proof_json(*run.proof, machine);
  return json;
}

Json paged_plan_json(const Planned& plan, const BoundProof* proof, const PageDetail& detail,
                     DrawnMachines& machines) {
  const Topology& topology = *plan.machine->topology;
  const int number = machines.number(topology);
  DrawnMachines::One& machine = machines.at(number);
  std::vector<Channel> channels;
  for (const LinkLoad& load : plan.loads) {
    if (load.units == 0) continue;
    Channel channel;
    channel.name = link_name(topology, load.hop.link, load.hop.forward);
    channel.link = load.hop.link;
    channel.forward = load.hop.forward;
    channel.capacity_gbps = load.capacity_gbps;
    channel.utilization = share_used(load, plan.forest);
    channels.push_back(std::move(channel));
  }
  Json json = {{"name", plan.query.algorithm},
               {"machine", number},
               {"ranks", rank_nodes(plan.machine->placement, machine)},
               {"channels", channels_json(channels, detail.links, nullptr, machine, nullptr)},
               {"report", plan_json(plan)}};
  json["report"].erase("link_loads");
  Json& trees = json["report"]["trees"];
  json["trees_in_all"] = trees.size();
  if (trees.size() > detail.trees)
    trees.erase(trees.begin() + static_cast<std::ptrdiff_t>(detail.trees), trees.end());
  if (proof != nullptr) json["proof"] = proof_json(*proof, machine);
  return json;
}

Json iteration_json(const TrainingOutcome& outcome, const PageDetail& detail) {
  Json buckets = Json::array();
  for (const BucketOutcome& bucket : outcome.buckets) {
    if (buckets.size() == detail.buckets) break;
    buckets.push_back({{"tensors", bucket.bucket.last - bucket.bucket.first},
                       {"bytes", bucket.bytes},
                       {"algorithm", bucket.algorithm},
                       {"ready_us", micros(bucket.ready_s)},
                       {"begin_us", micros(bucket.begin_s)},
                       {"end_us", micros(bucket.end_s)}});
  }
  return {{"model", outcome.query.model->name},
          {"algorithm", outcome.query.exchange.algorithm},
          {"topology", outcome.query.exchange.topology},
          {"ranks", outcome.ranks},
          {"fusion_bytes", outcome.query.fusion_bytes},
          {"overlap", outcome.query.overlap},
          {"compute_us", micros(outcome.compute_s)},
          {"communication_us", micros(outcome.communication_s)},
          {"exposed_us", micros(outcome.exposed_s())},
          {"iteration_us", micros(outcome.iteration_s())},
          {"samples_per_s", drawn(outcome.samples_per_s())},
          {"efficiency", drawn(outcome.efficiency())},
          {"buckets_in_all", outcome.buckets.size()},
          {"buckets", std::move(buckets)}};
}

}  // namespace espalier

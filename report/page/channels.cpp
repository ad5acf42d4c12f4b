// SPDX-License-Identifier: Apache-2.0
#include "report/page/channels.h"

#include <algorithm>

#include "report/counted_in.h"
#include "run/switches.h"

namespace espalier {

int Channels::channel_of(const Hop& of_route) {
  const Topology& machine = target_.router->topology();
  const Hop hop = target_.rotation == nullptr ? of_route : target_.rotation->first(of_route);
  const bool forward = hop.forward || machine.link(hop.link).duplex != Duplex::full;
  std::string name = link_name(machine, hop.link, forward);
  const auto [at, is_new] = by_name_.emplace(name, static_cast<int>(channels_.size()));
  if (is_new) {
    Channel channel;
    channel.name = std::move(name);
    channel.link = hop.link;
    channel.forward = forward;
    channel.capacity_gbps = target_.router->capacity_gbps(hop.link);
    channels_.push_back(std::move(channel));
  }
  return at->second;
}

const std::vector<int>& Channels::crossed(NodeId from, NodeId to, int via) {
  const auto [at, is_new] = by_route_.try_emplace({from, to, via});
  if (!is_new) return at->second;
  const Router& router = *target_.router;
  const Route* const route =
      via < 0 ? router.route(from, to)
              : router.route(from, to, program_.vias[static_cast<std::size_t>(via)]);
  if (route == nullptr) return at->second;
  for (const Hop& hop : route->hops) {
    const int channel = channel_of(hop);
    // A medium is used once, however often a route crosses it.
    if (std::ranges::count(at->second, channel) == 0) at->second.push_back(channel);
  }
  return at->second;
}

const std::vector<int>& Channels::of(const Op& op) {
  of_op_.clear();
  const auto add = [&](const std::vector<int>& crossed_by_one) {
    of_op_.insert(of_op_.end(), crossed_by_one.begin(), crossed_by_one.end());
  };
  const auto node = [&](PlaceId place) { return node_of(program_, target_.placement, place); };
  if (op.in_switch) {
    const std::optional<SwitchUse> in = switch_of(program_, op, target_);
    if (!in) return of_op_;
    for (const Operand& source : program_.sources_of(op)) {
      add(crossed(node(source.place), in->node, -1));
    }
    for_each_destination(program_, op, [&](const Operand& destination) {
      add(crossed(in->node, node(destination.place), -1));
    });
    return of_op_;
  }
  for_each_transfer(program_, op,
                    [&](PlaceId from, PlaceId to) { add(crossed(node(from), node(to), op.via)); });
  return of_op_;
}

namespace {

/// Adds `amount` to the bins between two times, in parts of the bins' width.
void spread(double begin, double end, double amount, std::vector<double>& load) {
  const auto bins = static_cast<double>(load.size());
  begin = std::clamp(begin, 0.0, bins);
  end = std::clamp(end, begin, bins);
  if (end - begin < 1e-9) {
    load[static_cast<std::size_t>(std::min(begin, bins - 1))] += amount;
    return;
  }
  const double rate = amount / (end - begin);
  for (auto bin = static_cast<std::size_t>(begin); bin < load.size(); ++bin) {
    const auto from = static_cast<double>(bin);
    if (from >= end) break;
    load[bin] += rate * (std::min(end, from + 1) - std::max(begin, from));
  }
}

}  // namespace

void load_in_time(const Program& program, const RunReport& report, int bins, Channels& channels) {
  if (report.time_s <= 0) return;
  const double bin_s = report.time_s / bins;
  std::vector<double> units;  // by channel: what ops put on it
  const CountedOps rounds(program, report);
  for (const OpTiming& timing : report.timeline) {
    const Op& op = program.ops[timing.op];
    const std::vector<int>& crossed = channels.of(op);
    const auto more = rounds.of(timing);
    const std::int64_t times = 1 + (more ? more->times : 0);
    for (std::size_t i = 0; i < crossed.size(); ++i) {
      Channel& channel = channels.at(crossed[i]);
      if (units.size() < channels.all().size()) units.resize(channels.all().size());
      if (channel.load.empty()) channel.load.resize(static_cast<std::size_t>(bins));
      if (std::find(crossed.begin(), crossed.begin() + static_cast<std::ptrdiff_t>(i),
                    crossed[i]) == crossed.begin() + static_cast<std::ptrdiff_t>(i)) {
        channel.ops += times;
      }
      units[static_cast<std::size_t>(crossed[i])] += static_cast<double>(times) * op.length;
      spread(timing.start_s / bin_s, timing.end_s / bin_s, op.length, channel.load);
      if (!more) continue;
      spread(more->start_s / bin_s, more->end_s / bin_s,
             static_cast<double>(more->times) * op.length, channel.load);
    }
  }
  std::unordered_map<std::string_view, const LinkUse*> counted;
  if (report.simulated) {
    for (const LinkUse& use : report.simulated->links) counted.emplace(use.name, &use);
  }
  const std::int64_t blocks = program.contract.units / block_units(program.contract);
  const std::int64_t all_units =
      program.contract.units +
      (report.repeated() == nullptr ? 0 : blocks * report.repeated()->units_longer());
  const double bytes_per_unit =
      static_cast<double>(report.message_bytes) / static_cast<double>(all_units);
  for (std::size_t i = 0; i < units.size(); ++i) {
    Channel& channel = channels.at(static_cast<int>(i));
    channel.bytes = units[i] * bytes_per_unit;
    channel.busy_s = channel.bytes / (channel.capacity_gbps * 1e9);
    // The wire carries more than the data: flags, and what switches read twice.
    if (const auto use = counted.find(channel.name); use != counted.end()) {
      channel.bytes = use->second->bytes;
      channel.busy_s = use->second->busy_s;
    }
    channel.utilization = channel.busy_s / report.time_s;
    const double share = units[i] > 0 ? channel.busy_s / (units[i] * bin_s) : 0;
    for (double& load : channel.load) load *= share;
  }
}

}  // namespace espalier

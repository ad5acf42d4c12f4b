// SPDX-License-Identifier: Apache-2.0
#include "report/page/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/print.h"
#include "report/counted_in.h"
#include "report/page/parts.h"

namespace espalier {

namespace {

/// Rows that a timeline has room for.
constexpr std::size_t kMostRows = 256;

}  // namespace

std::set<OpId> critical_ops(const RunReport& report) {
  std::set<OpId> critical;
  if (report.simulated) {
    for (const CriticalStep& step : report.simulated->critical_path) critical.insert(step.op);
  }
  return critical;
}

Rows::Rows(const PagedRun& run) : run_(run) {
  const Program& program = *run.outcome.program;
  const RunReport& report = run.outcome.report;
  const std::vector<OpTiming>& timeline = report.timeline;
  std::set<Lane> lanes;
  for (const OpTiming& timing : timeline) {
    const Op& op = program.ops[timing.op];
    lanes.emplace(op.at, int{op.lane});
  }
  by_place_ = lanes.size() > kMostRows;

  struct Use {
    bool is_critical = false;
    double busy_s = 0;
    std::size_t ops = 0;
  };
  std::map<Lane, Use> uses;
  const std::set<OpId> critical = critical_ops(report);
  const CountedOps counted(program, report);
  for (const OpTiming& timing : timeline) {
    const Op& op = program.ops[timing.op];
    Use& use = uses[{op.at, by_place_ ? 0 : int{op.lane}}];
    use.is_critical |= critical.contains(report.number(timing.op));
    use.busy_s += timing.end_s - timing.start_s;
    ++use.ops;
    if (const auto more = counted.of(timing)) {
      use.busy_s += more->busy_s;
      use.ops += static_cast<std::size_t>(more->times);
    }
  }
  count_ = uses.size();
  std::vector<std::pair<Lane, Use>> order(uses.begin(), uses.end());
  if (order.size() > kMostRows) {
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
      const Use& x = a.second;
      const Use& y = b.second;
      return x.is_critical != y.is_critical ? x.is_critical : x.busy_s > y.busy_s;
    });
    order.resize(kMostRows);
    std::ranges::sort(order, {}, [](const auto& one) { return one.first; });
  }
  for (const auto& [lane, use] : order) {
    row_.emplace(lane, static_cast<int>(shown_.size()));
    shown_.push_back(lane);
    ops_ += use.ops;
  }
}

int Rows::of(const Op& op) const {
  const auto found = row_.find({op.at, by_place_ ? 0 : int{op.lane}});
  return found == row_.end() ? -1 : found->second;
}

/// Ops that share a place's row may be on the way at the same time: a row is no busier than busy.
std::vector<std::vector<double>> Rows::busy_shares(int bins) const {
  std::vector<std::vector<double>> shares(shown_.size(),
                                          std::vector<double>(static_cast<std::size_t>(bins)));
  const RunReport& report = run_.outcome.report;
  const double each_s = report.time_s / bins;
  if (!(each_s > 0)) return shares;
  const auto bin_of = [&](double at_s) {
    return std::clamp(static_cast<int>(at_s / each_s), 0, bins - 1);
  };
  // Busy for a part of what is between two times.
  const auto add = [&](std::vector<double>& of_row, double start_s, double end_s, double part) {
    for (int bin = bin_of(start_s); bin <= bin_of(end_s); ++bin) {
      const double inside_s = std::min(end_s, (bin + 1) * each_s) - std::max(start_s, bin * each_s);
      double& share = of_row[static_cast<std::size_t>(bin)];
      share = std::min(1.0, share + part * std::max(0.0, inside_s) / each_s);
    }
  };
  const CountedOps counted(*run_.outcome.program, report);
  for (const OpTiming& timing : report.timeline) {
    const int row = of(run_.outcome.program->ops[timing.op]);
    if (row < 0) continue;
    std::vector<double>& of_row = shares[static_cast<std::size_t>(row)];
    add(of_row, timing.start_s, timing.end_s, 1);
    const auto more = counted.of(timing);
    if (!more || more->end_s <= more->start_s) continue;
    add(of_row, more->start_s, more->end_s, more->busy_s / (more->end_s - more->start_s));
  }
  return shares;
}

Json Rows::json(int bins) const {
  const Program& program = *run_.outcome.program;
  const std::vector<std::vector<double>> shares =
      bins > 0 ? busy_shares(bins) : std::vector<std::vector<double>>();
  Json rows = Json::array();
  for (const auto& [place, lane] : shown_) {
    std::string name = place_name(program, place);
    if (run_.machine != nullptr) {
      const NodeId node = node_of(program, run_.machine->placement, place);
      name += " " + run_.machine->topology->node(node).name;
    }
    if (!by_place_) name += fmt::format(" lane {}", lane);
    Json row = {{"name", std::move(name)}, {"place", place}};
    if (bins > 0) row["busy"] = shares_text(shares[rows.size()]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace espalier

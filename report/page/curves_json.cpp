// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "report/page/parts.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// What the curves of one chart have in common.
struct ChartKey {
  std::string block;
  std::string topology;
  int ranks = 0;
  std::vector<int> gpus;
  Collective collective = Collective::allreduce;
  std::string profile;
  std::string executed_by;  ///< a back end; empty: predictions, and what was measured beside them
  auto operator<=>(const ChartKey&) const = default;
};

ChartKey key_of(const Outcome& one) {
  std::string block = one.asked_by.scenario;
  if (!one.asked_by.block.empty()) block += ": " + one.asked_by.block;
  return {std::move(block),     one.query.topology, one.ranks, one.query.gpus,
          one.query.collective, one.query.profile,  {}};
}

std::string title_of(const ChartKey& key, const Outcome& one) {
  std::string title =
      fmt::format("{}, {}", to_string(key.collective), describe_ranks(one.query, one.ranks));
  if (!key.executed_by.empty()) {
    title += ", run on " + key.executed_by;
  } else if (!key.topology.empty()) {
    title += ", profile " + key.profile;
  }
  return key.block.empty() ? title : key.block + " (" + title + ")";
}

/// The points of a curve by size, of which the first asked counts.
struct Curve {
  std::string kind;  ///< "predicted", "candidate", "measured", "nccl" or "bound"
  std::map<std::int64_t, Json> points;
};

Json point_of(const PagedPoint& point, bool is_measured) {
  const Outcome& one = point.outcome;
  // What a benchmark prints is the median of its runs.
  const bool has_median =
      is_measured && one.report.executed && one.report.executed->median_time_s > 0;
  const double time_s = has_median ? one.report.executed->median_time_s
                                   : point.benchmark_s.value_or(one.report.time_s);
  Json json = {{"size", one.report.message_bytes}, {"time_us", drawn(time_s * 1e6)}};
  if (!one.chosen.empty()) json["chosen"] = one.chosen;
  if (one.chunk_bytes > 0) json["chunk"] = one.chunk_bytes;
  if (one.report.executed && one.report.executed->max_time_s > 0) {
    json["min_us"] = drawn(one.report.executed->min_time_s * 1e6);
    json["max_us"] = drawn(one.report.executed->max_time_s * 1e6);
  }
  if (one.report.wrong_elements() > 0) json["wrong"] = one.report.wrong_elements();
  if (!point.command.empty()) json["command"] = point.command;
  if (point.measured_speedup) json["speedup"] = drawn(*point.measured_speedup);
  if (is_measured) return json;
  // Bound, error and NCCL are those of predictions.
  if (one.error) json["error"] = drawn(one.error->relative);
  if (one.benchmark_s > 0) json["bench_us"] = drawn(one.benchmark_s * 1e6);
  if (one.bound) json["fraction"] = drawn(one.fraction);
  if (const auto speedup = speedup_of(one)) json["speedup"] = drawn(*speedup);
  return json;
}

class Charts {
 public:
  /// `is_nccl_asked`: it is one of the algorithms, and needs no curve beside that.
  explicit Charts(bool is_nccl_asked) : is_nccl_asked_(is_nccl_asked) {}

  void add_candidate(const PagedPoint& point) {
    const Outcome& one = point.outcome;
    chart_of(key_of(one), one)
        .curve(one.query.algorithm, "candidate")
        .points.emplace(one.report.message_bytes, point_of(point, true));
  }

  /// `executed_by`: see ChartKey.
  void add(const PagedPoint& point, bool is_measured, const std::string& executed_by) {
    const Outcome& one = point.outcome;
    ChartKey key = key_of(one);
    key.executed_by = executed_by;
    Chart& chart = chart_of(key, one);
    std::string name = one.query.algorithm;
    if (one.query.in_place && is_measured) name += ", in place";
    const std::int64_t size = one.report.message_bytes;
    chart.curve(is_measured ? name + ", measured" : name, is_measured ? "measured" : "predicted")
        .points.emplace(size, point_of(point, is_measured));
    if (is_measured) return;
    if (one.nccl && one.nccl->time_s > 0 && !is_nccl_asked_) {
      Json nccl = {{"size", size},
                   {"time_us", drawn(one.nccl->time_s * 1e6)},
                   {"chosen", one.nccl->algorithm},
                   {"error", drawn(one.nccl->relative_error)}};
      if (!point.nccl_command.empty()) nccl["command"] = point.nccl_command;
      chart.curve("NCCL", "nccl").points.emplace(size, std::move(nccl));
    }
    if (one.bound && one.report.time_s > 0 && one.least_s() > 0) {
      // Where algorithms are bounded otherwise, what holds for all of them is the least.
      const auto known = chart.least_s[links_used(one)].emplace(size, one.least_s()).first;
      known->second = std::min(known->second, one.least_s());
    }
  }

  Json json() {
    Json charts = Json::array();
    for (Chart& chart : charts_) {
      for (const auto& [links, least] : chart.least_s) {
        const std::string name =
            chart.least_s.size() == 1 ? "bound" : fmt::format("bound, {} links", links);
        for (const auto& [size, least_s] : least) {
          chart.curve(name, "bound")
              .points.emplace(size, Json{{"size", size}, {"time_us", drawn(least_s * 1e6)}});
        }
      }
      Json curves = Json::array();
      for (const auto& [name, curve] : chart.curves) {
        Json points = Json::array();
        for (const auto& [size, point] : curve.points) points.push_back(point);
        curves.push_back({{"name", name}, {"kind", curve.kind}, {"points", std::move(points)}});
      }
      charts.push_back({{"title", chart.title},
                        {"busbw_factor", drawn(chart.busbw_factor)},
                        {"curves", std::move(curves)}});
    }
    return charts;
  }

 private:
  struct Chart {
    std::string title;
    double busbw_factor = 1;
    std::vector<std::pair<std::string, Curve>> curves;  ///< in the order of their first point
    /// By the links that a bound is for and size: those of all links or of the fabric alone.
    std::map<std::string, std::map<std::int64_t, double>> least_s;

    Curve& curve(const std::string& name, const std::string& kind) {
      for (auto& [known, curve] : curves) {
        if (known == name && curve.kind == kind) return curve;
      }
      return curves.emplace_back(name, Curve{kind, {}}).second;
    }
  };

  Chart& chart_of(const ChartKey& key, const Outcome& one) {
    const auto [at, is_new] = number_.emplace(key, charts_.size());
    if (is_new) {
      charts_.push_back({title_of(key, one), busbw_factor(key.collective, one.ranks), {}, {}});
    }
    return charts_[at->second];
  }

  const bool is_nccl_asked_;
  std::map<ChartKey, std::size_t> number_;
  std::vector<Chart> charts_;
};

}  // namespace

Json curves_json(const Page& page) {
  Charts charts(std::ranges::any_of(page.points, [](const PagedPoint& point) {
    return point.outcome.query.algorithm == "nccl";
  }));
  for (const PagedPoint& point : page.points) {
    const bool is_executed = point.outcome.report.executed.has_value();
    charts.add(point, is_executed, is_executed ? point.outcome.backend : "");
  }
  for (const PagedPoint& point : page.measured) charts.add(point, true, "");
  for (const PagedPoint& point : page.candidates) charts.add_candidate(point);
  return charts.json();
}

}  // namespace espalier

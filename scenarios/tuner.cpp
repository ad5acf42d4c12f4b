// SPDX-License-Identifier: Apache-2.0
#include "scenarios/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/program_file.h"
#include "core/check.h"
#include "core/time_limit.h"
#include "core/units.h"
#include "scenarios/turns.h"

namespace espalier {

namespace {

/// Both ends, then the middle of every stretch: what is known on both sides of a size rules out
/// most candidates there.
std::vector<std::size_t> bisection_order(std::size_t count) {
  std::vector<std::size_t> order = {count - 1};
  if (count > 1) order.push_back(0);
  std::vector<std::pair<std::size_t, std::size_t>> stretches = {{0, count - 1}};
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const auto [first, last] = stretches[i];
    if (last - first < 2) continue;
    const std::size_t middle = first + (last - first) / 2;
    order.push_back(middle);
    stretches.emplace_back(first, middle);
    stretches.emplace_back(middle, last);
  }
  return order;
}

Query with(Query question, const std::string& algorithm, std::int64_t size_bytes) {
  question.algorithm = algorithm;
  question.size_bytes = size_bytes;
  return question;
}

/// No slower and no narrower.
bool covers(const FrontPoint& a, const FrontPoint& b) {
  return !shorter(b.latency_s, a.latency_s) && a.algbw_gbps >= b.algbw_gbps * (1 - kSameTime);
}

/// Whether a point other than `index` is better; of equal ones the first is better.
bool beaten(const std::vector<FrontPoint>& points, std::size_t index, bool by_variants_only) {
  const auto name = [](const FrontPoint& point) {
    if (is_program_file(point.algorithm)) return point.algorithm;
    return point.algorithm.substr(0, point.algorithm.find(':'));
  };
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == index || (by_variants_only && name(points[i]) != name(points[index]))) continue;
    if (covers(points[i], points[index]) && (i < index || !covers(points[index], points[i]))) {
      return true;
    }
  }
  return false;
}

std::vector<FrontPoint> front_of(const std::vector<FrontPoint>& points) {
  std::vector<FrontPoint> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (beaten(points, i, true)) continue;
    front.push_back(points[i]);
    front.back().on_front = !beaten(points, i, false);
  }
  std::ranges::stable_sort(front, {}, [](const FrontPoint& point) {
    return std::pair(point.latency_s, -point.algbw_gbps);
  });
  return front;
}

/// Neighbours with the same choice become one row.
std::vector<TuningRow> joined(const std::vector<TuningRow>& choices) {
  std::vector<TuningRow> rows;
  for (const TuningRow& choice : choices) {
    const bool same = !rows.empty() && rows.back().algorithm == choice.algorithm &&
                      rows.back().chunk_bytes == choice.chunk_bytes;
    if (same) rows.pop_back();
    rows.push_back(choice);
  }
  return rows;
}

[[noreturn]] void throw_nothing_possible(
    const std::vector<std::pair<std::string, std::string>>& skipped) {
  DiagnosticList problems;
  for (const auto& [algorithm, reason] : skipped) {
    problems.add({}, fmt::format("{} is not possible here: {}", algorithm, reason));
  }
  problems.throw_if_any(ErrorKind::unsupported);
  CHECK(false);
}

TuningTable table_for(const Query& question, int ranks) {
  TuningTable table;
  table.machine = question.topology;
  table.gpus = question.gpus;
  table.relays = question.relays;
  table.ranks = ranks;
  table.collective = question.collective;
  table.root = info(question.collective).rooted ? question.root : 0;
  table.profile = question.profile;
  table.links = question.links;
  table.in_place = question.in_place;
  return table;
}

}  // namespace

std::vector<std::string> variants(const Algorithm& algorithm) {
  std::vector<std::string> all = {""};
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    if (parameter.weighed) continue;  // by every simulation
    const std::size_t before = all.size();
    for (const std::int64_t value : parameter.tried) {
      for (std::size_t i = 0; i < before; ++i) {
        all.push_back(
            fmt::format("{}{}{}={}", all[i], all[i].empty() ? "" : ",", parameter.name, value));
      }
    }
  }
  // Who compares all of the catalogue wants no one that stands for the best of it.
  if (is_portfolio(parse_algorithm(algorithm.name))) {
    for (std::string& one : all) {
      one += fmt::format("{}{}=1", one.empty() ? "" : ",", kPlanItself);
    }
  }
  for (std::string& one : all) {
    one = fmt::format("{}{}{}", algorithm.name, one.empty() ? "" : ":", one);
  }
  return all;
}

std::vector<std::string> tuning_candidates(Collective collective) {
  std::vector<std::string> all;
  for (const std::string& name : Study::applicable(collective)) {
    const std::vector<std::string> more = variants(*find_algorithm(name));
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::optional<TuningChoice> choose_algorithm(Study& study, const Query& question,
                                             const std::vector<std::string>& candidates) {
  std::vector<std::pair<double, std::size_t>> order;  // what it takes at least, and which
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Query query = with(question, candidates[i], question.size_bytes);
    order.emplace_back(study.shortest_time_s(query), i);
  }
  std::ranges::sort(order);
  // Those that plan take long: what the others leave over is theirs.
  if (std::isfinite(time_left_s())) {
    std::stable_partition(order.begin(), order.end(), [&](const auto& one) {
      return !is_costly(study, candidates[one.second]);
    });
  }
  std::optional<TuningChoice> best;
  std::size_t best_index = 0;
  std::size_t left = order.size();
  for (const auto& [least_s, index] : order) {
    const TimeLimit share = TimeLimit::share_of_rest(left--);
    if (best && shorter(best->prediction.best.time_s, least_s)) continue;
    if (best && is_time_up()) break;
    const Prediction prediction =
        study.predict(with(question, candidates[index], question.size_bytes));
    if (prediction.skipped) continue;
    const bool same = best && !shorter(prediction.best.time_s, best->prediction.best.time_s) &&
                      !shorter(best->prediction.best.time_s, prediction.best.time_s);
    if (!best || shorter(prediction.best.time_s, best->prediction.best.time_s) ||
        (same && index < best_index)) {
      best = {candidates[index], prediction};
      best_index = index;
    }
  }
  return best;
}

Tuning tune(Study& study, const Query& question, std::vector<std::int64_t> sizes,
            const std::vector<std::string>& candidates,
            const std::function<void(const std::string& what)>& on_step) {
  CHECK(!sizes.empty());
  const TimeLimit own(std::numeric_limits<double>::infinity());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());

  Tuning tuning;
  tuning.table = table_for(question, study.machine(question).ranks());
  // First of all the ends, where every candidate is compared: they rule out most of the rest.
  std::vector<FrontPoint> points;
  std::vector<std::string> compared;
  std::vector<std::string> order = candidates;
  if (std::isfinite(time_left_s())) {
    std::stable_partition(order.begin(), order.end(),
                          [&](const std::string& one) { return !is_costly(study, one); });
  }
  std::size_t steps = order.size() + sizes.size();
  for (const std::string& candidate : order) {
    if (on_step) on_step(candidate);
    const TimeLimit share = TimeLimit::share_of_rest(steps--);
    if (!points.empty() && is_time_up()) {
      tuning.unasked.push_back(candidate);
      continue;
    }
    compared.push_back(candidate);
    const Prediction small = study.predict(with(question, candidate, sizes.front()));
    if (small.skipped) {
      tuning.skipped.emplace_back(candidate, *small.skipped);
      continue;
    }
    const Prediction large = study.predict(with(question, candidate, sizes.back()));
    points.push_back({candidate, small.best.time_s, large.best.algbw_gbps, false});
  }
  if (points.empty()) throw_nothing_possible(tuning.skipped);
  tuning.front = front_of(points);

  tuning.choices.resize(sizes.size());
  for (const std::size_t i : bisection_order(sizes.size())) {
    if (on_step) on_step(format_bytes(sizes[i]));
    const TimeLimit share = TimeLimit::share_of_rest(steps--);
    const auto choice = choose_algorithm(study, with(question, {}, sizes[i]), compared);
    CHECK(choice);  // What is possible does not depend on the size.
    tuning.choices[i] = {sizes[i], choice->prediction.algorithm,
                         choice->prediction.best.chunk_bytes, choice->prediction.best.time_s};
  }
  tuning.table.rows = joined(tuning.choices);
  tuning.budget = own.granted();
  return tuning;
}

}  // namespace espalier

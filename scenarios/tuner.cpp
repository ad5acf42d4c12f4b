// SPDX-License-Identifier: Apache-2.0
#include "scenarios/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "algorithms/program_file.h"
#include "core/check.h"
#include "core/time_limit.h"
#include "scenarios/chooser.h"
#include "scenarios/forecast.h"
#include "scenarios/turns.h"

namespace espalier {

namespace {

Query with_candidate(Query question, const std::string& algorithm) {
  question.algorithm = algorithm;
  return question;
}

/// No slower and no narrower.
bool covers(const FrontPoint& a, const FrontPoint& b) {
  return !shorter(b.latency_s, a.latency_s) && a.algbw_gbps >= b.algbw_gbps * (1 - kSameTime);
}

/// Whether a point other than `index` is better; of equal ones the first is better.
bool beaten(const std::vector<FrontPoint>& points, std::size_t index, bool by_variants_only) {
  const auto name = [](const FrontPoint& point) { return name_of_variants(point.algorithm); };
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

/// All that was predicted.
std::vector<CandidateTimes> times_of(const SizeChooser& chooser) {
  std::vector<CandidateTimes> all;
  for (std::size_t i = 0; i < chooser.candidates().size(); ++i) {
    CandidateTimes one{chooser.candidates()[i], {}};
    for (std::size_t place = 0; place < chooser.sizes().size(); ++place) {
      if (!chooser.has_predicted(i, place)) continue;
      const Prediction& found = chooser.prediction(i, place);
      if (found.skipped) continue;
      one.times.push_back(
          {chooser.sizes()[place], found.algorithm, found.best.chunk_bytes, found.best.time_s});
    }
    if (!one.times.empty()) all.push_back(std::move(one));
  }
  return all;
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

double least_by(double time_s, std::int64_t bytes, std::int64_t wanted_bytes,
                const Topology& machine) {
  if (bytes <= wanted_bytes) return time_s;
  if (machine.has_working_sets()) return 0;
  return time_s * (static_cast<double>(wanted_bytes) / static_cast<double>(bytes));
}

double promised_s(double time_s, std::int64_t bytes, std::int64_t wanted_bytes) {
  constexpr double kMostMessages = 16;
  if (bytes >= wanted_bytes) return time_s;
  const double messages =
      static_cast<double>(wanted_bytes) / static_cast<double>(std::max<std::int64_t>(bytes, 1));
  return messages <= kMostMessages ? messages * time_s : std::numeric_limits<double>::infinity();
}

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

std::string name_of_variants(const std::string& algorithm) {
  if (is_program_file(algorithm)) return algorithm;
  return algorithm.substr(0, algorithm.find(':'));
}

std::vector<std::string> variants_of(const std::string& word) {
  const Algorithm* const algorithm = find_algorithm(word);
  return algorithm != nullptr ? variants(*algorithm) : std::vector{word};
}

std::vector<std::string> tuning_candidates(Collective collective) {
  std::vector<std::string> all;
  for (const std::string& name : Study::applicable(collective)) {
    const std::vector<std::string> more = variants(*find_algorithm(name));
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<std::string> portfolio_candidates(const AlgorithmChoice& choice,
                                              Collective collective) {
  AlgorithmChoice itself = choice;
  itself.parameters[std::string(kPlanItself)] = 1;
  std::vector<std::string> candidates = {spec_of(itself)};
  for (const std::string& name : Study::applicable(collective)) {
    // A library is not in the portfolio, but what it is compared with.
    if (name != itself.algorithm->name && !is_library(parse_algorithm(name))) {
      candidates.push_back(name);
    }
  }
  return candidates;
}

std::optional<std::vector<std::string>> candidates_of(Study& study, const Query& query) {
  if (query.topology.empty()) return std::nullopt;
  if (is_auto(query.algorithm)) return auto_candidates(query.algorithm, query.collective);
  if (is_chooser(query.algorithm)) return std::nullopt;
  const AlgorithmChoice& choice = study.choice(query.algorithm);
  if (!is_portfolio(choice)) return std::nullopt;
  return portfolio_candidates(choice, query.collective);
}

namespace {

/// A candidate of choose_algorithm.
struct Contestant {
  double least_s = 0;
  double most_s = std::numeric_limits<double>::infinity();
  bool is_known = false;  ///< so that it costs nothing to look at
  /// A plan: nothing takes longer to predict. The others know when it is out of reach.
  bool is_plan = false;
  bool is_quick = false;  ///< to predict
  double takes_s = 0;     ///< to predict it
  std::size_t index = 0;
  std::tuple<std::size_t, int, double> forecast = {};
};

/// Those that take long to predict last, so that others tell which of them are out of reach, and of
/// all others those that may be fastest first; or, where time is limited, those that promise most.
std::vector<Contestant> contestants(Study& study, Forecasts& forecasts, const Query& question,
                                    const std::vector<std::string>& candidates) {
  const bool hurries = std::isfinite(time_left_s());
  std::vector<Contestant> all;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Query query = with_candidate(question, candidates[i]);
    Contestant& one = all.emplace_back();
    one.index = i;
    one.least_s = study.shortest_time_s(query);
    if (!hurries) {
      one.is_plan = study.choice(candidates[i]).algorithm->plan != nullptr;
      one.is_quick = forecasts.of(query).is_quick();
      if (!one.is_quick) one.forecast = forecasts.of(query).order();
      continue;
    }
    one.most_s = study.longest_time_s(query);
    one.is_known = std::isfinite(one.most_s) && one.most_s <= one.least_s;
    if (std::isfinite(one.most_s)) continue;
    one.forecast = forecasts.of(query).order();
    one.takes_s = forecasts.of(query).takes_s;
  }
  std::ranges::sort(all, {}, [&](const Contestant& one) {
    return std::tuple(one.is_plan, !hurries && !one.is_quick, hurries ? one.most_s : one.least_s,
                      one.forecast, one.index);
  });
  return all;
}

/// Whether to look at one more, of which it is noted otherwise that it was left out.
bool has_time_for(double takes_s) {
  if (is_time_up()) return false;
  if (takes_s <= time_left_s()) return true;
  note_cut_short();
  return false;
}

}  // namespace

std::optional<TuningChoice> choose_algorithm(Study& study, const Query& question,
                                             const std::vector<std::string>& candidates) {
  const bool hurries = std::isfinite(time_left_s());
  Forecasts forecasts(study);
  std::optional<TuningChoice> best;
  std::size_t best_index = 0;
  const std::vector<Contestant> order = contestants(study, forecasts, question, candidates);
  std::size_t left = order.size();
  for (const Contestant& one : order) {
    const std::size_t index = one.index;
    const TimeLimit share = TimeLimit::share_of_rest(left--);
    if (best && shorter(best->prediction.best.time_s, one.least_s)) continue;
    if (best && hurries && !one.is_known && !has_time_for(one.takes_s)) continue;
    const bool is_bounded = best && !hurries;
    const Prediction prediction = study.predict(
        with_candidate(question, candidates[index]),
        is_bounded ? best->prediction.best.time_s : std::numeric_limits<double>::infinity());
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

std::vector<Query> chosen_queries(const Query& question, const Tuning& tuning) {
  std::vector<Query> queries;
  for (const TuningRow& choice : tuning.choices) {
    Query& query = queries.emplace_back(question);
    query.size_bytes = choice.up_to_bytes;
    query.algorithm = choice.algorithm;
    query.chunk_bytes = choice.chunk_bytes;
  }
  return queries;
}

Tuning tune(Study& study, const Query& question, std::vector<std::int64_t> sizes,
            const std::vector<std::string>& candidates, const PredictAll& predict_all,
            const std::function<void(std::int64_t size_bytes)>& on_chosen) {
  CHECK(!sizes.empty());
  const TimeLimit own(std::numeric_limits<double>::infinity());
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());

  Tuning tuning;
  tuning.table = table_for(question, study.machine(question).ranks());
  SizeChooser chooser(question, sizes, candidates, study.topology(question));
  choose_all(chooser, predict_all, on_chosen);
  std::vector<FrontPoint> points;
  const std::size_t last = sizes.size() - 1;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Prediction& small = chooser.prediction(i, 0);
    // Nothing where another variant beats it at both ends.
    const Prediction* const large =
        chooser.has_predicted(i, last) ? &chooser.prediction(i, last) : nullptr;
    if (small.skipped == kNoTimeLeft || (large != nullptr && large->skipped == kNoTimeLeft)) {
      if (!chooser.was_predicted(i)) tuning.unasked.push_back(candidates[i]);
    } else if (small.skipped) {
      tuning.skipped.emplace_back(candidates[i], *small.skipped);
    } else if (large != nullptr) {
      points.push_back({candidates[i], small.best.time_s, large->best.algbw_gbps, false});
    }
  }
  if (!chooser.choice(0)) throw_nothing_possible(tuning.skipped);
  tuning.front = front_of(points);
  tuning.candidates = times_of(chooser);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::optional<TuningChoice> choice = chooser.choice(i);
    CHECK(choice);  // What is possible does not depend on the size.
    tuning.choices.push_back({sizes[i], choice->prediction.algorithm,
                              choice->prediction.best.chunk_bytes, choice->prediction.best.time_s});
  }
  tuning.table.rows = joined(tuning.choices);
  tuning.budget = own.granted();
  return tuning;
}

}  // namespace espalier

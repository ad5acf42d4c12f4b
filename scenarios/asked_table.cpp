// SPDX-License-Identifier: Apache-2.0
#include "scenarios/asked_table.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/check.h"
#include "scenarios/chooser.h"
#include "scenarios/forecast.h"

namespace espalier {

namespace {

template <class Value>
Told<Value> told(const Json& record) {
  Told<Value> made;
  if (record.is_null()) return made;
  try {
    read_record(record, made.value.emplace());
  } catch (const Error&) {
    made.error = std::current_exception();
  }
  return made;
}

Query about(Query question, const std::string& algorithm) {
  question.algorithm = algorithm;
  return question;
}

}  // namespace

AskedTable::AskedTable(Study& study, StudyWorkers& workers, std::vector<Query> queries)
    : study_(study), workers_(workers), queries_(std::move(queries)) {
  find_choosers();
  // What choosers have to know beside the table's own questions comes first: plans take longest.
  for (const auto& [algorithm, choosing] : choosers_) ask_candidates(choosing);
  ask_questions();
  workers_.start();
}

void AskedTable::find_choosers() {
  Forecasts forecasts(study_);
  std::map<std::string, std::vector<std::int64_t>> sizes_of;
  std::map<std::string, std::vector<std::string>> candidates_by;
  for (const Query& query : queries_) {
    if (auto candidates = candidates_of(study_, query)) {
      candidates_by[query.algorithm] = std::move(*candidates);
      sizes_of[query.algorithm].push_back(query.size_bytes);
    } else {
      own_.emplace(query.algorithm, query.size_bytes);
    }
  }
  for (auto& [algorithm, sizes] : sizes_of) {
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    const std::vector<std::string>& candidates = candidates_by[algorithm];
    const auto others = std::ranges::count_if(candidates, [&, &all = sizes](const auto& candidate) {
      return !own_.contains({candidate, all.back()});
    });
    Choosing choosing{SizeChooser(about(queries_.front(), algorithm), sizes, candidates,
                                  study_.topology(queries_.front())),
                      others <= 1 || sizes.size() == 1};
    // A plan of its own takes longest, and must beat all others.
    const bool has_plan = !is_auto(algorithm) && is_portfolio(study_.choice(algorithm));
    const bool is_plan_last = has_plan && choosing.by_rows;
    std::vector<std::pair<const std::string*, Forecast>> slow;
    for (const std::string& candidate : candidates) {
      Query query = about(queries_.front(), candidate);
      query.size_bytes = sizes.back();
      const Forecast& forecast = forecasts.of(query);
      const bool is_plan = is_plan_last && &candidate == &candidates.front();
      if (!is_plan && !forecast.is_quick()) slow.emplace_back(&candidate, forecast);
    }
    std::ranges::stable_sort(slow, {}, [](const auto& one) { return one.second.order(); });
    if (is_plan_last) slow.emplace_back(&candidates.front(), Forecast{});
    for (const auto& [candidate, forecast] : slow) {
      choosing.turns.emplace(*candidate, static_cast<int>(choosing.turns.size()) + 1);
    }
    choosers_.emplace(algorithm, std::move(choosing));
  }
}

/// Those predictions that are needed whatever others say.
void AskedTable::ask_candidates(const Choosing& choosing) {
  const std::vector<std::int64_t>& sizes = choosing.chooser.sizes();
  for (const std::int64_t size_bytes : sizes) {
    const bool is_needed =
        size_bytes == sizes.front() || (!choosing.by_rows && size_bytes == sizes.back());
    if (!is_needed) continue;
    for (const std::string& candidate : choosing.chooser.candidates()) {
      if (choosing.turns.contains(candidate) || own_.contains({candidate, size_bytes})) continue;
      Query query = about(queries_.front(), candidate);
      query.size_bytes = size_bytes;
      predict(query);
    }
  }
}

void AskedTable::ask_questions() {
  const auto names_library = [&](const Query& query) {
    return !is_chooser(query.algorithm) && is_library(study_.choice(query.algorithm));
  };
  std::map<std::int64_t, const Query*> beside;  // which NCCL is simulated beside, by size
  for (const Query& query : queries_) {
    if (!query.against_nccl || choosers_.contains(query.algorithm)) continue;
    const Query*& one = beside.try_emplace(query.size_bytes, &query).first->second;
    // NCCL itself has been simulated there.
    if (names_library(query) && !names_library(*one)) one = &query;
  }
  for (const Query& query : queries_) {
    if (choosers_.contains(query.algorithm)) {
      request_of_.push_back(0);
      continue;
    }
    const bool is_candidate = std::ranges::any_of(choosers_, [&](const auto& chooser) {
      return std::ranges::count(chooser.second.chooser.candidates(), query.algorithm) > 0;
    });
    const auto compared = beside.find(query.size_bytes);
    const bool with_baseline = compared != beside.end() && compared->second == &query;
    const std::size_t number = ask(query, is_candidate, with_baseline);
    asked_.try_emplace({query.algorithm, query.size_bytes}, number);
    request_of_.push_back(number);
  }
}

std::size_t AskedTable::ask(Query query, bool with_prediction, bool with_baseline) {
  query.against_nccl = false;
  const Key key{query.algorithm, query.size_bytes};
  const std::size_t group = workers_.group_of(query);
  StudyRequest request;
  request.query = std::move(query);
  request.with_prediction = with_prediction;
  request.with_baseline = with_baseline;
  const std::size_t number = this->request(std::move(request), group);
  if (with_prediction) predicted_.try_emplace(key, number);
  if (with_baseline) baseline_.try_emplace(key.second, number);
  return number;
}

/// Of the request that has the prediction.
std::size_t AskedTable::predict(const Query& query, double worthwhile_s) {
  const Key key{query.algorithm, query.size_bytes};
  if (const auto known = predicted_.find(key); known != predicted_.end()) return known->second;
  StudyRequest request;
  request.kind = StudyRequest::Kind::predict;
  request.query = query;
  request.worthwhile_s = worthwhile_s;
  const std::size_t number = this->request(std::move(request), workers_.group_of(query));
  // What was asked for a worthwhile time may be no more than an upper bound.
  if (worthwhile_s == std::numeric_limits<double>::infinity()) predicted_.emplace(key, number);
  return number;
}

std::size_t AskedTable::request(StudyRequest request, std::size_t group) {
  const StudyRequest::Kind kind = request.kind;
  // The number is known only afterwards; nothing is received before somebody waits.
  const auto number = std::make_shared<std::size_t>(0);
  *number = workers_.add(std::move(request), group, [this, kind, number](const StudyReply& reply) {
    Found& found = found_[*number];
    if (kind == StudyRequest::Kind::predict) {
      found.prediction = told<Prediction>(reply.answer);
      return;
    }
    found.outcome = told<Outcome>(reply.answer);
    found.prediction = told<Prediction>(reply.prediction);
    found.baseline = told<std::optional<Baseline>>(reply.baseline);
  });
  return *number;
}

const AskedTable::Found& AskedTable::found(std::size_t request, const SweepProgress& progress) {
  workers_.wait_for(request, progress);
  return found_.at(request);
}

Outcome AskedTable::answer(std::size_t place, const SweepProgress& progress) {
  const Query& query = queries_.at(place);
  Outcome outcome = choosers_.contains(query.algorithm)
                        ? chosen(query, progress)
                        : found(request_of_[place], progress).outcome.get();
  outcome.query = query;
  compare(outcome, progress);
  return outcome;
}

/// As Study::ask answers when it has decided.
Outcome AskedTable::chosen(const Query& query, const SweepProgress& progress) {
  const std::optional<TuningChoice> best = choice(query, progress);
  const std::size_t number =
      best ? decided(query, *best) : ask(query, false, false);  // which says why there is none
  Outcome outcome = found(number, progress).outcome.get();
  if (best) outcome.chosen = best->prediction.algorithm;
  return outcome;
}

/// The request for the answer to a question that has been decided.
std::size_t AskedTable::decided(const Query& query, const TuningChoice& best) {
  const auto own = asked_.find({best.algorithm, query.size_bytes});
  if (own != asked_.end()) return own->second;
  const Query decided = about(query, best.prediction.algorithm);
  const Key key{decided.algorithm, decided.size_bytes};
  const auto known = decided_.find(key);
  if (known != decided_.end()) return known->second;
  const bool with_baseline = query.against_nccl && !baseline_.contains(query.size_bytes);
  const std::size_t number = ask(decided, false, with_baseline);
  decided_.emplace(key, number);
  return number;
}

std::optional<TuningChoice> AskedTable::choice(const Query& query, const SweepProgress& progress) {
  Choosing& choosing = choosers_.at(query.algorithm);
  SizeChooser& chooser = choosing.chooser;
  const std::vector<std::int64_t>& sizes = chooser.sizes();
  const auto place =
      static_cast<std::size_t>(std::ranges::find(sizes, query.size_bytes) - sizes.begin());
  if (chooser.has_chosen(place)) return chooser.choice(place);
  const PredictAll predict_all = [&](const std::vector<WantedTime>& wanted) {
    return this->predict_all(choosing, wanted, progress);
  };
  if (choosing.by_rows) {
    chooser.choose({place}, predict_all);
    return chooser.choice(place);
  }
  choose_all(chooser, predict_all);
  for (std::size_t other = 0; other < sizes.size(); ++other) {
    Query one = query;
    one.size_bytes = sizes[other];
    // While the first of them are looked at, workers answer the others.
    if (const auto best = chooser.choice(other)) decided(one, *best);
  }
  return chooser.choice(place);
}

/// Of what takes long to predict and is slower than what does not, what is told is that.
std::vector<Prediction> AskedTable::predict_all(const Choosing& choosing,
                                                const std::vector<WantedTime>& wanted,
                                                const SweepProgress& progress) {
  std::map<int, std::vector<std::size_t>> turns;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto turn = choosing.turns.find(wanted[i].query.algorithm);
    turns[turn == choosing.turns.end() ? 0 : turn->second].push_back(i);
  }
  std::vector<Prediction> predictions(wanted.size());
  std::map<std::int64_t, double> best_s;  // by size, of earlier turns
  for (const auto& [turn, places] : turns) {
    std::vector<std::pair<std::size_t, double>> requests;
    for (const std::size_t place : places) {
      const auto& [query, worthwhile_s] = wanted[place];
      const auto known = best_s.find(query.size_bytes);
      const double to_beat_s =
          known == best_s.end() ? std::numeric_limits<double>::infinity() : known->second;
      requests.emplace_back(predict(query, std::min(to_beat_s, worthwhile_s)), to_beat_s);
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto [request, to_beat_s] = requests[i];
      Prediction& made = predictions[places[i]];
      made = found(request, progress).prediction.get();
      // Slower than what is of interest: who asked for no more takes it as a bound.
      if (made.best.time_s > wanted[places[i]].worthwhile_s) continue;
      if (shorter(to_beat_s, made.best.time_s)) {
        made = {.skipped = "other algorithms are faster"};
      } else if (!made.skipped) {
        double& best =
            best_s.try_emplace(wanted[places[i]].query.size_bytes, made.best.time_s).first->second;
        best = std::min(best, made.best.time_s);
      }
    }
  }
  return predictions;
}

void AskedTable::compare(Outcome& outcome, const SweepProgress& progress) {
  if (!outcome.query.against_nccl || !outcome.report.simulated) return;
  const std::size_t number = baseline_.at(outcome.query.size_bytes);
  outcome.nccl = found(number, progress).baseline.get();
}

std::size_t count_requests(Study& study, const std::vector<Query>& queries) {
  std::set<std::pair<std::string, std::int64_t>> requests;
  for (const Query& query : queries) {
    const auto candidates = candidates_of(study, query);
    for (const std::string& one : candidates.value_or(std::vector{query.algorithm})) {
      requests.emplace(one, query.size_bytes);
    }
  }
  return requests.size();
}

PredictAll predict_with(StudyWorkers& workers, const SweepProgress& progress) {
  return [&workers, progress](const std::vector<WantedTime>& wanted) {
    const auto told_all = std::make_shared<std::vector<Told<Prediction>>>(wanted.size());
    std::vector<std::size_t> requests;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      StudyRequest request;
      request.kind = StudyRequest::Kind::predict;
      request.query = wanted[i].query;
      request.worthwhile_s = wanted[i].worthwhile_s;
      requests.push_back(workers.add(std::move(request), workers.group_of(wanted[i].query),
                                     [told_all, i](const StudyReply& reply) {
                                       (*told_all)[i] = told<Prediction>(reply.answer);
                                     }));
    }
    workers.start();
    std::vector<Prediction> predictions;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      workers.wait_for(requests[i], progress);
      predictions.push_back((*told_all)[i].get());
    }
    return predictions;
  };
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "scenarios/study_workers.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <utility>

#include "core/processors.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

constexpr const char* kKind = "kind";
constexpr const char* kQuery = "query";
constexpr const char* kTraining = "training";
constexpr const char* kAnswer = "answer";
constexpr const char* kWithPrediction = "prediction";
constexpr const char* kWithBaseline = "baseline";
constexpr const char* kWorthwhile = "worthwhile_s";
/// Seconds: see TaskGroups::note_time.
constexpr const char* kShared = "shared_s";
constexpr const char* kOwn = "own_s";

Json json_of_request(const StudyRequest& request) {
  Json json = {{kKind, static_cast<int>(request.kind)}};
  if (request.kind == StudyRequest::Kind::train) {
    json[kTraining] = request.training;
    return json;
  }
  json[kQuery] = record_of(request.query);
  json[kWithPrediction] = request.with_prediction;
  json[kWorthwhile] = request.worthwhile_s;
  json[kWithBaseline] = request.with_baseline;
  return json;
}

StudyRequest request_of_json(const Json& json) {
  StudyRequest request;
  request.kind = static_cast<StudyRequest::Kind>(json.at(kKind).get<int>());
  if (request.kind == StudyRequest::Kind::train) {
    request.training = json.at(kTraining).get<std::size_t>();
    return request;
  }
  read_record(json.at(kQuery), request.query);
  request.with_prediction = json.at(kWithPrediction).get<bool>();
  request.worthwhile_s = json.at(kWorthwhile).get<double>();
  request.with_baseline = json.at(kWithBaseline).get<bool>();
  return request;
}

// As binary: names of files may have bytes that are no text.
std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}
Json unpacked(const std::string& bytes) { return Json::from_cbor(bytes); }

/// What the machine can't do, as an answer.
template <class Answer>
Json not_possible(const Error& error, int ranks) {
  std::vector<std::string> reasons;
  for (const Diagnostic& one : error.diagnostics()) reasons.push_back(one.message);
  Answer outcome;
  outcome.skipped = join(reasons, "; ");
  outcome.ranks = ranks;
  return record_of(outcome);
}

/// What `find` returns, or what it throws.
template <class Find>
Json record_from(const std::string& label, Find&& find) {
  try {
    return record_of(find());
  } catch (const Error& error) {
    return record_of(error);
  } catch (const std::bad_alloc&) {
    return record_of(OutOfMemory("there is not enough memory for " + label));
  }
}

}  // namespace

int useful_workers(int jobs, std::size_t questions) {
  if (std::isfinite(time_left_s())) return 1;
  const auto most = static_cast<int>(std::clamp<std::size_t>(questions, 1, kMaxJobs));
  return std::min(jobs == 0 ? usable_processors() : jobs, most);
}

StudyWorkers::StudyWorkers(Study& study, Backend& simulator, int workers, Impossible impossible,
                           std::vector<TrainingQuery> training, double budget_s)
    : study_(study),
      simulator_(simulator),
      impossible_(impossible),
      training_(std::move(training)),
      budget_s_(budget_s),
      is_alone_(workers == 1),
      pool_(workers, [this](const std::string& request) { return work(request); },
            {.next =
                 [this](std::size_t worker) {
                   const auto next = groups_.next_for(worker);
                   if (next) requests_[*next].worker = worker;
                   return next;
                 },
             .request =
                 [this](std::size_t number) {
                   return packed(json_of_request(requests_[number].asked));
                 },
             .received = [this](std::size_t number,
                                const std::string& text) { receive(number, text); },
             .label = [this](std::size_t number) { return label(number); }}) {}

std::string StudyWorkers::label_of(const StudyRequest& request) const {
  return request.kind == StudyRequest::Kind::train ? progress_label(training_[request.training])
                                                   : progress_label(request.query);
}

std::string StudyWorkers::label(std::size_t number) const {
  return label_of(requests_[number].asked);
}

std::size_t StudyWorkers::group_of(const Query& query) {
  if (is_chooser(query.algorithm)) return group(query.algorithm);
  const AlgorithmChoice& choice = study_.choice(query.algorithm);
  return group(choice.algorithm->plan != nullptr ? choice.algorithm->name : query.algorithm);
}

std::size_t StudyWorkers::add(StudyRequest request, std::size_t group, Received received) {
  const auto known = request.kind == StudyRequest::Kind::answer
                         ? known_to_.find({request.query.algorithm, request.query.size_bytes})
                         : known_to_.end();
  if (known != known_to_.end()) {
    groups_.add_for(requests_.size(), known->second);
  } else {
    groups_.add(requests_.size(), group);
  }
  requests_.push_back({std::move(request), std::move(received)});
  return requests_.size() - 1;
}

/// Done by a worker.
std::string StudyWorkers::work(const std::string& text) {
  using Clock = std::chrono::steady_clock;
  const TimeLimit limit(budget_s_);
  const StudyRequest request = request_of_json(unpacked(text));
  const std::string label = label_of(request);
  const Clock::time_point begin = Clock::now();
  study_.make_room();
  const double shared_before_s = study_.shared_s();
  Json reply = {{kAnswer, answer(request)}};
  if (request.with_prediction) {
    reply[kWithPrediction] = record_from(label, [&] { return study_.predict(request.query); });
  }
  const double shared_s = study_.shared_s() - shared_before_s;
  const double all_s = std::chrono::duration<double>(Clock::now() - begin).count();
  if (request.with_baseline) {
    reply[kWithBaseline] = record_from(label, [&] { return study_.baseline(request.query); });
  }
  reply[kShared] = shared_s;
  reply[kOwn] = all_s - shared_s;
  return packed(reply);
}

Json StudyWorkers::answer(const StudyRequest& request) {
  const std::string label = label_of(request);
  const bool is_training = request.kind == StudyRequest::Kind::train;
  const auto find = [&]() -> Json {
    if (is_training) return record_of(train(study_, simulator_, training_[request.training]));
    if (request.kind == StudyRequest::Kind::predict) {
      return record_of(study_.predict(request.query, request.worthwhile_s));
    }
    return record_of(study_.ask(request.query));
  };
  try {
    return find();
  } catch (const OutOfMemory& error) {
    return record_of(error);  // no answer to keep: the next attempt may have more
  } catch (const Error& error) {
    if (impossible_ == Impossible::error || error.kind() != ErrorKind::unsupported) {
      return record_of(error);
    }
    const Query& query = is_training ? training_[request.training].exchange : request.query;
    const int ranks = study_.ranks(query);
    return is_training ? not_possible<TrainingOutcome>(error, ranks)
                       : not_possible<Outcome>(error, ranks);
  } catch (const std::bad_alloc&) {
    return record_of(OutOfMemory("there is not enough memory for " + label));
  }
}

/// It may have simulated what the prediction says is best, which it then need not do again.
void StudyWorkers::note_known(const Request& request, const Json& prediction) {
  Prediction made;
  try {
    read_record(prediction, made);
  } catch (const Error&) {
    return;  // it was not possible
  }
  // What is no more than a bound is not kept.
  const bool is_kept = !made.is_bounded && made.best.time_s <= request.asked.worthwhile_s;
  if (made.skipped || !is_kept) return;
  known_to_.try_emplace({made.algorithm, request.asked.query.size_bytes}, request.worker);
}

void StudyWorkers::receive(std::size_t number, const std::string& text) {
  Json reply = unpacked(text);
  groups_.note_time(number, reply.at(kShared).get<double>(), reply.at(kOwn).get<double>());
  if (!is_alone_) pool_.offer();  // this may have been what others waited for
  Request& request = requests_[number];
  request.is_answered = true;
  news_.push_back(number);
  if (request.asked.kind == StudyRequest::Kind::predict) note_known(request, reply.at(kAnswer));
  const auto part = [&](const char* name) {
    return reply.contains(name) ? std::move(reply.at(name)) : Json();
  };
  // Requests may be added while it is looked at.
  const Received received = std::move(request.received);
  received({part(kAnswer), part(kWithPrediction), part(kWithBaseline)});
}

void StudyWorkers::wait_for(std::size_t number, const SweepProgress& progress) {
  while (!is_answered(number)) {
    progress.waiting(label(number));
    if (is_alone_) {
      groups_.take(number);
    } else {
      pool_.offer();
    }
    pool_.wait(number);
    for (const std::size_t one : std::exchange(news_, {})) progress.received(label(one));
  }
}

}  // namespace espalier

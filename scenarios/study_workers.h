// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/records.h"
#include "scenarios/study.h"
#include "scenarios/task_groups.h"
#include "scenarios/training_study.h"
#include "scenarios/workers.h"

namespace espalier {

/// More workers than this are a typing error rather than a large computer.
inline constexpr int kMaxJobs = 1024;

/// Workers for so many questions. `jobs` 0: one for each processor. Where time is limited (see
/// TimeLimit) there is one: questions that share the time are asked in turn.
int useful_workers(int jobs, std::size_t questions);

/// Told how far questions are; labels are theirs.
struct SweepProgress {
  /// Answers are awaited: the one with this label, first of all.
  std::function<void(std::string_view label)> waiting = [](std::string_view) {};
  /// Another answer came in.
  std::function<void(std::string_view label)> received = [](std::string_view) {};
};

/// What a worker is to find out.
struct StudyRequest {
  enum class Kind { answer, predict, train };
  Kind kind = Kind::answer;
  Query query{};                 ///< for answers and predictions
  std::size_t training = 0;      ///< which training question
  bool with_prediction = false;  ///< of the query, beside its answer
  /// Of predictions: see Study::predict.
  double worthwhile_s = std::numeric_limits<double>::infinity();
  bool with_baseline = false;  ///< of the query (Study::baseline), beside its answer
};

/// What it found out, as records, which hold what was thrown as well. Null: not asked for.
struct StudyReply {
  Json answer;  ///< an outcome, a prediction or an iteration
  Json prediction;
  Json baseline;
};

/// Copies of a study in worker processes, each of which keeps what it learns. With one worker the
/// study itself answers, when an answer is awaited.
class StudyWorkers {
 public:
  /// Where `impossible` is an answer, what a machine can't do is an outcome that is skipped rather
  /// than an error.
  enum class Impossible { error, answer };

  /// Study and simulator are borrowed; copies know what the study knows by now. Training questions
  /// are named by their place in `training`. `budget_s`: for the searches of each request. Throws
  /// as WorkerPool does, whose preconditions apply.
  StudyWorkers(Study& study, Backend& simulator, int workers,
               Impossible impossible = Impossible::error, std::vector<TrainingQuery> training = {},
               double budget_s = std::numeric_limits<double>::infinity());

  using Received = std::function<void(const StudyReply& reply)>;
  /// Puts a request at the end of the queue; groups are as in TaskGroups. The worker
  /// that predicted something also answers it. `received` is called in `wait_for`. Returns its
  /// number.
  std::size_t add(StudyRequest request, std::size_t group, Received received);
  /// Requests of the group are answered by one worker, in their order. \pre it has no predictions
  void keep_together(std::size_t group) { groups_.keep_together(group); }
  /// Groups about one machine; see TaskGroups.
  void put_in_family(std::size_t group, std::size_t family) {
    groups_.put_in_family(group, family);
  }
  /// The group of that name, made if need be.
  std::size_t group(const std::string& name) {
    return named_groups_.try_emplace(name, named_groups_.size()).first->second;
  }
  /// That of the questions that share programs, or the plan that these follow.
  std::size_t group_of(const Query& query);

  bool is_answered(std::size_t number) const { return requests_[number].is_answered; }
  /// Until that one is answered. Throws Error{runtime} when a worker ended before it answered.
  void wait_for(std::size_t number, const SweepProgress& progress);
  /// Answers nothing by itself: hands out what was added.
  void start() { pool_.offer(); }

  std::string label(std::size_t number) const;

 private:
  struct Request {
    StudyRequest asked;
    Received received;
    std::size_t worker = 0;  ///< that has it, or had
    bool is_answered = false;
  };
  /// Algorithm and size: all in which the questions of a table differ that has predictions.
  using Known = std::pair<std::string, std::int64_t>;

  std::string work(const std::string& text);
  Json answer(const StudyRequest& request);
  void receive(std::size_t number, const std::string& text);
  void note_known(const Request& request, const Json& prediction);
  std::string label_of(const StudyRequest& request) const;

  Study& study_;
  Backend& simulator_;
  const Impossible impossible_;
  const std::vector<TrainingQuery> training_;
  const double budget_s_;
  const bool is_alone_;
  std::vector<Request> requests_;
  std::map<std::string, std::size_t> named_groups_;
  std::map<Known, std::size_t> known_to_;  ///< the workers that predicted what is best
  TaskGroups groups_;
  std::vector<std::size_t> news_;  ///< answered since `wait_for` told of them
  WorkerPool pool_;
};

}  // namespace espalier

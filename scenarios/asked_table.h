// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/study.h"
#include "scenarios/study_workers.h"
#include "scenarios/tuner.h"

namespace espalier {

/// What the tasks of workers told, or what they threw.
template <class Value>
struct Told {
  std::optional<Value> value;
  std::exception_ptr error;

  const Value& get() const {
    if (error) std::rethrow_exception(error);
    return value.value();
  }
};

/// The questions of one table, answered by workers ahead of the table. What several questions need
/// is found out once, though workers share nothing: predictions that a chooser compares are those
/// of the table's own questions where it asks them, and so is the answer that is chosen; and NCCL
/// is simulated beside one question of every size.
class AskedTable {
 public:
  /// Puts the questions into the queue. Both are borrowed. \pre the study simulates; the questions
  /// differ in algorithm, size and chunk size only; each is about a machine
  AskedTable(Study& study, StudyWorkers& workers, std::vector<Query> queries);
  AskedTable(const AskedTable&) = delete;
  AskedTable& operator=(const AskedTable&) = delete;

  /// The answer to a question, by its place, as Study::ask gives it but without its program. Throws
  /// what that throws.
  Outcome answer(std::size_t place, const SweepProgress& progress);

 private:
  using Key = std::pair<std::string, std::int64_t>;  ///< algorithm and size

  struct Found {
    Told<Outcome> outcome;
    Told<Prediction> prediction;
    Told<std::optional<Baseline>> baseline;
  };
  /// A question that chooses among candidates.
  struct Choosing {
    SizeChooser chooser;
    /// Sizes are chosen for one after the other, each when its row is asked for: nearly all
    /// candidates are rows themselves.
    bool by_rows = false;
    /// Candidates that may take long to predict, each with its turn: it is asked for once those
    /// before it are known, and then no longer than it may beat these. The others are asked for at
    /// once.
    std::map<std::string, int> turns = {};
  };

  void find_choosers();
  void ask_candidates(const Choosing& choosing);
  void ask_questions();
  std::size_t request(StudyRequest request, std::size_t group);
  std::size_t predict(const Query& query,
                      double worthwhile_s = std::numeric_limits<double>::infinity());
  std::vector<Prediction> predict_all(const Choosing& choosing,
                                      const std::vector<WantedTime>& wanted,
                                      const SweepProgress& progress);
  std::size_t ask(Query query, bool with_prediction, bool with_baseline);
  std::size_t decided(const Query& query, const TuningChoice& best);
  const Found& found(std::size_t request, const SweepProgress& progress);
  Outcome chosen(const Query& query, const SweepProgress& progress);
  std::optional<TuningChoice> choice(const Query& query, const SweepProgress& progress);
  void compare(Outcome& outcome, const SweepProgress& progress);

  Study& study_;
  StudyWorkers& workers_;
  const std::vector<Query> queries_;
  std::map<std::string, Choosing> choosers_;      ///< by algorithm
  std::set<Key> own_;                             ///< of questions that are no choosers
  std::map<Key, std::size_t> asked_;              ///< the first request for it, of those not chosen
  std::vector<std::size_t> request_of_;           ///< by place; of no use to those that choose
  std::map<Key, std::size_t> decided_;            ///< requests for what choosers chose
  std::map<Key, std::size_t> predicted_;          ///< requests that have the prediction
  std::map<std::int64_t, std::size_t> baseline_;  ///< requests that have it, by size
  std::map<std::size_t, Found> found_;            ///< by request
};

/// How many requests for predictions and answers a table begins with.
std::size_t count_requests(Study& study, const std::vector<Query>& queries);

/// Predictions by workers. Both are borrowed.
PredictAll predict_with(StudyWorkers& workers, const SweepProgress& progress);

}  // namespace espalier

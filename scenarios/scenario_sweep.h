// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "scenarios/journal.h"
#include "scenarios/records.h"
#include "scenarios/scenario.h"
#include "scenarios/study_workers.h"
#include "scenarios/sweep_options.h"

namespace espalier {

/// All questions of scenarios, answered by worker processes before they are asked for. A worker
/// stays with its algorithms on one machine, whose sizes share plans. What is not possible, and
/// GPUs that are not connected, are answers like others.
class ScenarioSweep {
 public:
  /// What a journal knows is not asked again, and what is found out is noted as it comes in.
  /// Machines and tables are read here, once. The simulator is borrowed; workers use copies. Throws
  /// what reading a journal throws, and Error{runtime} when a worker can't be made.
  ScenarioSweep(const std::vector<Scenario>& scenarios, Backend& simulator,
                const SweepOptions& options);

  /// The answers, in the order of the questions of the scenarios, blocks and tables, once each.
  /// Throws what asking threw.
  Outcome ask(const Query& query, const SweepProgress& progress);
  TrainingOutcome train(const TrainingQuery& query, const SweepProgress& progress);

  /// Answers all questions of the shard. Throws what asking threw first, when all is done.
  void answer_shard(const SweepProgress& progress);

  std::size_t questions() const { return questions_.size(); }
  /// Those that nothing has answered yet, nor will any worker: other shards'.
  std::size_t left_to_others() const { return left_to_others_; }
  /// Lines of journals that could not be used.
  const std::vector<Diagnostic>& damaged() const { return damaged_; }
  /// What the journal knew.
  std::size_t known() const { return known_; }

  /// Of this process, for what is no question: machines, labels.
  Study& study() { return study_; }

 private:
  struct Question {
    std::variant<Query, TrainingQuery> query;
    std::size_t machine = 0;  ///< its number
    std::size_t group = 0;
    bool only_times = false;             ///< nobody looks at the links of its answer
    Json key;                            ///< in the journal; null without one
    std::optional<std::size_t> same_as;  ///< an earlier question with this key
    bool is_asked_twice = false;
    bool is_answered = false;
    std::size_t request = 0;   ///< to the workers; \pre it is of the shard, and was open
    std::exception_ptr error;  ///< what asking threw
    std::variant<Outcome, TrainingOutcome> outcome;
  };

  void add(const CollectiveStudy& study, bool keeps_details);
  void add(const TrainingStudy& study);
  bool is_limited() const { return std::isfinite(budget_s_); }
  std::size_t number_of_machine(const Query& query);
  void load_sources();
  void read_journals(const std::vector<std::string>& merged);
  void share_out(const Shard& shard);
  void start_workers(int jobs);
  void receive(std::size_t number, const Json& record);
  static void answer(Question& question, const Json& record);
  template <class Answer>
  Answer next(const SweepProgress& progress);

  Backend& simulator_;
  Study study_;
  const double budget_s_;
  std::vector<Question> questions_;  ///< in the order in which they are asked
  std::size_t groups_ = 0;
  /// By the parts of a query that say what its worker may know of it.
  std::map<std::tuple<std::string, std::vector<int>, std::vector<int>, std::string>, std::size_t>
      machines_;
  std::size_t asked_ = 0;
  std::size_t known_ = 0;
  std::size_t left_to_others_ = 0;
  std::vector<Diagnostic> damaged_;
  std::vector<std::size_t> mine_;  ///< open ones of the shard, in order
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<StudyWorkers> workers_;
};

}  // namespace espalier

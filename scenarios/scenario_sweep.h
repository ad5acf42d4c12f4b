// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "scenarios/journal.h"
#include "scenarios/records.h"
#include "scenarios/scenario.h"
#include "scenarios/sweep_options.h"
#include "scenarios/workers.h"

namespace espalier {

/// More workers than this are a typing error rather than a large computer.
inline constexpr int kMaxJobs = 1024;

/// Told how far a sweep is; labels are those of questions.
struct SweepProgress {
  /// Answers are awaited: the one with this label, first of all.
  std::function<void(std::string_view label)> waiting = [](std::string_view) {};
  /// Another answer came in.
  std::function<void(std::string_view label)> received = [](std::string_view) {};
};

/// All questions of scenarios, answered by worker processes before they are asked for. A worker
/// stays with one algorithm on one machine, whose sizes share plans, while other workers take the
/// rest. What is not possible, and GPUs that are not connected, are answers like others.
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
    std::size_t group = 0;
    Json key;                            ///< in the journal; null without one
    std::optional<std::size_t> same_as;  ///< an earlier question with this key
    bool is_asked_twice = false;
    bool is_answered = false;
    std::exception_ptr error;  ///< what asking threw
    std::variant<Outcome, TrainingOutcome> outcome;
  };
  /// Questions that one worker had better answer.
  struct Group {
    std::deque<std::size_t> open;  ///< that no worker has
    int workers = 0;               ///< that answer its questions
  };

  void add(const CollectiveStudy& study);
  void add(const TrainingStudy& study);
  void load_sources();
  void read_journals(const std::vector<std::string>& merged);
  void share_out(const Shard& shard);
  std::optional<std::size_t> next_for(std::size_t worker);
  std::string work(const Question& question);
  void receive(std::size_t number, const std::string& answer);
  static void answer(Question& question, const Json& record);
  void await(std::size_t number, std::string_view label, const SweepProgress& progress);
  template <class Answer>
  Answer next(std::string_view label, const SweepProgress& progress);

  Backend& simulator_;
  Study study_;
  const double budget_s_;
  std::vector<Question> questions_;  ///< in the order in which they are asked
  std::vector<Group> groups_;
  std::size_t first_open_ = 0;  ///< groups before this one have nothing left
  std::vector<std::optional<std::size_t>> group_of_worker_;
  std::size_t asked_ = 0;
  std::size_t known_ = 0;
  std::size_t left_to_others_ = 0;
  std::vector<Diagnostic> damaged_;
  std::vector<std::size_t> mine_;      ///< open ones of the shard, in order
  std::vector<std::size_t> received_;  ///< since they were last shown
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace espalier

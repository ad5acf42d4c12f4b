// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/journal.h"
#include "cli/workers.h"
#include "scenarios/scenario.h"
#include "sim/simulator.h"

namespace espalier {

/// More workers than this are a mistake rather than a computer.
inline constexpr int kMostJobs = 1024;

/// All questions of scenarios, answered by worker processes ahead of whoever asks. What one
/// algorithm does on one machine is a task, whose queries share plans; of training it is every
/// query.
class ScenarioSweep {
 public:
  /// `jobs` workers, 0: one for each processor. With a journal, what it knows is not asked again,
  /// and what is found out is noted as it comes in. Throws what reading a journal throws, and
  /// Error{runtime} when a worker can't be made. The scenarios stay.
  ScenarioSweep(const std::vector<Scenario>& scenarios, int jobs, const std::string& journal);

  std::size_t questions() const { return places_.size(); }

  /// The answers, in the order of the questions of the scenarios, blocks and tables, once each.
  /// Throws what asking threw.
  Outcome ask(const Query& query);
  TrainingOutcome train(const TrainingQuery& query);

  /// Of this process, for what is no question: machines, labels.
  Study& study() { return study_; }

 private:
  struct Task {
    std::variant<std::vector<Query>, std::vector<TrainingQuery>> queries;
    Json key;  ///< in the journal; null without one
    bool is_answered = false;
    std::exception_ptr error;  ///< what asking threw
    std::variant<std::vector<Outcome>, std::vector<TrainingOutcome>> outcomes;
  };
  /// Where the answer to a question is.
  struct Place {
    std::size_t task = 0;
    std::size_t query = 0;
  };

  void add(const CollectiveStudy& study);
  void add(const TrainingStudy& study);
  std::string work(const Task& task);
  void receive(Task& task, const Json& record);
  template <class Answer>
  Answer next();

  Simulator simulator_;
  Study study_{simulator_, &simulator_};
  std::vector<Task> tasks_;
  std::vector<Place> places_;  ///< of the questions, in their order
  std::size_t asked_ = 0;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<WorkerPool> workers_;
};

}  // namespace espalier

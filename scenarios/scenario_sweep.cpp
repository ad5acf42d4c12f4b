// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_sweep.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "core/check.h"
#include "scenarios/chooser.h"

namespace espalier {

namespace {

bool expects_links(const ScenarioBlock& block) {
  return std::ranges::any_of(block.expectations, [](const ExpectedResult& one) {
    return one.measure == Measure::link_share || one.measure == Measure::used_links;
  });
}

}  // namespace

ScenarioSweep::ScenarioSweep(const std::vector<Scenario>& scenarios, Backend& simulator,
                             const SweepOptions& options)
    : simulator_(simulator), study_(simulator, &simulator), budget_s_(options.budget_s) {
  const bool has_journals = !options.journal.empty() || !options.merged.empty();
  for (const Scenario& scenario : scenarios) {
    for (const ScenarioBlock& block : scenario.blocks) {
      if (const auto* const study = std::get_if<CollectiveStudy>(&block.study)) {
        add(*study, options.keep_details || has_journals || expects_links(block));
      } else {
        add(std::get<TrainingStudy>(block.study));
      }
    }
  }
  load_sources();
  if (!options.journal.empty()) journal_ = std::make_unique<Journal>(options.journal);
  if (has_journals) read_journals(options.merged);
  share_out(options.shard);
  start_workers(options.jobs);
}

void ScenarioSweep::start_workers(int jobs) {
  std::vector<TrainingQuery> training;
  for (const std::size_t number : mine_) {
    const auto* query = std::get_if<TrainingQuery>(&questions_[number].query);
    if (query != nullptr) training.push_back(*query);
  }
  workers_ = std::make_unique<StudyWorkers>(study_, simulator_, useful_workers(jobs, mine_.size()),
                                            StudyWorkers::Impossible::answer, std::move(training),
                                            budget_s_);
  std::size_t trainings = 0;
  for (const std::size_t number : mine_) {
    Question& question = questions_[number];
    StudyRequest request;
    if (const auto* query = std::get_if<Query>(&question.query)) {
      request.query = *query;
      request.query.only_times = question.only_times;
    } else {
      request.kind = StudyRequest::Kind::train;
      request.training = trainings++;
    }
    const std::size_t group = workers_->group(std::to_string(question.group));
    workers_->put_in_family(group, question.machine);
    if (is_limited()) workers_->keep_together(group);
    question.request =
        workers_->add(std::move(request), group,
                      [this, number](const StudyReply& reply) { receive(number, reply.answer); });
  }
  workers_->start();
}

/// Question by question: sizes of one algorithm take very different times.
void ScenarioSweep::share_out(const Shard& shard) {
  std::size_t counted = 0;
  for (std::size_t number = 0; number < questions_.size(); ++number) {
    const Question& question = questions_[number];
    if (question.same_as) continue;
    const bool is_mine = counted++ % shard.count == shard.index;
    if (question.is_answered) continue;
    if (is_mine) {
      mine_.push_back(number);
    } else {
      ++left_to_others_;
    }
  }
}

void ScenarioSweep::answer_shard(const SweepProgress& progress) {
  std::exception_ptr first_error;
  for (const std::size_t number : mine_) {
    workers_->wait_for(questions_[number].request, progress);
    if (questions_[number].error && !first_error) first_error = questions_[number].error;
  }
  if (first_error) std::rethrow_exception(first_error);
}

/// Where time is limited, an answer depends on what its worker knows: all about one machine is told
/// by the same, in order, however many workers there are.
void ScenarioSweep::add(const CollectiveStudy& study, bool keeps_details) {
  for (const std::vector<Query>& table : study.tables) {
    const std::int64_t largest = std::ranges::max(table, {}, &Query::size_bytes).size_bytes;
    std::map<std::string, std::size_t> group_of;  // by algorithm
    for (const Query& query : table) {
      const auto [known, is_new] = group_of.try_emplace(query.algorithm, groups_);
      if (is_new) ++groups_;
      Question& question = questions_.emplace_back();
      question.query = query;
      question.machine = number_of_machine(query);
      question.group = is_limited() ? question.machine : known->second;
      question.only_times = !keeps_details && query.size_bytes < largest;
    }
  }
}

std::size_t ScenarioSweep::number_of_machine(const Query& query) {
  return machines_
      .try_emplace({query.topology, query.gpus, query.relays, profile_word(query.profile).runtime},
                   machines_.size())
      .first->second;
}

void ScenarioSweep::add(const TrainingStudy& study) {
  for (const TrainingSweep& table : study.tables) {
    for (TrainingQuery& query : table.queries()) {
      Question& question = questions_.emplace_back();
      question.machine = number_of_machine(query.exchange);
      question.group = is_limited() ? question.machine : groups_++;
      question.query = std::move(query);
    }
  }
}

/// Before there are workers: so all of them, and keys, are of the same machines and tables,
/// whatever becomes of the files.
void ScenarioSweep::load_sources() {
  const auto load = [&](Query query, const std::vector<ExchangeCollective>& collectives) {
    study_.topology(query);
    for (const ExchangeCollective& one : collectives) {
      query.collective = one.collective;
      query.algorithm = one.algorithm;
      try {
        program_files(study_, query);
      } catch (const Error&) {
        continue;  // thrown again for whoever asks
      }
    }
  };
  for (const Question& question : questions_) {
    if (const auto* query = std::get_if<Query>(&question.query)) {
      load(*query, {{query->collective, query->algorithm}});
    } else {
      const Query& exchange = std::get<TrainingQuery>(question.query).exchange;
      load(exchange, collectives_of(exchange.algorithm));
    }
  }
}

void ScenarioSweep::read_journals(const std::vector<std::string>& merged) {
  QuestionKeys keys(study_);
  std::unordered_map<std::string, std::size_t> by_key;
  for (std::size_t number = 0; number < questions_.size(); ++number) {
    Question& question = questions_[number];
    question.key = std::visit([&](const auto& query) { return keys.of(query); }, question.query);
    const auto [known, is_new] = by_key.try_emplace(one_line(question.key), number);
    if (is_new) continue;
    question.same_as = known->second;
    questions_[known->second].is_asked_twice = true;
  }
  const auto visit = [&](const Json& key, const Json& record) {
    const auto known = by_key.find(one_line(key));
    if (known == by_key.end()) return;
    Question& question = questions_[known->second];
    answer(question, record);
    // What that run was granted is no matter: it was enough.
    std::visit([](auto& outcome) { outcome.budget.reset(); }, question.outcome);
  };
  if (journal_) damaged_ = journal_->read(visit);
  for (const std::string& path : merged) {
    for (Diagnostic& line : Journal::read_only(path, visit)) damaged_.push_back(std::move(line));
  }
  for (const Question& question : questions_) {
    known_ += (question.same_as ? questions_[*question.same_as] : question).is_answered ? 1 : 0;
  }
}

void ScenarioSweep::receive(std::size_t number, const Json& record) {
  Question& question = questions_[number];
  answer(question, record);
  bool is_cut_short =
      std::visit([](const auto& outcome) { return outcome.budget && outcome.budget->ran_out; },
                 question.outcome);
  if (const auto* outcome = std::get_if<Outcome>(&question.outcome)) {
    is_cut_short = is_cut_short || outcome->nccl_left_out;
  }
  if (journal_ && !question.error && !is_cut_short) journal_->note(question.key, record);
}

void ScenarioSweep::answer(Question& question, const Json& record) {
  try {
    if (const auto* query = std::get_if<Query>(&question.query)) {
      Outcome outcome;
      read_record(record, outcome);
      outcome.query = *query;
      question.outcome = std::move(outcome);
    } else {
      TrainingOutcome outcome;
      read_record(record, outcome);
      outcome.query = std::get<TrainingQuery>(question.query);
      question.outcome = std::move(outcome);
    }
  } catch (const Error&) {
    question.error = std::current_exception();
  }
  question.is_answered = true;
}

template <class Answer>
Answer ScenarioSweep::next(const SweepProgress& progress) {
  CHECK(asked_ < questions_.size());
  const Question& asked = questions_[asked_++];
  const std::size_t number = asked.same_as.value_or(asked_ - 1);
  Question& question = questions_[number];
  if (!question.is_answered) workers_->wait_for(question.request, progress);
  if (question.error) std::rethrow_exception(question.error);
  auto& outcome = std::get<Answer>(question.outcome);
  return question.is_asked_twice ? outcome : std::move(outcome);
}

Outcome ScenarioSweep::ask(const Query& query, const SweepProgress& progress) {
  auto outcome = next<Outcome>(progress);
  CHECK(outcome.query.algorithm == query.algorithm && outcome.query.size_bytes == query.size_bytes);
  return outcome;
}

TrainingOutcome ScenarioSweep::train(const TrainingQuery& query, const SweepProgress& progress) {
  auto outcome = next<TrainingOutcome>(progress);
  CHECK(outcome.query.exchange.algorithm == query.exchange.algorithm);
  return outcome;
}

}  // namespace espalier

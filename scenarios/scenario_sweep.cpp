// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/time_limit.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

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

/// The question about the machine.
const Query& exchange_of(const std::variant<Query, TrainingQuery>& query) {
  const auto* collective = std::get_if<Query>(&query);
  return collective != nullptr ? *collective : std::get<TrainingQuery>(query).exchange;
}

std::string label_of(const std::variant<Query, TrainingQuery>& query) {
  return std::visit([](const auto& one) { return progress_label(one); }, query);
}

}  // namespace

ScenarioSweep::ScenarioSweep(const std::vector<Scenario>& scenarios, Backend& simulator,
                             const SweepOptions& options)
    : simulator_(simulator), study_(simulator, &simulator), budget_s_(options.budget_s) {
  for (const Scenario& scenario : scenarios) {
    for (const ScenarioBlock& block : scenario.blocks) {
      std::visit([&](const auto& study) { add(study); }, block.study);
    }
  }
  load_sources();
  const bool has_journals = !options.journal.empty() || !options.merged.empty();
  if (!options.journal.empty()) journal_ = std::make_unique<Journal>(options.journal);
  if (has_journals) read_journals(options.merged);
  share_out(options.shard);
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int jobs = options.jobs == 0 ? processors : options.jobs;
  const auto useful = static_cast<int>(std::clamp<std::size_t>(mine_.size(), 1, kMaxJobs));
  group_of_worker_.resize(static_cast<std::size_t>(std::min(jobs, useful)));
  workers_ = std::make_unique<WorkerPool>(
      std::min(jobs, useful), [this](std::size_t number) { return work(questions_.at(number)); });
  workers_->begin(
      [this](std::size_t worker) { return next_for(worker); },
      [this](std::size_t number, const std::string& record) { receive(number, record); });
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
      groups_[question.group].open.push_back(number);
      mine_.push_back(number);
    } else {
      ++left_to_others_;
    }
  }
}

void ScenarioSweep::answer_shard(const SweepProgress& progress) {
  std::exception_ptr first_error;
  for (const std::size_t number : mine_) {
    await(number, label_of(questions_[number].query), progress);
    if (questions_[number].error && !first_error) first_error = questions_[number].error;
  }
  if (first_error) std::rethrow_exception(first_error);
}

void ScenarioSweep::add(const CollectiveStudy& study) {
  for (const std::vector<Query>& table : study.tables) {
    std::map<std::string, std::size_t> group_of;  // by algorithm
    for (const Query& query : table) {
      const auto [known, is_new] = group_of.try_emplace(query.algorithm, groups_.size());
      if (is_new) groups_.emplace_back();
      Question& question = questions_.emplace_back();
      question.query = query;
      question.group = known->second;
    }
  }
}

void ScenarioSweep::add(const TrainingStudy& study) {
  for (const TrainingSweep& table : study.tables) {
    for (TrainingQuery& query : table.queries()) {
      Question& question = questions_.emplace_back();
      question.query = std::move(query);
      question.group = groups_.size();
      groups_.emplace_back();
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

std::optional<std::size_t> ScenarioSweep::next_for(std::size_t worker) {
  std::optional<std::size_t>& mine = group_of_worker_[worker];
  if (mine && groups_[*mine].open.empty()) {
    --groups_[*mine].workers;
    mine.reset();
  }
  if (mine) {
    const std::size_t number = groups_[*mine].open.front();
    groups_[*mine].open.pop_front();
    return number;
  }
  // A group of its own, or else a part of one: the other end, which is asked for last.
  while (first_open_ < groups_.size() && groups_[first_open_].open.empty()) ++first_open_;
  if (first_open_ == groups_.size()) return std::nullopt;
  const auto first = groups_.begin() + static_cast<std::ptrdiff_t>(first_open_);
  auto group = std::find_if(first, groups_.end(),
                            [](const Group& one) { return !one.open.empty() && one.workers == 0; });
  const bool is_alone = group != groups_.end();
  if (!is_alone) group = first;
  mine = static_cast<std::size_t>(group - groups_.begin());
  ++group->workers;
  const std::size_t number = is_alone ? group->open.front() : group->open.back();
  is_alone ? group->open.pop_front() : group->open.pop_back();
  return number;
}

/// Done by a worker.
std::string ScenarioSweep::work(const Question& question) {
  const bool is_collective = std::holds_alternative<Query>(question.query);
  const TimeLimit limit(budget_s_);
  try {
    if (is_collective) return one_line(record_of(study_.ask(std::get<Query>(question.query))));
    const auto& query = std::get<TrainingQuery>(question.query);
    return one_line(record_of(espalier::train(study_, simulator_, query)));
  } catch (const OutOfMemory& error) {
    return one_line(record_of(error));  // no answer to keep: the next attempt may have more
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) return one_line(record_of(error));
    const int ranks = study_.ranks(exchange_of(question.query));
    return one_line(is_collective ? not_possible<Outcome>(error, ranks)
                                  : not_possible<TrainingOutcome>(error, ranks));
  } catch (const std::bad_alloc&) {
    return one_line(
        record_of(OutOfMemory("there is not enough memory for " + label_of(question.query))));
  }
}

void ScenarioSweep::receive(std::size_t number, const std::string& record) {
  Question& question = questions_[number];
  const Json json = Json::parse(record);
  answer(question, json);
  const bool is_cut_short =
      std::visit([](const auto& outcome) { return outcome.budget && outcome.budget->ran_out; },
                 question.outcome);
  if (journal_ && !question.error && !is_cut_short) journal_->note(question.key, json);
  received_.push_back(number);
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

void ScenarioSweep::await(std::size_t number, std::string_view label,
                          const SweepProgress& progress) {
  while (!questions_[number].is_answered) {
    progress.waiting(label);
    workers_->wait(number);
    for (const std::size_t one : received_) progress.received(label_of(questions_[one].query));
    received_.clear();
  }
}

template <class Answer>
Answer ScenarioSweep::next(std::string_view label, const SweepProgress& progress) {
  CHECK(asked_ < questions_.size());
  const Question& asked = questions_[asked_++];
  const std::size_t number = asked.same_as.value_or(asked_ - 1);
  Question& question = questions_[number];
  await(number, label, progress);
  if (question.error) std::rethrow_exception(question.error);
  auto& outcome = std::get<Answer>(question.outcome);
  return question.is_asked_twice ? outcome : std::move(outcome);
}

Outcome ScenarioSweep::ask(const Query& query, const SweepProgress& progress) {
  auto outcome = next<Outcome>(progress_label(query), progress);
  CHECK(outcome.query.algorithm == query.algorithm && outcome.query.size_bytes == query.size_bytes);
  return outcome;
}

TrainingOutcome ScenarioSweep::train(const TrainingQuery& query, const SweepProgress& progress) {
  auto outcome = next<TrainingOutcome>(progress_label(query), progress);
  CHECK(outcome.query.exchange.algorithm == query.exchange.algorithm);
  return outcome;
}

}  // namespace espalier

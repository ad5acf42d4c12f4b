// SPDX-License-Identifier: Apache-2.0
#include "python/questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "scenarios/asked_table.h"
#include "scenarios/chooser.h"
#include "scenarios/study_workers.h"

namespace espalier {

Query question_of(const QuestionArguments& arguments) {
  Query query = arguments.machine->session->question();
  query.collective = collective_named(arguments.collective);
  query.gpus = arguments.gpus.numbers;
  query.relays = arguments.relays.numbers;
  query.profile = arguments.profile;
  query.links = value_named("link scope", arguments.links, all_link_scopes());
  query.in_place = arguments.in_place;
  if (arguments.root != 0 && !info(query.collective).rooted) {
    throw Error(ErrorKind::usage, fmt::format("{} has no root", to_string(query.collective)));
  }
  if (arguments.root < 0 || arguments.root >= kMaxPlaces) {
    throw Error(ErrorKind::usage, fmt::format("{} is no rank", arguments.root));
  }
  query.root = static_cast<int>(arguments.root);
  return query;
}

namespace {

void require_same_collective(const KnownProgram& known, Collective collective) {
  const Program& program = known.program();
  if (program.contract.collective == collective) return;
  throw Error(ErrorKind::usage,
              fmt::format("the program {} does {}, not {}", program.name,
                          to_string(program.contract.collective), to_string(collective)));
}

}  // namespace

NamedAlgorithms words_of(const std::vector<AlgorithmArgument>& algorithms, const Query& question,
                         Session& session) {
  session.make_room();
  NamedAlgorithms made;
  const auto add = [&](const std::string& word) {
    if (std::ranges::count(made.words, word) == 0) made.words.push_back(word);
  };
  for (const AlgorithmArgument& one : algorithms) {
    if (const auto* program = std::get_if<std::shared_ptr<KnownProgram>>(&one)) {
      require_same_collective(**program, question.collective);
      add(session.word_of(*program, question));
      continue;
    }
    for (const std::string& word : split_algorithms(std::get<std::string>(one))) {
      made.all = made.all || word == "all";
      if (word == "all") {
        std::ranges::for_each(Study::applicable(question.collective), add);
      } else {
        check_algorithm(word, question.collective);
        add(word);
      }
    }
  }
  if (made.words.empty()) throw Error(ErrorKind::usage, "no algorithm is named");
  return made;
}

std::shared_ptr<const KnownProgram> asked_program(const std::vector<AlgorithmArgument>& algorithms,
                                                  Session& session, const Outcome& outcome) {
  for (const AlgorithmArgument& one : algorithms) {
    const auto* program = std::get_if<std::shared_ptr<KnownProgram>>(&one);
    if (program != nullptr && session.word_of(*program, outcome.query) == outcome.query.algorithm) {
      return *program;
    }
  }
  return nullptr;
}

void label_programs(const std::vector<AlgorithmArgument>& algorithms, Session& session,
                    const Query& question, std::vector<Skipped>& skipped) {
  for (const AlgorithmArgument& algorithm : algorithms) {
    const auto* program = std::get_if<std::shared_ptr<KnownProgram>>(&algorithm);
    if (program == nullptr) continue;
    const std::string word = session.word_of(*program, question);
    for (Skipped& one : skipped) {
      if (one.algorithm == word) one.algorithm = (*program)->label();
    }
  }
}

double seconds_of(const std::optional<double>& budget) {
  const double seconds = budget.value_or(std::numeric_limits<double>::infinity());
  if (std::isnan(seconds) || seconds < 0) throw Error(ErrorKind::usage, "a budget is seconds");
  return seconds;
}

void require_workers(int jobs) {
  if (jobs >= 0) return;
  throw Error(ErrorKind::usage, fmt::format("jobs is {}, but must not be negative", jobs),
              "0 for a worker process for each processor");
}

Answers ask_all(Session& session, const std::vector<Query>& queries, int jobs, LateQuestions late) {
  require_workers(jobs);
  Study& study = session.study();
  study.machine(queries.front());  // which the workers then know
  Answers answers;
  if (std::isfinite(time_left_s())) {
    for (Outcome& outcome : answer_in_turns(study, queries, late)) answers.add(std::move(outcome));
    return answers;
  }
  StudyWorkers workers(study, session.simulator(),
                       useful_workers(jobs, count_requests(study, queries)));
  AskedTable table(study, workers, queries);
  for (std::size_t place = 0; place < queries.size(); ++place) {
    answers.add(table.answer(place, {}));
  }
  return answers;
}

void require_answers(const Answers& answers) {
  DiagnosticList refused;
  DiagnosticList impossible;
  for (const Skipped& one : answers.skipped) {
    (one.is_refused ? refused : impossible)
        .add({}, fmt::format("{} is not possible here: {}", one.algorithm, one.reason),
             one.instead);
  }
  refused.throw_if_any();
  if (answers.outcomes.empty()) impossible.throw_if_any(ErrorKind::unsupported);
}

}  // namespace espalier

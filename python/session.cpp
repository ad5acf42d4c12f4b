// SPDX-License-Identifier: Apache-2.0
#include "python/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/simulator.h"

namespace espalier {

namespace {

/// A study keeps the programs that it was asked about. Who writes more of them on one machine goes
/// on with a new study.
constexpr std::size_t kMostPrograms = 256;

}  // namespace

Diagnostic KnownProgram::located(Diagnostic diagnostic) const {
  const int line = diagnostic.where.line;
  if (line > 0 && line <= static_cast<int>(places.size())) {
    diagnostic.where = places[static_cast<std::size_t>(line) - 1];
  } else if (line == 0 && !definition.file.empty()) {
    diagnostic.where = definition;
  }
  return diagnostic;
}

std::vector<Diagnostic> KnownProgram::located(std::vector<Diagnostic> diagnostics) const {
  for (Diagnostic& diagnostic : diagnostics) diagnostic = located(std::move(diagnostic));
  return diagnostics;
}

Session::Session(std::string machine, std::unique_ptr<Backend> backend)
    : machine_(std::move(machine)), backend_(std::move(backend)) {
  forget();
}

void Session::forget() {
  state_ = std::make_shared<State>(std::make_unique<Simulator>(), backend_.get());
}

Query Session::question() const {
  Query query;
  query.topology = machine_;
  query.judge = !machine_.empty();
  return query;
}

void Session::make_room() {
  if (state_->programs.size() >= kMostPrograms) forget();
}

Session::Named& Session::named(const std::shared_ptr<const KnownProgram>& program) {
  const auto known = state_->programs.find(program.get());
  if (known != state_->programs.end()) return known->second;
  // A study takes a word with a slash for a program.
  const std::string& path = program->file->path;
  const std::string wanted = path.find('/') == std::string::npos ? "./" + path : path;
  const auto is_taken = [&](const std::string& word) {
    return std::ranges::any_of(state_->programs,
                               [&](const auto& one) { return one.second.word == word; });
  };
  Named made{program, wanted, {}, {}};
  for (int number = 2; is_taken(made.word); ++number) {
    made.word = fmt::format("{} ({})", wanted, number);
  }
  state_->study.know_program(made.word, program->file);
  if (program->by_block) {
    made.by_block = made.word + ", lanes by block";
    state_->study.know_program(made.by_block, program->by_block);
  }
  return state_->programs.emplace(program.get(), std::move(made)).first->second;
}

/// Infinity where it can't run, which is said when it is asked for.
double Session::predicted_s(const Query& question, const std::string& word) {
  Query query = question;
  query.algorithm = word;
  query.size_bytes = kDecidingBytes;
  query.chunk_bytes.reset();
  query.run.size_bytes = kDecidingBytes;
  const Prediction prediction = study().predict(query);
  return prediction.skipped ? std::numeric_limits<double>::infinity() : prediction.best.time_s;
}

bool Session::is_faster_by_block(Named& named, const Query& question) {
  // Executions are on this computer, whatever it is.
  if (named.by_block.empty() || machine_.empty()) return false;
  const Where where{question.gpus, question.relays, question.profile, question.links};
  const auto known = named.faster.find(where);
  if (known != named.faster.end()) return known->second;
  const bool is_faster =
      shorter(predicted_s(question, named.by_block), predicted_s(question, named.word));
  return named.faster.emplace(where, is_faster).first->second;
}

std::string Session::word_of(const std::shared_ptr<const KnownProgram>& program,
                             const Query& question) {
  Named& known = named(program);
  return is_faster_by_block(known, question) ? known.by_block : known.word;
}

const ProgramFile& Session::form_of(const std::shared_ptr<const KnownProgram>& program,
                                    const Query& question) {
  return is_faster_by_block(named(program), question) ? *program->by_block : *program->file;
}

Outcome Session::ask(const Query& query, const std::shared_ptr<const KnownProgram>& program) {
  if (!program) return study().ask(query);
  try {
    make_room();
    Query named = query;
    named.algorithm = word_of(program, query);
    Outcome outcome = study().ask(named);
    outcome.problems = program->located(std::move(outcome.problems));
    return outcome;
  } catch (const Error& error) {
    throw Error(error.kind(), program->located(error.diagnostics()));
  }
}

}  // namespace espalier

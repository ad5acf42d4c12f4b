// SPDX-License-Identifier: Apache-2.0
#include "python/session.h"

#include <fmt/format.h>

#include <algorithm>
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

std::string Session::word_of(const std::shared_ptr<const KnownProgram>& program) {
  if (const auto known = state_->words.find(program.get()); known != state_->words.end()) {
    return known->second;
  }
  if (state_->programs.size() == kMostPrograms) forget();
  // A study takes a word with a slash for a program.
  const std::string& path = program->file->path;
  const std::string wanted = path.find('/') == std::string::npos ? "./" + path : path;
  const auto is_taken = [&](const std::string& word) {
    return std::ranges::any_of(state_->words, [&](const auto& one) { return one.second == word; });
  };
  std::string word = wanted;
  for (int number = 2; is_taken(word); ++number) word = fmt::format("{} ({})", wanted, number);
  state_->study.know_program(word, program->file);
  state_->programs.push_back(program);
  return state_->words.emplace(program.get(), word).first->second;
}

Outcome Session::ask(const Query& query, const std::shared_ptr<const KnownProgram>& program) {
  if (!program) return study().ask(query);
  Query named = query;
  named.algorithm = word_of(program);
  try {
    Outcome outcome = study().ask(named);
    outcome.problems = program->located(std::move(outcome.problems));
    return outcome;
  } catch (const Error& error) {
    throw Error(error.kind(), program->located(error.diagnostics()));
  }
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "python/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "formats/machine.h"
#include "ir/text.h"
#include "scenarios/asked_again.h"
#include "scenarios/records.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// A study keeps the programs that it was asked about. Who writes more of them on one machine goes
/// on with a new study.
constexpr std::size_t kMostPrograms = 256;

/// Rule R10 is about machines, too.
bool is_about_programs(const std::string& rule) { return !rule.empty() && rule != "R10"; }

/// All that makes a difference to what is asked about a program, lines of messages included.
std::string content_of(const KnownProgram& program) {
  std::string text = print_program(program.program());
  for (const int line : program.program().lines) text += fmt::format(",{}", line);
  for (const Location& place : program.places) {
    text += fmt::format("\n{}:{}", place.file, place.line);
  }
  return fingerprint(text + "\n" + program.text);
}

}  // namespace

std::string KnownProgram::label() const {
  // A study takes a word with a slash for a program.
  const std::string& path = file->path;
  return path.find('/') == std::string::npos ? "./" + path : path;
}

Diagnostic KnownProgram::located(Diagnostic diagnostic) const {
  const int line = diagnostic.where.line;
  if (line > 0 && line <= static_cast<int>(places.size())) {
    diagnostic.where = places[static_cast<std::size_t>(line) - 1];
  } else if (line == 0 && is_about_programs(diagnostic.rule) && !definition.file.empty()) {
    diagnostic.where = definition;
  }
  return diagnostic;
}

std::vector<Diagnostic> KnownProgram::located(std::vector<Diagnostic> diagnostics) const {
  for (Diagnostic& diagnostic : diagnostics) diagnostic = located(std::move(diagnostic));
  return diagnostics;
}

MachineOrigin origin_of(const std::string& name) {
  // What-ifs follow behind a colon.
  const auto is_file = [](const std::string& path) {
    std::error_code none;
    return path.find_first_of("/.") != std::string::npos && !path.starts_with('/') &&
           std::filesystem::is_regular_file(path, none);
  };
  if (!is_file(name) && !is_file(name.substr(0, name.rfind(':')))) return {name};
  return {name, (std::filesystem::current_path() / name).string()};
}

Session::Session(MachineOrigin origin, std::unique_ptr<Backend> backend)
    : origin_(std::move(origin)), backend_(std::move(backend)) {
  forget();
}

void Session::forget() {
  state_ = std::make_shared<State>(std::make_unique<Simulator>(), backend_.get());
  if (!origin_.yaml.empty()) {
    state_->study.know_machine(origin_.name, parse_topology(origin_.yaml, origin_.name));
  } else if (origin_of(origin_.name).spec != origin_.spec) {  // Python is in another folder now
    state_->study.know_machine(origin_.name, open_machine(origin_.spec));
  }
}

Query Session::question() const {
  Query query;
  query.topology = machine();
  query.judge = !machine().empty();
  return query;
}

void Session::make_room() {
  if (state_->programs.size() >= kMostPrograms) forget();
}

Session::Named& Session::named(const std::shared_ptr<const KnownProgram>& program) {
  const auto known = state_->programs.find(program.get());
  if (known != state_->programs.end()) return *known->second.named;
  // Who writes the same program again asks about the same one.
  const std::string content = content_of(*program);
  std::shared_ptr<Named>& made = state_->by_content[content];
  if (!made) {
    made = std::make_shared<Named>();
    made->word = fmt::format("{} ({})", program->label(), content);
    state_->study.know_program(made->word, program->file);
    if (program->by_block) {
      made->by_block = made->word + ", lanes by block";
      state_->study.know_program(made->by_block, program->by_block);
    }
  }
  return *state_->programs.emplace(program.get(), Asked{program, made}).first->second.named;
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
  if (named.by_block.empty() || machine().empty()) return false;
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
    outcome.query.algorithm = program->label();
    return outcome;
  } catch (const Error& error) {
    throw Error(error.kind(), program->located(error.diagnostics()));
  }
}

Outcome Session::ask_with_timeline(const Outcome& outcome,
                                   const std::shared_ptr<const KnownProgram>& program,
                                   TimelineOps ops) {
  if (!program) return espalier::ask_with_timeline(study(), outcome, ops);
  Outcome named = outcome;
  named.query.algorithm = word_of(program, outcome.query);
  Outcome again = espalier::ask_with_timeline(study(), named, ops);
  again.query.algorithm = outcome.query.algorithm;
  return again;
}

}  // namespace espalier

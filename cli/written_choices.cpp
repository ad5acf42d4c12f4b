// SPDX-License-Identifier: Apache-2.0
#include "cli/written_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "algorithms/program_file.h"
#include "core/units.h"
#include "ir/print.h"

namespace espalier {
namespace {

/// For finding out whether a candidate is faster than another one: about a tenth of a second. What
/// needs more consists of very many transfers.
constexpr std::int64_t kWorkToCompare = Study::kMaxSearchWork / 64;

/// A question about what was written in place of a candidate.
Query open_query(const Query& query) {
  Query open = query;
  open.chunk_bytes.reset();
  open.judge = open.against_nccl = false;
  return open;
}

}  // namespace

/// Planned once: only libraries decide by the size of a message.
const Program& WrittenChoices::program_of(const Outcome& outcome) {
  std::string word = outcome.chosen.empty() ? outcome.query.algorithm : outcome.chosen;
  if (is_library(study_.choice(word))) word += fmt::format(" {}", outcome.query.size_bytes);
  std::shared_ptr<const Program>& program = programs_[word];
  if (program == nullptr) program = whole_program(study_, outcome);
  return *program;
}

Written WrittenChoices::write(const Outcome& outcome, std::int64_t from_bytes,
                              std::int64_t up_to_bytes) {
  WritingOptions options = writing_options(study_.machine(outcome.query));
  options.protocol = outcome.protocol;
  options.min_bytes = from_bytes;
  options.max_bytes = up_to_bytes;
  return write_for_machine(program_of(outcome), folder_, study_.machine(outcome.query), options);
}

std::string WrittenChoices::add(const Outcome& outcome, std::vector<Diagnostic>& why_not) {
  // Most sizes have the programs of others.
  const auto key = std::pair(print_program(program_of(outcome)), outcome.protocol);
  const auto [known, is_new] = known_.try_emplace(key);
  std::string& word = known->second;
  if (!is_new && !word.empty()) return word;
  try {
    const Written written = write(outcome, 0, -1);
    word = word_of_written(written);
    const Candidate candidate{outcome, outcome.query.algorithm, written.text};
    if (candidates_.try_emplace(word, candidate).second) {
      study_.know_program(word, program_file_of(written.text, word));
      words_.push_back(word);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    why_not = error.diagnostics();
  }
  return word;
}

/// What is good for messages as small or large as that.
void WrittenChoices::add_front(const std::vector<FrontPoint>& front, const Outcome& end) {
  for (const FrontPoint& point : front) {
    Query query = open_query(end.query);
    query.algorithm = point.algorithm;
    const Outcome outcome = study_.ask(query);
    std::vector<Diagnostic> unused;
    const std::string word = outcome.ran() ? add(outcome, unused) : std::string();
    if (word.empty()) continue;
    candidates_.at(word).made_for.insert(query.size_bytes);
    formed_.insert({candidates_.at(word).algorithm, query.size_bytes});
  }
}

/// What takes longer than another candidate is simulated only as far as that takes to find out.
Prediction WrittenChoices::predict(const Query& query) {
  Prediction slow;
  const Candidate& candidate = candidates_.at(query.algorithm);
  const ForeignProgram& foreign = *study_.choice(query.algorithm).file->foreign;
  const auto element_bytes = static_cast<std::int64_t>(size_of(query.run.type));
  if (const auto served = not_among(foreign, query.size_bytes, element_bytes)) {
    slow.skipped = "its runtime uses it for " + *served;
    return slow;
  }
  if (formed_.contains({candidate.algorithm, query.size_bytes}) &&
      !candidate.made_for.contains(query.size_bytes)) {
    slow.skipped = "its algorithm has another form there, such as another protocol";
    return slow;
  }
  const auto [fastest, is_first] = fastest_s_.try_emplace(query.size_bytes, 0);
  if (!is_first) {
    Query limited = query;
    limited.run.limits = SimLimits{.time_s = fastest->second, .work = kWorkToCompare};
    slow = study_.predict(limited);
    slow.best.time_s = fastest->second;  // at least: rules it out for other sizes
    if (slow.skipped) return slow;
  }
  Prediction made = study_.predict(query);
  if (!made.skipped && (is_first || made.best.time_s < fastest->second)) {
    fastest->second = made.best.time_s;
  }
  if (fastest->second == 0) fastest_s_.erase(fastest);
  return made;
}

WrittenChoice WrittenChoices::chosen(const Outcome& choice, const TuningChoice& made) {
  const Candidate& candidate = candidates_.at(made.algorithm);
  WrittenChoice best{candidate.outcome, candidate.algorithm, candidate.text, {}, {}};
  best.times.size_bytes = choice.query.size_bytes;
  best.times.after_s = made.prediction.best.time_s;
  best.times.before_s = choice.report.time_s;
  if (candidate.algorithm != choice.query.algorithm) {
    best.instead_of = choice.query.algorithm;
    Query before = open_query(choice.query);
    before.algorithm = candidate.algorithm;
    best.times.before_s = study_.ask(before).report.time_s;
  }
  const std::string runtime = profile_word(choice.query.profile).runtime;
  if (candidate.outcome.profile != runtime) {
    best.times.before_profile = candidate.outcome.profile;
    best.times.after_profile = runtime;
  }
  return best;
}

std::vector<std::optional<WrittenChoice>> WrittenChoices::choose(
    const Tuning& tuning, const std::vector<Outcome>& choices) {
  DiagnosticList impossible;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> own;
  for (const Outcome& choice : choices) {
    sizes.push_back(choice.query.size_bytes);
    std::vector<Diagnostic> why_not;
    own.push_back(add(choice, why_not));
    if (!own.back().empty()) continue;
    for (const Diagnostic& problem : why_not) {
      impossible.add({},
                     fmt::format("up to {}, {}: {}", describe_size(choice.query.size_bytes),
                                 choice.query.algorithm, problem.message),
                     problem.suggestion);
    }
  }
  if (choices.empty()) return {};
  add_front(tuning.front, choices.front());
  if (choices.size() > 1) add_front(tuning.front, choices.back());
  if (words_.empty()) impossible.throw_if_any(ErrorKind::unsupported);
  const Query open = open_query(choices.front().query);
  SizeChooser chooser(open, sizes, words_, study_.topology(open));
  // All are compared at both ends, and most take much longer there than what was chosen.
  for (const std::size_t end : {std::size_t{0}, own.size() - 1}) {
    if (own[end].empty()) continue;
    Query query = open_query(choices[end].query);
    query.algorithm = own[end];
    predict(query);
  }
  choose_all(chooser, [&](const std::vector<WantedTime>& wanted) {
    std::vector<Prediction> predictions;
    for (const WantedTime& one : wanted) predictions.push_back(predict(one.query));
    return predictions;
  });
  std::vector<std::optional<WrittenChoice>> made(choices.size());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (const auto choice = chooser.choice(i)) made[i] = chosen(choices[i], *choice);
  }
  if (std::ranges::none_of(made, &std::optional<WrittenChoice>::has_value)) {
    const std::string why = *chooser.prediction(0, choices.size() - 1).skipped;
    throw Error(ErrorKind::unsupported,
                fmt::format("nothing that {} can hold is used for any of these sizes: of {}, {}",
                            folder_.format->name, candidates_.at(words_.front()).algorithm, why));
  }
  return made;
}

}  // namespace espalier

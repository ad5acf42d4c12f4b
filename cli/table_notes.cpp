// SPDX-License-Identifier: Apache-2.0
#include "cli/table_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "algorithms/algorithm.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "scenarios/chooser.h"
#include "scenarios/describe.h"

namespace espalier {

namespace {

/// Whether a label names the value of a parameter: "optimal (fabric=1,strips=16)".
bool shows_parameter(const std::string& label, const std::string& parameter) {
  for (const char* before : {"(", ",", ":"}) {
    if (label.find(before + parameter + "=") != std::string::npos) return true;
  }
  return false;
}

/// The parameters that were chosen for the message and not by who asked, and what they mean.
std::vector<std::string> chosen_parameters(const std::vector<Outcome>& outcomes,
                                           ShownChoice shown) {
  std::vector<std::string> lines;
  for (const Outcome& outcome : outcomes) {
    if (outcome.chosen.empty()) continue;
    const std::string label =
        shown == ShownChoice::whole ? outcome.chosen : algorithm_label(outcome);
    const Algorithm& algorithm = *parse_algorithm(outcome.chosen).algorithm;
    const std::string& asked = outcome.query.algorithm;
    for (const AlgorithmParameter& parameter : algorithm.parameters) {
      const bool is_given = !is_chooser(asked) && shows_parameter(asked, parameter.name);
      if (is_given || !shows_parameter(label, parameter.name)) continue;
      std::string line =
          fmt::format("{} of {}: {}", parameter.name, algorithm.name, parameter.meaning);
      if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::vector<std::string> program_notes(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> lines;
  for (const Outcome& outcome : outcomes) {
    if (outcome.program_note.empty()) continue;
    std::string line = fmt::format("{}: {}", algorithm_label(outcome), outcome.program_note);
    if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
  }
  return lines;
}

/// What is to be known about chunk sizes, once for the sizes it is true of.
void print_chunk_notes(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<std::string, std::string>> notes;  // and the sizes
  for (const Outcome& outcome : outcomes) {
    if (outcome.chunk_note.empty()) continue;
    const std::string note = fmt::format("{}: {}", algorithm_label(outcome), outcome.chunk_note);
    auto known = std::ranges::find(notes, note, [](const auto& one) { return one.first; });
    if (known == notes.end()) known = notes.insert(known, {note, ""});
    known->second += (known->second.empty() ? "" : ", ") + describe_size(outcome.query.size_bytes);
  }
  for (const auto& [note, sizes] : notes) {
    console.out << wrap(fmt::format("Chunks of {} ({})", note, sizes), console.width, "# ");
  }
}

/// Whose searches were cut short, by how many answers of each.
template <class Answer, class Name>
void print_time_note(const Console& console, const std::vector<Answer>& outcomes,
                     const Name& name) {
  std::map<std::string, std::size_t> late;
  std::optional<GrantedTime> budget;
  for (const Answer& outcome : outcomes) {
    if (!outcome.budget || !outcome.budget->ran_out) continue;
    ++late[name(outcome)];
    budget = outcome.budget;
  }
  if (!budget) return;
  std::vector<std::string> names;
  for (const auto& [algorithm, answers] : late) {
    names.push_back(answers == 1 ? algorithm : fmt::format("{} ({} answers)", algorithm, answers));
  }
  console.out << wrap(fmt::format("Time ran out (--budget {:g}) for {}: more time may find better "
                                  "answers",
                                  budget->seconds, join(names, ", ")),
                      console.width, "# ");
}

}  // namespace

void print_table_notes(const Console& console, const std::vector<Outcome>& outcomes,
                       ShownChoice shown) {
  const std::vector<std::string> parameters = chosen_parameters(outcomes, shown);
  if (!parameters.empty()) console.out << "# Parameters chosen for each message:\n";
  for (const std::string& line : parameters) console.out << wrap(line, console.width, "#   ");
  print_chunk_notes(console, outcomes);
  print_time_note(console, outcomes, [](const Outcome& one) { return one.query.algorithm; });
  for (const std::string& line : program_notes(outcomes)) {
    console.out << wrap(line, console.width, "# ");
  }
}

void print_table_notes(const Console& console, const std::vector<TrainingOutcome>& outcomes) {
  std::vector<std::string> lines;
  for (const TrainingOutcome& outcome : outcomes) {
    for (const std::string& note : outcome.notes) {
      if (std::ranges::count(lines, note) == 0) lines.push_back(note);
    }
  }
  for (const std::string& line : lines) console.out << wrap(line, console.width, "# ");
  print_time_note(console, outcomes,
                  [](const TrainingOutcome& one) { return one.query.exchange.algorithm; });
}

void print_profile_notes(const Console& console, const std::vector<Outcome>& outcomes,
                         const std::string& head_profile) {
  std::map<std::string, std::vector<std::string>> algorithms_under;
  for (const Outcome& outcome : outcomes) {
    if (outcome.profile == profile_word(head_profile).runtime) continue;
    std::vector<std::string>& algorithms = algorithms_under[outcome.profile];
    const std::string& algorithm = outcome.query.algorithm;
    if (std::ranges::count(algorithms, algorithm) == 0) algorithms.push_back(algorithm);
  }
  for (const auto& [profile, algorithms] : algorithms_under) {
    console.out << wrap(fmt::format("Under profile {}: {}", profile, join(algorithms, ", ")),
                        console.width, "# ");
  }
}

std::vector<SizeStretch> size_stretches(const std::vector<Outcome>& outcomes,
                                        const std::function<std::string(const Outcome&)>& what) {
  std::map<std::int64_t, std::string> what_of_size;
  for (const Outcome& outcome : outcomes) {
    what_of_size.try_emplace(outcome.query.size_bytes, what(outcome));
  }
  std::vector<SizeStretch> stretches;
  const std::string* before = nullptr;
  std::string first;
  for (const auto& [bytes, said] : what_of_size) {
    const std::string size = describe_size(bytes);
    if (said.empty()) {
      // Ends the stretch before it.
    } else if (before != nullptr && *before == said) {
      stretches.back().sizes = fmt::format("{} to {}", first, size);
    } else {
      first = size;
      stretches.push_back({said, size});
    }
    before = &said;
  }
  return stretches;
}

void print_skipped(const Console& console, const std::vector<Skipped>& skipped) {
  for (const Skipped& one : skipped) {
    if (one.is_refused) continue;
    const char* const what = one.budget ? "Not asked" : "Not here";
    console.out << wrap(fmt::format("{}: {}: {}", what, one.algorithm, one.reason), console.width,
                        "# ");
  }
}

void Refusals::add(const std::vector<Diagnostic>& problems) {
  for (const Diagnostic& problem : problems) {
    std::string text = render(problem);
    if (std::ranges::count(problems_, text) == 0) problems_.push_back(std::move(text));
  }
}

void Refusals::print() {
  if (problems_.empty()) return;
  console_.out << std::flush;
  for (const std::string& problem : problems_) say(console_, problem);
  problems_.clear();
}

}  // namespace espalier

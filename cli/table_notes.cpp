// SPDX-License-Identifier: Apache-2.0
#include "cli/table_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

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
    if (algorithm.call != nullptr) continue;  // what a library decides is nobody's to choose
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

/// Instead of how small chunks would have been, where that differs.
constexpr const char* kChunksLeftOut = "other sizes were not tried: the time ran out";

/// Whether a note says that the time ran out.
bool is_for_time(const std::string& note) { return note.ends_with("the time ran out"); }

std::vector<std::string> program_notes(const std::vector<Outcome>& outcomes) {
  std::vector<std::string> lines;
  for (const Outcome& outcome : outcomes) {
    if (outcome.program_note.empty()) continue;
    std::string line = fmt::format("{}: {}", algorithm_label(outcome), outcome.program_note);
    if (std::ranges::count(lines, line) == 0) lines.push_back(std::move(line));
  }
  return lines;
}

/// What of an algorithm's chunks, at which sizes. Where the time ran out, what was left undone is a
/// matter of chance, and told of all sizes together.
std::string chunk_note(const Outcome& outcome, const std::vector<Outcome>& outcomes) {
  const std::string label = algorithm_label(outcome);
  const bool is_one_of_several =
      std::ranges::count_if(outcomes, [&](const Outcome& other) {
        return is_for_time(other.chunk_note) && algorithm_label(other) == label;
      }) > 1;
  const bool is_joined = is_for_time(outcome.chunk_note) && is_one_of_several;
  return fmt::format("{}: {}", label, is_joined ? kChunksLeftOut : outcome.chunk_note);
}

/// What is to be known about chunk sizes, once for the sizes it is true of.
void print_chunk_notes(const Console& console, const std::vector<Outcome>& outcomes) {
  std::vector<std::pair<std::string, std::string>> notes;  // and the sizes
  for (const Outcome& outcome : outcomes) {
    if (outcome.chunk_note.empty()) continue;
    const std::string note = chunk_note(outcome, outcomes);
    auto known = std::ranges::find(notes, note, [](const auto& one) { return one.first; });
    if (known == notes.end()) known = notes.insert(known, {note, ""});
    known->second += (known->second.empty() ? "" : ", ") + describe_size(outcome.query.size_bytes);
  }
  for (const auto& [note, sizes] : notes) {
    console.out << wrap(fmt::format("Chunks of {} ({})", note, sizes), console.width, "# ");
  }
}

/// Which answers were not compared with NCCL for want of time.
void print_left_out(const Console& console, const std::vector<Outcome>& outcomes) {
  std::set<std::int64_t> all;
  std::set<std::int64_t> left_out;
  for (const Outcome& outcome : outcomes) {
    all.insert(outcome.query.size_bytes);
    if (outcome.nccl_left_out) left_out.insert(outcome.query.size_bytes);
  }
  if (left_out.empty()) return;
  console.out << wrap(fmt::format("Not compared with NCCL, as no time was left: {}",
                                  join_sizes({left_out.begin(), left_out.end()}, all)),
                      console.width, "# ");
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
  print_left_out(console, outcomes);
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

std::string join_sizes(std::vector<std::int64_t> sizes, const std::set<std::int64_t>& all) {
  std::ranges::sort(sizes);
  std::vector<std::string> words;
  for (auto first = sizes.begin(); first != sizes.end();) {
    auto last = first;
    while (last + 1 != sizes.end() && all.upper_bound(*last) != all.end() &&
           *all.upper_bound(*last) == *(last + 1)) {
      ++last;
    }
    words.push_back(first == last
                        ? describe_size(*first)
                        : fmt::format("{} to {}", describe_size(*first), describe_size(*last)));
    first = last + 1;
  }
  return join(words, ", ");
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
    if (one.is_refused || !one.sizes.empty()) continue;
    const char* const what = one.budget ? "Not asked" : "Not here";
    console.out << wrap(fmt::format("{}: {}: {}", what, one.algorithm, one.reason), console.width,
                        "# ");
  }
}

void print_unasked(const Console& console, const Answers& answers) {
  std::set<std::int64_t> all;
  std::set<std::string> algorithms;
  for (const Outcome& outcome : answers.outcomes) {
    all.insert(outcome.query.size_bytes);
    algorithms.insert(outcome.query.algorithm);
  }
  for (const Skipped& one : answers.skipped) {
    if (one.sizes.empty()) continue;
    all.insert(one.sizes.begin(), one.sizes.end());
    algorithms.insert(one.algorithm);
  }
  std::map<std::string, std::vector<std::string>> unasked;  // algorithms, by sizes
  for (const Skipped& one : answers.skipped) {
    if (!one.sizes.empty()) unasked[join_sizes(one.sizes, all)].push_back(one.algorithm);
  }
  std::vector<std::string> parts;
  for (const auto& [sizes, names] : unasked) {
    const bool is_all = names.size() == algorithms.size() && names.size() > 1;
    parts.push_back(
        fmt::format("{} of {}", sizes,
                    is_all ? fmt::format("all {} algorithms", names.size()) : join(names, ", ")));
  }
  if (parts.empty()) return;
  console.out << wrap(fmt::format("Not asked, as no time was left: {}", join(parts, "; ")),
                      console.width, "# ");
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

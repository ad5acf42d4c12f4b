// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>

#include "algorithms/program_file.h"
#include "core/check.h"
#include "core/file.h"
#include "core/units.h"
#include "core/utf8.h"
#include "report/command_line.h"
#include "scenarios/chooser.h"

namespace espalier {

namespace {

bool looks_like_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

const OptionUse* find_use(const Verb& verb, std::string_view option) {
  const auto use = std::ranges::find(verb.options, option, &OptionUse::name);
  return use == verb.options.end() ? nullptr : &*use;
}

/// The verbs that take `option`, for "only sim and run take it".
std::vector<std::string> takers(std::string_view option) {
  std::vector<std::string> names;
  for (const Verb* verb : all_verbs()) {
    if (find_use(*verb, option) != nullptr) names.emplace_back(verb->name);
  }
  return names;
}

/// "--size=" as "--size" and an empty word: for the parser the next word would be its value.
std::vector<std::string> separate_empty_values(const Verb& verb,
                                               const std::vector<std::string>& words) {
  std::vector<std::string> separated;
  for (const std::string& word : words) {
    const std::string_view name = std::string_view(word).substr(0, word.rfind('='));
    const bool is_empty = word.ends_with('=') && find_use(verb, name) != nullptr;
    if (is_empty && option_spec(name).kind != WordKind::flag) {
      separated.emplace_back(name);
      separated.emplace_back();
    } else {
      separated.push_back(word);
    }
  }
  return separated;
}

/// Options whose values name files to read, whole or in part, as in "./mine.yaml:nodes=2" and
/// "auto:ring|./mine.esp".
bool is_read(const OptionSpec& option) {
  switch (option.kind) {
    case WordKind::topology:
    case WordKind::algorithm:
    case WordKind::profile:
    case WordKind::model:
      return true;
    default:
      return option.name == "--measured" || option.name == "--merge";
  }
}

/// Whether the word, or a part of it that may be a path, names this file.
bool names_file(std::string_view word, const std::string& file) {
  return std::ranges::any_of(paths_in(word), [&](std::string_view path) {
    std::error_code ignored;  // no file is none of these
    return std::filesystem::equivalent(path, file, ignored);
  });
}

/// Bytes beyond ASCII as "\\xff".
std::string in_ascii(std::string_view word) {
  std::string text;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text;
}

template <class Number>
bool parse_number(const std::string& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

}  // namespace

Arguments::Arguments(const Verb& verb, const std::vector<std::string>& words)
    : verb_(verb), all_words_(words) {
  if (std::ranges::any_of(words, [](auto& word) { return word == "--help" || word == "-h"; })) {
    wants_help_ = true;
    return;
  }
  require_utf8();
  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  std::vector<CLI::Option*> options;
  for (const OptionUse& use : verb.options) {
    const OptionSpec& spec = option_spec(use.name);
    if (spec.kind == WordKind::flag) {
      options.push_back(parser.add_flag(std::string(spec.name)));
    } else {
      options.push_back(parser.add_option(std::string(spec.name)));
      options.back()->expected(spec.many ? CLI::detail::expected_max_vector_size : 1);
      if (spec.value_is_optional()) options.back()->expected(0, 1);
    }
    options.back()->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  try {
    std::vector<std::string> separated = separate_empty_values(verb, words);
    std::ranges::reverse(separated);
    parser.parse(std::move(separated));
  } catch (const CLI::ParseError& error) {
    refuse(error.what());
  }
  bool has_empty = false;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i]->count() == 0) continue;
    const OptionSpec& spec = option_spec(verb.options[i].name);
    std::vector<std::string> values = options[i]->results();
    if (spec.value_is_optional()) std::ranges::replace(values, std::string(), std::string("-"));
    if (spec.kind != WordKind::flag && std::ranges::count(values, std::string()) > 0) {
      problem_of(spec.name, "the value is empty", std::string(spec.meaning));
      has_empty = true;
      continue;
    }
    const bool is_repeated = !spec.many && spec.kind != WordKind::flag && values.size() > 1;
    given_.emplace(spec.name, std::move(values));
    if (is_repeated) {
      problem_of(spec.name, "is given twice");
    }
  }
  std::vector<std::string> unknown;
  for (const std::string& word : parser.remaining()) {
    if (word == "--") continue;
    (looks_like_option(word) ? unknown : positionals_).push_back(word);
  }
  has_unknown_ = !unknown.empty();
  note_strangers(unknown);
  note_empty_names();
  if (has_empty) finish();  // what seems to be missing was meant to be given
}

void Arguments::require_utf8() {
  for (const std::string& word : all_words_) {
    if (first_not_utf8(word) == std::string_view::npos) continue;
    problem(quote(in_ascii(word)) + " is not UTF-8", "names of files have to be, too");
  }
  finish();
}

/// What is left to go wrong once unknown words are allowed: a value that is not there.
void Arguments::refuse(std::string_view message) {
  const std::string name(message.substr(0, message.find(':')));
  const auto spec = std::ranges::find(all_options(), name, &OptionSpec::name);
  if (spec == all_options().end()) {
    problem(std::string(message));
  } else if (spec->kind == WordKind::flag) {
    problem_of(name, "takes no value");
  } else {
    problem_of(name, "needs a value", std::string(spec->meaning));
  }
  finish();
}

void Arguments::note_empty_names() {
  const auto given = given_.find("--algorithm");
  if (given == given_.end()) return;
  for (const std::string& word : given->second) {
    const std::vector<std::string> names = split_algorithms(word);
    const auto empty = static_cast<std::size_t>(std::ranges::count(names, std::string()));
    if (empty == 0) continue;
    problem_of("--algorithm",
               fmt::format("{} {}", quote(word),
                           empty == names.size() ? "names no algorithm" : "has a comma too many"),
               "espalier list algorithms");
  }
}

void Arguments::note_strangers(const std::vector<std::string>& unknown) {
  for (const std::string& word : unknown) {
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const OptionUse& use : verb_.options) known.emplace_back(use.name);
    std::string suggestion = did_you_mean(name, known, option_synonyms());
    if (const auto others = takers(name); !others.empty()) {
      suggestion = fmt::format("it belongs to: {}", join(others, ", "));
    } else if (known.empty()) {
      suggestion = fmt::format("{} takes no options", verb_.name);
    }
    problem(fmt::format("unknown option {}", quote(name)), suggestion);
  }
  const Positional& wanted = verb_.positional;
  const auto count = static_cast<int>(positionals_.size());
  if (count < wanted.minimum && unknown.empty()) {
    problem(fmt::format("{} needs {}: {}", verb_.name, wanted.name, wanted.meaning));
  }
  for (int i = 0; i < std::min(count, wanted.maximum); ++i) {
    if (positionals_[i].empty())
      problem(fmt::format("{} is empty: {}", wanted.name, wanted.meaning));
  }
  // The value of an unknown option looks like a word too many.
  for (int i = wanted.maximum; i < count && unknown.empty(); ++i) {
    const bool is_program =
        is_program_file(positionals_[i]) && find_use(verb_, "--algorithm") != nullptr;
    problem(fmt::format("unexpected word {}", quote(positionals_[i])),
            is_program ? "a program is named with --algorithm " + positionals_[i]
                       : fmt::format("espalier help {}", verb_.name));
  }
}

std::string Arguments::command_line() const {
  std::vector<std::string> words;
  for (const std::string& word : all_words_) words.push_back(shell_word(word));
  return join(words, " ");
}

bool Arguments::given(std::string_view option) const {
  CHECK(find_use(verb_, option) != nullptr);
  return given_.contains(option);
}

std::vector<std::string> Arguments::words(std::string_view option) const {
  const OptionUse* use = find_use(verb_, option);
  CHECK(use != nullptr);
  if (const auto found = given_.find(option); found != given_.end()) return found->second;
  return use->default_value.empty() ? std::vector<std::string>{} : split(use->default_value, ' ');
}

std::string Arguments::text(std::string_view option) const {
  const std::vector<std::string> all = words(option);
  return all.empty() ? std::string() : all.front();
}

std::vector<std::string> Arguments::algorithms() const {
  std::vector<std::string> all;
  for (const std::string& word : words("--algorithm")) {
    std::ranges::move(split_algorithms(word), std::back_inserter(all));
  }
  std::erase(all, std::string());  // noted as a problem
  return all;
}

std::int64_t Arguments::integer(std::string_view option, std::int64_t minimum,
                                std::int64_t maximum) {
  std::int64_t number = 0;
  const std::string word = text(option);
  if (!parse_number(word, number) || number < minimum || number > maximum) {
    problem_of(option, fmt::format("{} is not a whole number from {} to {}", quote(word), minimum,
                                   maximum));
    return minimum;
  }
  return number;
}

double Arguments::number(std::string_view option, double minimum, double maximum) {
  double number = 0;
  const std::string word = text(option);
  if (!parse_number(word, number) || !(number >= minimum && number <= maximum)) {
    problem_of(option,
               fmt::format("{} is not a number from {} to {}", quote(word), minimum, maximum));
    return minimum;
  }
  return number;
}

std::vector<std::int64_t> Arguments::sizes(std::string_view option) {
  std::vector<std::int64_t> all;
  for (const std::string& word : words(option)) {
    if (const auto part = reading(option, [&] { return parse_byte_list(word); })) {
      for (const std::int64_t bytes : *part) {
        if (std::ranges::count(all, bytes) == 0) all.push_back(bytes);
      }
    }
  }
  return all;
}

std::vector<std::string> Arguments::size_notes() const {
  std::vector<std::string> notes;
  if (std::string note = decimal_note(); !note.empty()) notes.push_back(std::move(note));
  const auto sizes = given_.find("--size");
  if (sizes == given_.end()) return notes;
  const auto has_zero = [](const std::string& list) {
    return std::ranges::any_of(split(list, ','),
                               [](const std::string& size) { return parse_bytes(size) == 0; });
  };
  if (std::ranges::any_of(sizes->second, has_zero)) {
    notes.emplace_back("a message of 0 bytes takes as long as launches and latencies alone");
  }
  return notes;
}

std::string Arguments::decimal_note() const {
  for (const auto& [name, values] : given_) {
    const WordKind kind = option_spec(name).kind;
    if (kind != WordKind::size && kind != WordKind::chunk) continue;
    for (const std::string& word : values) {
      const auto size = decimal_size(word);
      if (!size) continue;
      std::string binary = *size;
      binary.insert(binary.size() - 1, "i");
      return fmt::format("{} is {} bytes; {}, which nccl-tests calls {}, is {}", *size,
                         *parse_bytes(*size), binary, size->substr(0, size->size() - 1),
                         *parse_bytes(binary));
    }
  }
  return {};
}

std::optional<std::int64_t> Arguments::chunk(std::string_view option) {
  const std::string word = text(option);
  if (word == "auto") return std::nullopt;
  const auto bytes = parse_bytes(word);
  if (!bytes) {
    problem_of(option, fmt::format("{} is not a chunk size", quote(word)),
               "auto, 0 for whole messages, or a size such as 4MiB");
  }
  return bytes;
}

std::vector<int> Arguments::gpus(std::string_view option) {
  const std::string word = text(option);
  if (word == "all") return {};
  auto numbers = parse_int_list(word);
  if (!numbers || numbers->empty()) {
    problem_of(option, fmt::format("{} is not a set of GPUs", quote(word)),
               "all, or numbers and ranges such as 0-3,6");
    return {};
  }
  return *numbers;
}

std::string Arguments::output(std::string_view option) {
  return checked_output(text(option), option);
}

std::string Arguments::output_word(std::size_t index) {
  return checked_output(positionals_[index], positionals_[index]);
}

std::string Arguments::checked_output(const std::string& path, std::string_view option) {
  if (path.empty()) return path;
  std::error_code ignored;
  namespace fs = std::filesystem;
  const std::string file =
      path == "-" ? path : fs::weakly_canonical(fs::absolute(path, ignored), ignored).string();
  for (const std::string& word : input_words(option)) {
    if (path == "-" || !names_file(word, path)) continue;
    problem(option == path
                ? fmt::format("{} would replace itself", quote(path))
                : fmt::format("{} would replace {}, which is read", option, quote(path)));
    return path;
  }
  const auto [other, is_new] = outputs_.emplace(file, option);
  if (!is_new) {
    problem(fmt::format("{} and {} cannot both write to {}", other->second, option,
                        path == "-" ? "standard output" : quote(path)));
  }
  reading(option, [&] {
    require_writable(path);
    return true;
  });
  return path;
}

/// What may name files to read; without one word `except`, which is itself an output.
std::vector<std::string> Arguments::input_words(std::string_view except) const {
  std::vector<std::string> all = positionals_;
  if (const auto itself = std::ranges::find(all, except); itself != all.end()) all.erase(itself);
  for (const auto& [name, values] : given_) {
    if (is_read(option_spec(name))) std::ranges::copy(values, std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> Arguments::input_files() const { return files_named(input_words({})); }

void Arguments::check_outputs() {
  for (const auto& [file, option] : outputs_) {
    reading(option, [&, &path = file] {
      require_writable(path);
      return true;
    });
  }
}

void Arguments::problem(std::string message, std::string suggestion) {
  problems_.add({}, std::move(message), std::move(suggestion));
}

void Arguments::problem_of(std::string_view option, std::string_view what, std::string suggestion) {
  problem(fmt::format("{}: {}", option, what), std::move(suggestion));
}

void Arguments::note(std::string_view option, const Error& error) {
  for (Diagnostic found : error.diagnostics()) {
    if (found.where.file.empty()) found.message = fmt::format("{}: {}", option, found.message);
    problems_.add(std::move(found));
  }
}

}  // namespace espalier

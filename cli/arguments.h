// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/verb.h"
#include "core/error.h"
#include "core/words.h"

namespace espalier {

/// The words given to a verb. Readers answer the value, the verb's default when it was not given,
/// or something harmless after noting a problem; `finish` throws all problems at once. Options are
/// named as in the verb's record ("--size"); asking for another one is a bug (CHECK).
class Arguments {
 public:
  /// Splits `words` into options and positionals; notes unknown options, options given twice,
  /// commas too many in --algorithm and too few, too many or empty positionals. Throws Error{usage}
  /// for missing and empty values.
  Arguments(const Verb& verb, const std::vector<std::string>& words);

  /// --help was among the words; nothing else was looked at.
  bool wants_help() const { return wants_help_; }
  const Verb& verb() const { return verb_; }
  const std::vector<std::string>& positionals() const { return positionals_; }
  /// The words given, as a shell takes them.
  std::string command_line() const;
  /// An option was not understood, so that what seems to be missing may have been meant.
  bool has_unknown() const { return has_unknown_; }

  bool given(std::string_view option) const;
  bool flag(std::string_view option) const { return given(option); }
  /// Empty when not given and without default.
  std::string text(std::string_view option) const;
  std::vector<std::string> words(std::string_view option) const;
  /// The words of --algorithm, one algorithm or chooser each: see `split_algorithms`.
  std::vector<std::string> algorithms() const;
  /// `minimum` when it is wrong.
  std::int64_t integer(std::string_view option, std::int64_t minimum, std::int64_t maximum);
  double number(std::string_view option, double minimum, double maximum);
  std::vector<std::int64_t> sizes(std::string_view option);
  /// What to say once about the sizes given: that "1GB" is decimal, and what 0 bytes are.
  std::vector<std::string> size_notes() const;
  /// Nothing for "auto".
  std::optional<std::int64_t> chunk(std::string_view option);
  /// Empty for "all".
  std::vector<int> gpus(std::string_view option);

  template <class Value>
  Value choice(std::string_view option, const std::vector<std::pair<std::string, Value>>& choices) {
    const std::string word = text(option);
    std::vector<std::string> names;
    for (const auto& [name, value] : choices) {
      if (word == name) return value;
      names.push_back(name);
    }
    problem_of(option, "unknown value " + quote(word),
               did_you_mean(word, names, synonyms_of(option_spec(option).kind)));
    return choices.front().second;
  }

  /// One of `values`, by what to_string calls it.
  template <class Range>
  auto choice_among(std::string_view option, const Range& values) {
    std::vector<std::pair<std::string, typename Range::value_type>> named;
    for (const auto value : values) named.emplace_back(to_string(value), value);
    return choice(option, named);
  }

  /// The file to write results to, "-" for standard output, or empty. Notes a problem when it can't
  /// be written, is that of another output option given (one would overwrite the other), or is one
  /// that another word names to be read.
  std::string output(std::string_view option);
  /// The same for a word that is not an option's. \pre there are so many
  std::string output_word(std::size_t index);

  /// The files that words name to be read, as far as they are there.
  std::vector<std::string> input_files() const;

  /// Whether a verb prints its text: not where an output asked for so far is standard output.
  bool prints_text() const { return !outputs_.contains("-"); }

  /// Notes a problem for each of these files that has been read meanwhile, or can't be written any
  /// more.
  void check_outputs();

  void problem(std::string message, std::string suggestion = {});
  void problem(Diagnostic problem) { problems_.add(std::move(problem)); }
  /// Notes "--option: what is wrong".
  void problem_of(std::string_view option, std::string_view what, std::string suggestion = {});
  /// Runs `read` and notes the problems of the Error it throws as those of `option`.
  template <class Read>
  auto reading(std::string_view option, Read&& read) -> std::optional<decltype(read())> {
    try {
      return read();
    } catch (const Error& error) {
      note(option, error);
      return std::nullopt;
    }
  }
  /// What to say once the verb has run, such as what a reader had to guess. Each once.
  void remark(const std::string& text) {
    if (std::ranges::count(remarks_, text) == 0) remarks_.push_back(text);
  }
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Throws Error{usage} when there are problems.
  void finish() const { problems_.throw_if_any(ErrorKind::usage); }

 private:
  std::string checked_output(const std::string& path, std::string_view option);
  std::vector<std::string> input_words(std::string_view except) const;
  void note(std::string_view option, const Error& error);
  void note_strangers(const std::vector<std::string>& unknown);
  std::string decimal_note() const;
  void require_utf8();
  void refuse(std::string_view message);
  void note_empty_names();

  const Verb& verb_;
  std::vector<std::string> all_words_;
  bool wants_help_ = false;
  bool has_unknown_ = false;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> positionals_;
  DiagnosticList problems_;
  std::vector<std::string> remarks_;
  std::map<std::string, std::string> outputs_;  ///< option by the file it writes
};

}  // namespace espalier

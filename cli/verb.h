// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.h"
#include "core/words.h"

namespace espalier {

class Arguments;

/// What a word on the command line may be; completion offers these.
enum class WordKind {
  flag,  ///< of an option: it takes no value
  free,  ///< anything, such as a number
  size,  ///< sizes in bytes
  file,
  topology,
  algorithm,
  collective,
  profile,
  links,
  engine,
  launch,
  scenario,
  model,
  backend,
  process_memory,  ///< of processes that run programs
  gpu_transport,
  data_type,
  reduce_op,
  chunk,
  verb,
  shell,
  list_kind,
  nameable,  ///< whatever `show` shows
  format,    ///< that files are written in
};

/// The words to offer for a kind; empty where there is no list.
std::vector<std::string> words_of(WordKind kind);
/// What people also call these words.
const Synonyms& synonyms_of(WordKind kind);
/// The parameters that may follow "NAME:", by the names of the kind that take any.
std::map<std::string, std::vector<std::string>> parameters_of(WordKind kind);

/// An option, declared once and shared by all verbs that take it.
struct OptionSpec {
  std::string_view name;   ///< "--topology"
  std::string_view value;  ///< how help calls its value ("T", "[FILE]" where it may be left out,
                           ///< which means "-"); empty for a flag
  WordKind kind;
  bool many;                 ///< takes several words
  std::string_view meaning;  ///< one line

  bool value_is_optional() const { return value.starts_with('['); }
};

/// What other programs call options: "-b" of nccl-tests is "--size".
const Synonyms& option_synonyms();
/// Every option of every verb, in the order help lists them.
const std::vector<OptionSpec>& all_options();
/// \pre there is such an option.
const OptionSpec& option_spec(std::string_view name);

/// An option that a verb takes, and its default.
struct OptionUse {
  std::string_view name;
  std::string_view default_value = {};  ///< value when not given; shown in help when not empty
};

/// The words that are not options.
struct Positional {
  std::string_view name;  ///< "FILE"; empty: the verb takes none
  std::string_view meaning;
  WordKind kind = WordKind::free;
  int minimum = 0;
  int maximum = 0;
};

struct Example {
  std::string_view command;  ///< without "espalier"
  std::string_view meaning;
};

/// One verb: from this record follow its parser, help, completion, documentation and dispatch.
struct Verb {
  std::string_view name;
  std::string_view summary;      ///< one line
  std::string_view description;  ///< paragraphs
  Positional positional;
  std::vector<OptionUse> options;
  std::vector<Example> examples;
  /// Runs the verb. Returns the exit code; throws Error.
  int (*run)(Arguments& arguments, const Console& console);
};

/// Every verb, in the order help lists them. One file each: cli/verb_<name>.cpp.
const std::vector<const Verb*>& all_verbs();
const Verb* find_verb(std::string_view name);

}  // namespace espalier

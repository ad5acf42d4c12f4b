// SPDX-License-Identifier: Apache-2.0
// The words of a command line, one on each line, as verbs read them. Nothing is run, and no file is
// opened.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/program_file.h"
#include "cli/arguments.h"
#include "core/check.h"
#include "core/words.h"

namespace espalier {
namespace {

/// As the verb would, for what it is to hold.
void read_option(Arguments& arguments, const OptionSpec& option) {
  switch (option.kind) {
    case WordKind::size:
      for (const std::int64_t bytes : arguments.sizes(option.name)) CHECK(bytes >= 0);
      break;
    case WordKind::chunk:
      CHECK(arguments.chunk(option.name).value_or(0) >= 0);
      break;
    case WordKind::algorithm:
      for (const std::string& name : arguments.algorithms()) {
        arguments.reading(option.name, [&] {
          return is_program_file(name) || parse_algorithm(name).algorithm != nullptr;
        });
      }
      break;
    case WordKind::free: {
      const std::int64_t whole = arguments.integer(option.name, 1, 1000);
      const double number = arguments.number(option.name, 0, 1);
      CHECK(whole >= 1 && whole <= 1000 && number >= 0 && number <= 1);
      for (const int gpu : arguments.gpus(option.name)) CHECK(gpu >= 0);
      break;
    }
    default:
      arguments.words(option.name);
  }
}

void read_words(const Verb& verb, const std::vector<std::string>& words) {
  try {
    Arguments arguments(verb, words);
    CHECK(!arguments.command_line().empty() || words.empty());
    if (arguments.wants_help()) return;
    arguments.size_notes();
    for (const OptionUse& use : verb.options) {
      if (arguments.given(use.name)) read_option(arguments, option_spec(use.name));
    }
    arguments.finish();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::usage && !error.diagnostics().empty());
  }
}

}  // namespace
}  // namespace espalier

/// Whatever the words are, they are understood or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  std::vector<std::string> words = split({reinterpret_cast<const char*>(data), size}, '\n');
  const Verb* const named = find_verb(words.front());
  words.erase(words.begin());
  if (named != nullptr) {
    read_words(*named, words);
  } else {
    for (const Verb* const verb : all_verbs()) read_words(*verb, words);
  }
  return 0;
}

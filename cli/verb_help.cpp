// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/help.h"
#include "cli/verb.h"

namespace espalier {

namespace {

int run_help(Arguments& arguments, const Console& console) {
  const Verb* verb = nullptr;
  if (!arguments.positionals().empty()) {
    const std::string& name = arguments.positionals().front();
    verb = find_verb(name);
    if (verb == nullptr) {
      arguments.problem(fmt::format("there is no verb {}", quote(name)),
                        did_you_mean(name, words_of(WordKind::verb), synonyms_of(WordKind::verb)));
    }
  }
  arguments.finish();
  if (arguments.flag("--markdown")) {
    console.out << help_markdown();
  } else {
    console.out << (verb == nullptr ? overview(console.width) : help_of(*verb, console.width));
  }
  return 0;
}

}  // namespace

const Verb& help_verb() {
  static const Verb verb = {
      "help",
      "explain a verb",
      "Shows what a verb does, its options with their defaults, and examples.",
      {"VERB", "a verb", WordKind::verb, 0, 1},
      {{"--markdown"}},
      {{"help sim", "all about sim"}},
      run_help};
  return verb;
}

}  // namespace espalier

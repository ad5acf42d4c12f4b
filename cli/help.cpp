// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include <fmt/format.h>

#include <sstream>

#include "cli/text.h"
#include "core/words.h"

namespace espalier {

namespace {

struct ExitCode {
  int code;
  std::string_view meaning;
};
constexpr ExitCode kExitCodes[] = {
    {0, "all went well"},
    {1, "a check or an expectation failed"},
    {2, "bad usage or bad input; all problems are listed"},
    {3, "not possible here: no route, no such device, a stuck run"},
    {130, "stopped by Ctrl-C; no half-written file is left"},
};

std::string usage(const Verb& verb) {
  std::string line = fmt::format("espalier {}", verb.name);
  if (verb.positional.maximum > 0) {
    line += verb.positional.minimum > 0 ? fmt::format(" {}", verb.positional.name)
                                        : fmt::format(" [{}]", verb.positional.name);
  }
  return verb.options.empty() ? line : line + " [options]";
}

/// Options without a meaning are for maintainers and not shown.
bool is_public(const OptionUse& use) { return !option_spec(use.name).meaning.empty(); }

std::string option_name(const OptionUse& use) {
  const OptionSpec& spec = option_spec(use.name);
  return spec.value.empty() ? std::string(spec.name) : fmt::format("{} {}", spec.name, spec.value);
}

/// The words an option knows, when they are few enough to list.
std::string option_words(const OptionUse& use) {
  constexpr std::size_t kMax = 12;
  const WordKind kind = option_spec(use.name).kind;
  if (kind == WordKind::algorithm || kind == WordKind::topology) return {};
  const std::vector<std::string> words = words_of(kind);
  return words.empty() || words.size() > kMax ? std::string() : join(words, ", ");
}

std::string option_meaning(const OptionUse& use) {
  std::string meaning(option_spec(use.name).meaning);
  if (const std::string words = option_words(use);
      !words.empty() && words != "auto, 0" && words != "all, fabric") {
    meaning += ": " + words;
  }
  if (!use.default_value.empty()) meaning += fmt::format(" (default {})", use.default_value);
  return meaning;
}

}  // namespace

std::string overview(int width) {
  std::string text =
      "espalier: collective communication between GPUs, verified, simulated, executed, judged\n\n"
      "usage: espalier VERB [options]\n\n";
  Columns verbs("ll");
  for (const Verb* verb : all_verbs()) {
    verbs.add({std::string(verb->name), std::string(verb->summary)});
  }
  text += verbs.render("  ");
  text += "\n";
  text += wrap(
      "`espalier help VERB` says more. Results go to standard output, messages to standard error.",
      width, "");
  text += "Exit codes:\n";
  for (const ExitCode& exit : kExitCodes) {
    text += fmt::format("  {:>3}  {}\n", exit.code, exit.meaning);
  }
  return text + "\nTry: espalier run quickstart\n";
}

std::string help_of(const Verb& verb, int width) {
  std::string text =
      fmt::format("espalier {}: {}\n\nusage: {}\n\n", verb.name, verb.summary, usage(verb));
  text += wrap(verb.description, width, "");
  if (verb.positional.maximum > 0) {
    text += "\n" +
            wrap(fmt::format("{}: {}", verb.positional.name, verb.positional.meaning), width, "  ");
  }
  std::size_t name_width = 0;
  for (const OptionUse& use : verb.options) {
    if (is_public(use)) name_width = std::max(name_width, option_name(use).size());
  }
  if (name_width > 0) text += "\noptions:\n";
  for (const OptionUse& use : verb.options) {
    if (!is_public(use)) continue;
    std::string lines = wrap(option_meaning(use), width, std::string(name_width + 4, ' '));
    const std::string name = option_name(use);
    text += lines.replace(2, name.size(), name);
  }
  if (!verb.examples.empty()) text += "\nexamples:\n";
  for (const Example& example : verb.examples) {
    text += fmt::format("  # {}\n  espalier {}\n", example.meaning, example.command);
  }
  return text;
}

std::string help_markdown() {
  std::string text =
      "# Command line\n\n"
      "<!-- Written by `espalier help --markdown`; a test checks that it is fresh. -->\n\n"
      "Results go to standard output, messages to standard error. Colours and progress bars appear "
      "on\n"
      "terminals only, and not if `NO_COLOR` is set.\n\n| exit code | |\n|---|---|\n";
  for (const ExitCode& exit : kExitCodes) {
    text += fmt::format("| {} | {} |\n", exit.code, exit.meaning);
  }
  for (const Verb* verb : all_verbs()) {
    text +=
        fmt::format("\n## {}\n\n{}.\n\n```\n{}\n```\n\n", verb->name, verb->summary, usage(*verb));
    text += wrap(verb->description, 100, "");
    if (verb->positional.maximum > 0) {
      text += fmt::format("\n`{}`: {}.\n", verb->positional.name, verb->positional.meaning);
    }
    bool has_table = false;
    for (const OptionUse& use : verb->options) {
      if (!is_public(use)) continue;
      if (!has_table) text += "\n| option | meaning |\n|---|---|\n";
      has_table = true;
      text += fmt::format("| `{}` | {} |\n", option_name(use), option_meaning(use));
    }
    if (!verb->examples.empty()) text += "\n```sh\n";
    for (const Example& example : verb->examples) {
      text += fmt::format("# {}\nespalier {}\n", example.meaning, example.command);
    }
    if (!verb->examples.empty()) text += "```\n";
  }
  return text;
}

}  // namespace espalier

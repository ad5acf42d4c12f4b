// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/verbs.h"

namespace espalier {

namespace {

/// The options of all verbs, hidden ones aside, each once.
std::vector<const OptionSpec*> shown_options() {
  std::vector<const OptionSpec*> shown;
  for (const OptionSpec& spec : all_options()) {
    if (!spec.meaning.empty()) shown.push_back(&spec);
  }
  return shown;
}

std::vector<std::string> option_names(const Verb& verb) {
  std::vector<std::string> names = {"--help"};
  for (const OptionUse& use : verb.options) {
    if (!option_spec(use.name).meaning.empty()) names.emplace_back(use.name);
  }
  return names;
}

/// Files complete where a word may be one.
bool may_be_file(WordKind kind) {
  return kind == WordKind::file || kind == WordKind::topology || kind == WordKind::scenario ||
         kind == WordKind::nameable;
}

std::string bash_words(WordKind kind) {
  std::string reply =
      fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")", join(words_of(kind), " "));
  if (may_be_file(kind)) reply += " $(compgen -f -- \"$cur\")";
  return reply + ")";
}

std::string bash_completion() {
  std::string text =
      "# espalier completion bash > ~/.local/share/bash-completion/completions/espalier\n"
      "_espalier() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} i\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format("    {}\n    return\n  fi\n", bash_words(WordKind::verb));
  text +=
      "  if [[ $cur != -* ]]; then\n"
      "    # An option that takes several words still gets them after the first.\n"
      "    for ((i = COMP_CWORD - 1; i > 2; --i)); do\n"
      "      [[ ${COMP_WORDS[i]} == -* ]] && break\n"
      "    done\n";
  std::vector<std::string> many;
  for (const OptionSpec* spec : shown_options()) {
    if (spec->many) many.emplace_back(spec->name);
  }
  text +=
      fmt::format("    case ${{COMP_WORDS[i]}} in {}) before=${{COMP_WORDS[i]}} ;; esac\n  fi\n",
                  join(many, "|"));
  text += "  case $before in\n";
  for (const OptionSpec* spec : shown_options()) {
    if (spec->kind == WordKind::flag) continue;
    text += fmt::format("    {}) {}; return ;;\n", spec->name, bash_words(spec->kind));
  }
  text += "  esac\n  case ${COMP_WORDS[1]} in\n";
  for (const Verb* verb : all_verbs()) {
    text += fmt::format(
        "    {}) if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); else {}; "
        "fi "
        ";;\n",
        verb->name, join(option_names(*verb), " "), bash_words(verb->positional.kind));
  }
  return text + "  esac\n}\ncomplete -F _espalier espalier\n";
}

/// Between single quotes, with what _arguments gives a meaning escaped.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') escaped += '\\';
    escaped += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return escaped;
}

std::string zsh_action(WordKind kind) {
  const std::string words = join(words_of(kind), " ");
  if (!may_be_file(kind)) return words.empty() ? " " : fmt::format("({})", words);
  if (words.empty()) return "_files";
  return fmt::format("{{compadd {}; _files}}", words);
}

std::string zsh_completion() {
  std::string text =
      "#compdef espalier\n# espalier completion zsh > a folder of $fpath, as "
      "_espalier\n_espalier() {\n"
      "  local -a verbs=(\n";
  for (const Verb* verb : all_verbs()) {
    text += fmt::format("    '{}:{}'\n", verb->name, zsh_text(verb->summary));
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe verb verbs\n    return\n  fi\n"
      "  local verb=$words[2]\n  shift words\n  ((CURRENT--))\n  case $verb in\n";
  for (const Verb* verb : all_verbs()) {
    text += fmt::format("    {}) _arguments", verb->name);
    for (const OptionUse& use : verb->options) {
      const OptionSpec& spec = option_spec(use.name);
      if (spec.meaning.empty()) continue;
      text += fmt::format(" \\\n      '{}{}[{}]", spec.many ? "*" : "", spec.name,
                          zsh_text(spec.meaning));
      if (spec.kind != WordKind::flag) {
        text += fmt::format(":{}:{}", zsh_text(spec.value), zsh_action(spec.kind));
      }
      text += "'";
    }
    if (verb->positional.most > 0) {
      text += fmt::format(" \\\n      '*:{}:{}'", zsh_text(verb->positional.name),
                          zsh_action(verb->positional.kind));
    }
    text += " ;;\n";
  }
  // Loaded from $fpath, the file is the body of the function; sourced, it has to be registered.
  return text +
         "  esac\n}\nif [[ $funcstack[1] == _espalier ]]; then\n  _espalier \"$@\"\nelse\n"
         "  compdef _espalier espalier\nfi\n";
}

std::string fish_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return "'" + escaped + "'";
}

std::string fish_completion() {
  std::string text = "# espalier completion fish > ~/.config/fish/completions/espalier.fish\n";
  for (const Verb* verb : all_verbs()) {
    text += fmt::format("complete -c espalier -f -n __fish_use_subcommand -a {} -d {}\n",
                        verb->name, fish_text(verb->summary));
  }
  for (const Verb* verb : all_verbs()) {
    const std::string line =
        fmt::format("complete -c espalier -n '__fish_seen_subcommand_from {}'", verb->name);
    for (const OptionUse& use : verb->options) {
      const OptionSpec& spec = option_spec(use.name);
      if (spec.meaning.empty()) continue;
      text += fmt::format("{} -l {} -d {}", line, spec.name.substr(2), fish_text(spec.meaning));
      if (spec.kind != WordKind::flag) {
        text += may_be_file(spec.kind) ? " -r" : " -x";
        const std::string words = join(words_of(spec.kind), " ");
        if (!words.empty()) text += " -a " + fish_text(words);
      }
      text += '\n';
    }
    const WordKind kind = verb->positional.kind;
    if (const auto words = words_of(kind); !words.empty()) {
      text += fmt::format("{}{} -a {}\n", line, may_be_file(kind) ? "" : " -f",
                          fish_text(join(words, " ")));
    }
  }
  return text;
}

int run_completion(Arguments& arguments, const Console& console) {
  const std::string shell = arguments.positionals().empty() ? "" : arguments.positionals().front();
  const std::vector<std::string> shells = words_of(WordKind::shell);
  if (!shell.empty() && std::ranges::count(shells, shell) == 0) {
    arguments.problem(fmt::format("no completion for shell {}", quote(shell)),
                      did_you_mean(shell, shells));
  }
  arguments.finish();
  console.out << (shell == "bash"  ? bash_completion()
                  : shell == "zsh" ? zsh_completion()
                                   : fish_completion());
  return 0;
}

}  // namespace

const Verb& completion_verb() {
  static const Verb verb = {
      "completion",
      "print what makes a shell complete verbs, options and names",
      "The text is made from the same tables as the verbs, so it is right for this version.",
      {"SHELL", "bash, zsh or fish", WordKind::shell, 1, 1},
      {},
      {{"completion bash", "load it with: source <(espalier completion bash)"}},
      run_completion};
  return verb;
}

}  // namespace espalier

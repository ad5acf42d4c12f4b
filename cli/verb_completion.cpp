// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/arguments.h"
#include "cli/verb.h"

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
         kind == WordKind::algorithm || kind == WordKind::nameable;
}

/// What bash does to offer the words of a kind.
std::string bash_offer(WordKind kind) {
  std::string text;
  if (const auto words = words_of(kind); !words.empty()) {
    text += fmt::format("_espalier_offer '{}'; ", join(words, " "));
  }
  for (const auto& [name, parameters] : parameters_of(kind)) {
    text +=
        fmt::format("\n        _espalier_offer_parameters {} '{}'; ", name, join(parameters, " "));
  }
  if (may_be_file(kind)) text += "_espalier_offer_files; ";
  return text;
}

constexpr std::string_view kBashHead =
    R"(# espalier completion bash > ~/.local/share/bash-completion/completions/espalier

# Readline cuts words at ':' and '='. Sets words to what was typed, up to the cursor.
_espalier_words() {
  local line=${COMP_LINE:0:COMP_POINT} rest word i
  words=()
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    rest=${line#"${line%%[![:blank:]]*}"}
    word=${COMP_WORDS[i]}
    ((i == COMP_CWORD)) && word=$rest
    if ((i == 0)) || [[ $rest != "$line" ]]; then words+=("$word"); else words[-1]+=$word; fi
    line=${rest:${#word}}
  done
}
_espalier_offer() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}
# NAME PARAMETERS: what follows "NAME:" or, after others, a comma.
_espalier_offer_parameters() {
  [[ $cur == "$1":* ]] || return
  local head=${cur%"${cur##*[:,]}"}
  mapfile -t COMPREPLY < <(compgen -P "$head" -S = -W "$2" -- "${cur#"$head"}")
  compopt -o nospace
}
_espalier_offer_files() {
  local files
  mapfile -t files < <(compgen -f -- "$cur")
  ((${#files[@]} > 0)) && compopt -o filenames
  COMPREPLY+=("${files[@]}")
}
)";

constexpr std::string_view kBashTail = R"(_espalier() {
  local words cur before last i
  COMPREPLY=()
  _espalier_words
  last=$((${#words[@]} - 1)) cur=${words[-1]} before=${words[-2]}
  if [[ $cur == --*=* ]]; then
    before=${cur%%=*} cur=${cur#*=}
  elif [[ $cur != -* ]]; then
    # An option that takes several words still gets them after the first.
    for ((i = last - 1; i > 2; --i)); do
      [[ ${words[i]} == -* ]] && break
    done
    [[ ${words[i]%%=*} =~ ^($_espalier_many)$ ]] && before=${words[i]%%=*}
  fi
  _espalier_candidates
  # Readline keeps what stands before the last place where it cut.
  local typed=${words[-1]} cuts=${COMP_WORDBREAKS//[^:=]/} kept=
  [[ -n $cuts ]] && kept=${typed%"${typed##*[$cuts]}"}
  for i in "${!COMPREPLY[@]}"; do
    COMPREPLY[i]=${typed%"$cur"}${COMPREPLY[i]}
    COMPREPLY[i]=${COMPREPLY[i]#"$kept"}
  done
}
complete -F _espalier espalier
)";

std::string bash_completion() {
  std::vector<std::string> many;
  std::string options;
  for (const OptionSpec* spec : shown_options()) {
    if (spec->many) many.emplace_back(spec->name);
    if (spec->kind == WordKind::flag) continue;
    options += fmt::format("    {}) {}return ;;\n", spec->name, bash_offer(spec->kind));
  }
  std::string text(kBashHead);
  text += fmt::format("_espalier_many='{}'\n_espalier_candidates() {{\n", join(many, "|"));
  text += fmt::format(
      "  if ((last == 1)); then\n"
      "    if [[ $cur == -* ]]; then _espalier_offer '--help --version'; else {}fi\n"
      "    return\n  fi\n"
      "  case $before in\n{}  esac\n  case ${{words[1]}} in\n",
      bash_offer(WordKind::verb), options);
  for (const Verb* verb : all_verbs()) {
    text += fmt::format(
        "    {}) if [[ $cur == -* ]]; then _espalier_offer '{}'; else\n      {}:; fi ;;\n",
        verb->name, join(option_names(*verb), " "), bash_offer(verb->positional.kind));
  }
  text += "  esac\n}\n";
  text += kBashTail;
  return text;
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
    if (verb->positional.maximum > 0) {
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
      "print a script that makes a shell complete verbs, options and names",
      "The script is generated from the same tables as the verbs, so it always matches this "
      "version.",
      {"SHELL", "bash, zsh or fish", WordKind::shell, 1, 1},
      {},
      {{"completion bash", "load it with: source <(espalier completion bash)"}},
      run_completion};
  return verb;
}

}  // namespace espalier

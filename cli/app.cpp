// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ostream>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/verb.h"
#include "core/error.h"
#include "core/file.h"
#include "exec/mpi/mpi_backend.h"
#include "exec/mpi/mpi_start.h"

namespace espalier {

namespace {

/// Whether this is one of several processes that were asked the same, and not the one that tells
/// what they have in common. Known before the words are understood.
bool is_told_by_another(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_next = words[i] == "--backend" && i + 1 < words.size() && words[i + 1] == "mpi";
    if (is_next || words[i] == "--backend=mpi") return is_told_by_rank_0();
  }
  return false;
}

int dispatch(const std::vector<std::string>& words, const Console& console) {
  if (words.empty()) {
    console.err << overview(console.width);
    return exit_code(ErrorKind::usage);
  }
  const std::string& name = words.front();
  if (name == "--help" || name == "-h") {
    console.out << overview(console.width);
    return 0;
  }
  if (name == "--version") {
    console.out << "espalier " << ESPALIER_VERSION << '\n';
    return 0;
  }
  const Verb* verb = find_verb(name);
  if (verb == nullptr) {
    throw Error(ErrorKind::usage, fmt::format("there is no verb {}", quote(name)),
                did_you_mean(name, words_of(WordKind::verb), synonyms_of(WordKind::verb)));
  }
  Arguments arguments(*verb, {words.begin() + 1, words.end()});
  if (arguments.wants_help()) {
    console.out << help_of(*verb, console.width);
    return 0;
  }
  const bool is_told = is_told_by_another(words);
  const auto note = [&](const std::string& text) {
    if (!is_told) say(console, "note: " + text);
  };
  for (const std::string& text : arguments.size_notes()) note(text);
  const int code = verb->run(arguments, console);
  for (const std::string& remark : arguments.remarks()) note(remark);
  return code;
}

}  // namespace

int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  const Console console = make_console(out, err);
  const KeepInputs no_slips;
  int code = 0;
  try {
    code = dispatch(arguments, console);
  } catch (const ToldElsewhere& error) {
    code = exit_code(error.kind());
  } catch (const Error& error) {
    if (!is_told_by_another(arguments) || !rank_0_fails_too()) say(console, error.what());
    code = exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    say(console, "error: not enough memory");
    code = exit_code(ErrorKind::unsupported);
  } catch (const std::exception& error) {
    say(console, fmt::format("internal error: {}. This is a bug in Espalier.", error.what()));
    code = exit_code(ErrorKind::runtime);
  }
  out.flush();
  if (!out) {
    say(console, "error: cannot write the results");
    if (code == 0) code = exit_code(ErrorKind::runtime);
  }
  return code;
}

}  // namespace espalier

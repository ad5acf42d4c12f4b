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

/// Whether several processes were asked to run it together.
bool verb_takes_processes(const Arguments& arguments) {
  const auto& options = arguments.verb().options;
  const bool takes =
      std::ranges::any_of(options, [](const auto& option) { return option.name == "--backend"; });
  return takes && arguments.given("--backend") && arguments.text("--backend") == "mpi";
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
  const bool is_told = verb_takes_processes(arguments) && is_told_by_rank_0();
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
    say(console, error.what());
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

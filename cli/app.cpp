// SPDX-License-Identifier: Apache-2.0
#include "cli/app.h"

#include <fmt/format.h>

#include <new>
#include <ostream>

#include "cli/arguments.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/verb.h"
#include "core/error.h"
#include "core/file.h"
#include "exec/mpi/mpi_backend.h"

namespace espalier {

namespace {

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
  for (const std::string& note : arguments.size_notes()) say(console, "note: " + note);
  const int code = verb->run(arguments, console);
  for (const std::string& remark : arguments.remarks()) say(console, "note: " + remark);
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

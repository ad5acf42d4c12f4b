// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "algorithms/program_file.h"
#include "cli/programs.h"
#include "cli/text.h"
#include "cli/tune_files.h"
#include "cli/verb.h"
#include "core/file.h"
#include "core/words.h"
#include "formats/format.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "report/csv.h"
#include "report/objects.h"
#include "scenarios/buildable.h"

namespace espalier {

namespace {

struct Verdict {
  std::string name;  ///< the file, or algorithm and collective
  std::string facts;
  Verification verification;
  bool readable = true;  ///< else the problems say why it is no program
  std::vector<ForeignNote> notes = {};
  std::string file = {};  ///< that it is from, or empty
};

std::string facts_of(const Program& program) {
  const auto transfers = static_cast<std::size_t>(count_transfers(program));
  const auto hosts = static_cast<std::size_t>(program.hosts);
  const auto relays = static_cast<std::size_t>(program.relays);
  return fmt::format("{} {}, {}, {}{}{}: {}, {}, {}", printable(program.name),
                     to_string(program.contract.collective),
                     program.contract.in_place ? "in place" : "out of place",
                     counted(static_cast<std::size_t>(program.ranks()), "rank"),
                     hosts > 0 ? ", " + counted(hosts, "host memory", "host memories") : "",
                     relays > 0 ? ", " + counted(relays, "relay") : "",
                     counted(program.ops.size(), "op"), counted(transfers, "transfer"),
                     counted(static_cast<std::size_t>(program.contract.units), "unit"));
}

Verdict judge(std::string name, const Program& program, const std::optional<Machine>& machine,
              const VerifyOptions& options) {
  Verdict verdict{std::move(name), facts_of(program), verify(program, options)};
  // Routes of a program that is not even well formed can't be looked up.
  if (machine && verdict.verification.ok()) {
    verdict.verification.problems = machine_problems(program, *machine);
  }
  return verdict;
}

void name_file(const std::string& file, Verdict& verdict) {
  verdict.file = file;
  for (Diagnostic& problem : verdict.verification.problems) problem.where.file = file;
}

/// A file in another program's format: what its runtime makes of it, and then as any program.
Verdict judge_foreign(const std::string& file, const Format& format, const std::string& text,
                      const std::optional<Machine>& machine, const VerifyOptions& options) {
  if (format.read_program == nullptr) {
    throw Error(ErrorKind::input, fmt::format("{} holds no program: it is {}", file, format.title),
                fmt::format("espalier show {}", file));
  }
  ForeignProgram foreign = format.read_program({text, file});
  Verdict verdict{file, {}, std::move(foreign.verification)};
  if (verdict.verification.ok() && foreign.has_program) {
    const bool is_consistent = verdict.verification.order_consistent;
    verdict = judge(file, foreign.program, machine, options);
    verdict.verification.order_consistent = is_consistent;
  }
  verdict.facts = printable(foreign.facts);
  verdict.notes = std::move(foreign.notes);
  return verdict;
}

Verdict judge_file(const std::string& file, const std::optional<Machine>& machine,
                   const VerifyOptions& options) {
  Verdict verdict;
  try {
    const std::string text = read_file(file);
    const Format* format = recognise_foreign(text, file);
    verdict = format != nullptr ? judge_foreign(file, *format, text, machine, options)
                                : judge(file, parse_program(text, file), machine, options);
  } catch (const Error& error) {
    verdict = {file, {}, {error.diagnostics()}, false};
  }
  name_file(file, verdict);
  return verdict;
}

/// What `tune --export` writes beside programs: choices.txt, and msccl_algos.xml, which MSCCL's
/// runtime reads.
bool is_list_of_programs(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  const std::string text = read_file(file);
  return trim(text).starts_with("<msccl_algos>") ||
         text.substr(0, text.find('\n')).find(kChoicesColumns) != std::string::npos;
}

/// Makes problems of warnings.
void take_strictly(Verdict& verdict) {
  std::vector<Diagnostic>& problems = verdict.verification.problems;
  if (!problems.empty()) return;
  for (const ForeignNote& note : verdict.notes) {
    if (note.severity != ForeignNote::Severity::warning) continue;
    problems.push_back({"strict", printable(note.text), "", {verdict.file, 0, 0}});
  }
}

/// Adds the verdicts; `impossible` gets what was asked for by name and can't be built.
void judge_algorithms(const std::vector<std::string>& specs, const ProgramRequest& request,
                      const VerifyOptions& options, const Console& console,
                      std::vector<Verdict>& verdicts, DiagnosticList& impossible) {
  const bool all = specs == std::vector<std::string>{"all"};
  std::vector<std::string> names = specs;
  if (all) {
    names.clear();
    for (const Algorithm* algorithm : all_algorithms()) names.push_back(algorithm->name);
  }
  for (const std::string& spec : names) {
    if (spec == "all") continue;
    const AlgorithmChoice choice = parse_algorithm(spec);
    for (const Collective collective : served(choice, request)) {
      const std::string name = fmt::format("{} {}", spec, to_string(collective));
      if (const auto reason = not_buildable(choice, collective, request)) {
        if (!all) impossible.add({}, fmt::format("{}: {}", name, *reason));
        if (all) say(console, fmt::format("skipped {}: {}", name, *reason));
        continue;
      }
      verdicts.push_back(
          judge(name, build_program(choice, collective, request), request.machine, options));
      if (choice.file) name_file(choice.file->path, verdicts.back());
      if (choice.file && choice.file->foreign) verdicts.back().notes = choice.file->foreign->notes;
    }
  }
}

void print(const Console& console, const Verdict& verdict) {
  const Verification& verification = verdict.verification;
  for (const Diagnostic& problem : verification.problems) say(console, render(problem));
  if (!verification.ok()) {
    console.out << fmt::format("FAILED  {}: {}\n", verdict.name,
                               counted(verification.problems.size(), "problem"));
    return;
  }
  console.out << styled(console, Style::good, "ok") << "      " << verdict.facts << '\n';
  for (const ForeignNote& note : verdict.notes) {
    console.out << "        " << render(note) << '\n';
  }
  if (!verification.order_consistent) {
    console.out
        << "        note [R9]: ranks combine inputs in different orders, so floating-point results "
           "may differ in the last bit\n";
  }
  if (verification.combines_in_switch) {
    console.out << "        note [R9]: ops in a switch add up in the switch's order, which is not "
                   "defined\n";
  }
  if (verification.proof == Proof::probabilistic) {
    console.out
        << "        note [R7]: results were compared by random sums, which miss a wrong one "
           "with a probability below 2^-60; --exact compares them exactly\n";
  }
}

/// A row for each program, with the first of its problems.
std::string verdicts_csv(const Json& verdicts) {
  CsvText text({"program", "ok", "proof", "order_consistent", "combines_in_switch", "problems",
                "rule", "message", "file", "line"});
  for (Json row : verdicts) {
    const Json problems = row["diagnostics"];
    row["problems"] = problems.size();
    if (!problems.empty()) {
      row.update(problems.front());
      row.update(problems.front()["where"]);
    }
    text.add(row);
  }
  return text.finish();
}

/// Notes options that say how to build a program when all programs come from files.
void refuse_building(Arguments& arguments) {
  for (const char* option :
       {"--ranks", "--collective", "--root", "--in-place", "--size", "--chunks"}) {
    if (!arguments.given(option)) continue;
    arguments.problem_of(option, "does not apply to a program in a file",
                         "it applies to the program of an --algorithm");
  }
}

VerifyOptions read_verify_options(Arguments& arguments) {
  VerifyOptions options;
  if (arguments.flag("--exact")) options.comparison = ResultComparison::exact;
  if (!arguments.given("--seed")) return options;
  options.seed = static_cast<std::uint64_t>(
      arguments.integer("--seed", 0, std::numeric_limits<std::int64_t>::max()));
  if (options.comparison == ResultComparison::exact) {
    arguments.problem("--exact and --seed exclude each other",
                      "an exact comparison does without random numbers");
  }
  return options;
}

int run_verify(Arguments& arguments, const Console& console) {
  const std::vector<std::string> specs = arguments.algorithms();
  const ProgramRequest request = read_program_request(arguments);
  const VerifyOptions options = read_verify_options(arguments);
  const std::string json_file = arguments.output("--json");
  const std::string csv_file = arguments.output("--csv");
  if (specs.empty() && arguments.positionals().empty()) {
    arguments.problem("nothing to verify", "give a FILE, or --algorithm A --ranks N");
  } else if (specs.empty()) {
    refuse_building(arguments);
  }
  for (const std::string& spec : specs) {
    if (spec == "all") continue;
    const auto choice = arguments.reading("--algorithm", [&] { return parse_algorithm(spec); });
    if (choice) require_served(arguments, *choice, request.collective);
  }
  arguments.finish();

  std::vector<Verdict> verdicts;
  for (const std::string& file : arguments.positionals()) {
    if (is_list_of_programs(file)) {
      say(console, fmt::format("skipped {}: a list of programs, which are files of their own",
                               printable(file)));
      continue;
    }
    verdicts.push_back(judge_file(file, request.machine, options));
  }
  DiagnosticList impossible;
  judge_algorithms(specs, request, options, console, verdicts, impossible);
  if (arguments.flag("--strict")) std::ranges::for_each(verdicts, take_strictly);
  bool ok = true;
  bool readable = true;
  bool any_random = false;
  Json json = Json::array();
  for (const Verdict& verdict : verdicts) {
    ok = ok && verdict.verification.ok();
    readable = readable && verdict.readable;
    any_random = any_random || verdict.verification.proof != Proof::exact;
    if (arguments.prints_text()) print(console, verdict);
    json.push_back(verification_json(verdict.name, verdict.verification, verdict.readable));
  }
  if (arguments.given("--seed") && !any_random) {
    say(console, "note: --seed was not needed: results were compared exactly");
  }
  if (!csv_file.empty()) write_output(console, csv_file, verdicts_csv(json));
  if (!json_file.empty()) {
    write_output(console, json_file, dump_results("espalier.verify/1", std::move(json)));
  }
  if (!readable) {
    for (const Diagnostic& problem : impossible.all()) say(console, render(problem));
    return exit_code(ErrorKind::input);
  }
  impossible.throw_if_any(ErrorKind::unsupported);
  return ok ? 0 : 1;
}

}  // namespace

const Verb& verify_verb() {
  static const Verb verb = {
      "verify",
      "prove a program right, or explain what is wrong with it",
      "Checks the rules of docs/ir.md: no race, no deadlock, no read of undefined data, and each "
      "element of each result combined from exactly the right inputs. Takes programs in files "
      "of the text form, or of MSCCL and MSCCL++, which are checked as their runtimes carry them "
      "out, "
      "(- for standard input) or builds those of algorithms. With a machine, each transfer must "
      "have a route there. The exit code is 1 if a rule is broken and 2 if a file is not a "
      "program; the "
      "others are judged all the same. A warning says that the runtime of another format would "
      "refuse a program, hang or do something else, or that this was not ruled out; with --strict "
      "it is a failure. Results are compared exactly, but for those of very large "
      "programs: random sums stand for their inputs, and the verdict says so.",
      {"FILE", "programs, in the text form that `show` prints or another format", WordKind::file, 0,
       1'000'000},
      program_options({{"--algorithm"}},
                      {{"--exact"}, {"--seed"}, {"--strict"}, {"--json"}, {"--csv"}}),
      {{"verify my_allreduce.esp", "a program of your own"},
       {"verify theirs.xml plan.json --strict", "and that nothing is known to go wrong in MSCCL"},
       {"verify --algorithm all --ranks 7", "every algorithm on seven ranks"},
       {"verify --algorithm ring --topology dgx1-v100 --gpus 0-3",
        "also check that every transfer has a route"}},
      run_verify};
  return verb;
}

}  // namespace espalier

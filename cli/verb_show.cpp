// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "algorithms/program_file.h"
#include "cli/programs.h"
#include "cli/show_model.h"
#include "cli/show_topology.h"
#include "cli/verb.h"
#include "core/file.h"
#include "formats/format.h"
#include "formats/machine.h"
#include "formats/measured_tables.h"
#include "ir/text.h"
#include "report/shown.h"
#include "scenarios/scenario.h"
#include "topologies/load.h"
#include "training/model.h"

namespace espalier {

namespace {

enum class Thing { topology, algorithm, scenario, model, program, tables };

bool knows(WordKind kind, const std::string& name) {
  const std::vector<std::string> words = words_of(kind);
  return name != "all" && std::ranges::count(words, name) > 0;
}

/// A file, or a link that leads to none, which reading says.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

/// What the text of a file is: YAML schemas name themselves.
Thing thing_in_file(const std::string& text, const std::string& file) {
  if (text.find("espalier.scenario/") != std::string::npos) return Thing::scenario;
  if (text.find("espalier.topology/") != std::string::npos) return Thing::topology;
  if (text.find("espalier.model/") != std::string::npos) return Thing::model;
  const Format* foreign = recognise_foreign(text, file);
  if (foreign == nullptr || foreign->read_program != nullptr) return Thing::program;
  return foreign->read_machine != nullptr ? Thing::topology : Thing::tables;
}

/// Notes a problem when `spec` is nothing, or several things.
std::optional<Thing> resolve(Arguments& arguments, const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  const bool topology = knows(WordKind::topology, name);
  const bool algorithm = knows(WordKind::algorithm, name);
  const bool scenario = knows(WordKind::scenario, name);
  const bool builds = arguments.given("--ranks") || arguments.given("--collective") ||
                      arguments.given("--topology") || arguments.given("--chunks");
  if (algorithm && builds) return Thing::algorithm;
  if (topology && (!algorithm || spec != name || arguments.given("--dot"))) return Thing::topology;
  if (topology && algorithm) {
    arguments.problem(
        fmt::format("{} is both a machine and an algorithm", quote(name)),
        fmt::format("show {0}:n=8 shows the machine, show {0} --ranks 8 the program", name));
    return std::nullopt;
  }
  if (algorithm) return Thing::algorithm;
  if (scenario) return Thing::scenario;
  if (knows(WordKind::model, name)) return Thing::model;
  if (is_there(spec) || is_there(name)) {
    const std::string& file = is_there(spec) ? spec : name;
    const Thing thing = thing_in_file(read_file(file), file);
    // As it is, or as an algorithm's program for what the options say.
    const bool is_asked = builds || arguments.given("--root") || arguments.given("--in-place");
    return thing == Thing::program && is_asked && is_program_file(spec) ? Thing::algorithm : thing;
  }
  if (spec.ends_with(".esp")) read_program_file(spec);  // throws, and knows similar names
  if (spec.find('/') != std::string::npos || spec.ends_with(".yaml")) {
    arguments.problem(fmt::format("there is no file {}", quote(spec)));
    return std::nullopt;
  }
  arguments.problem(
      fmt::format("there is no machine, algorithm, scenario, model or file {}", quote(name)),
      did_you_mean(name, words_of(WordKind::nameable), synonyms_of(WordKind::nameable)));
  return std::nullopt;
}

/// Notes the options given that mean nothing for such a thing.
void refuse_options(Arguments& arguments, Thing thing) {
  const bool is_algorithm = thing == Thing::algorithm;
  const std::string_view called = thing == Thing::topology   ? "a machine"
                                  : thing == Thing::scenario ? "a scenario"
                                  : thing == Thing::model    ? "a model"
                                  : thing == Thing::tables   ? "measured tables"
                                  : is_algorithm             ? "an algorithm's program"
                                                             : "a program in a file";
  for (const OptionUse& use : arguments.verb().options) {
    const bool is_dot = use.name == "--dot";
    const bool is_save = use.name == "--save";
    const bool is_rows = use.name == "--json" || use.name == "--csv";
    const bool fits = is_dot    ? thing == Thing::topology
                      : is_rows ? thing == Thing::topology || thing == Thing::model
                      : is_save ? is_algorithm || thing == Thing::program
                                : is_algorithm;
    if (fits || !arguments.given(use.name)) continue;
    arguments.problem_of(use.name, fmt::format("does not apply to {}", called),
                         is_dot    ? "--dot draws machines"
                         : is_rows ? "this option applies to machines and models"
                                   : "this option applies to the program of an algorithm");
  }
}

void print_or_save(Arguments& arguments, const Console& console, const Program& program) {
  const std::string file = arguments.text("--save");
  write_output(console, file.empty() ? "-" : file, print_program(program));
}

/// Returns the exit code.
int show_algorithm(Arguments& arguments, const Console& console, const std::string& spec) {
  const ProgramRequest request = read_program_request(arguments);
  const AlgorithmChoice choice = parse_algorithm(spec);
  require_served(arguments, choice, request.collective);
  arguments.finish();
  const Collective collective = served(choice, request).front();
  if (const auto reason = not_buildable(choice, collective, request)) {
    throw Error(ErrorKind::unsupported, fmt::format("{}: {}", spec, *reason));
  }
  if (choice.file) {
    const Verification verification = verify(*choice.file);
    for (const Diagnostic& problem : verification.problems) say(console, render(problem));
    if (!verification.ok()) return 1;
  }
  print_or_save(arguments, console, build_program(choice, collective, request));
  return 0;
}

/// A program in a file: in the text form, after what there is to say of a foreign one.
int show_program(Arguments& arguments, const Console& console, const std::string& file) {
  const std::string text = read_file(file);
  const Format* format = recognise_foreign(text, file);
  if (format == nullptr) {
    print_or_save(arguments, console, parse_program(text, file));
    return 0;
  }
  const ForeignProgram foreign = format->read_program({text, file});
  say(console, fmt::format("{}: {}", format->title, printable(foreign.facts)));
  for (const ForeignNote& note : foreign.notes) say(console, render(note));
  for (Diagnostic problem : foreign.verification.problems) {
    problem.where.file = file;
    say(console, render(problem));
  }
  if (!foreign.verification.ok()) return 1;
  if (foreign.has_program) print_or_save(arguments, console, foreign.program);
  return 0;
}

void show_scenario(const Console& console, const std::string& name) {
  const auto& scenarios = builtin_scenarios();
  const auto known = std::ranges::find(scenarios, name, &ScenarioEntry::name);
  const std::string text = known != scenarios.end() ? known->yaml : read_file(name);
  parse_scenario(text, name);  // a wrong one is not shown but diagnosed
  console.out << text;
}

void show_machine(Arguments& arguments, const Console& console, const Topology& machine) {
  const std::string json = arguments.text("--json"), csv = arguments.text("--csv");
  if (arguments.given("--dot")) {
    write_output(console, arguments.text("--dot"), topology_dot(machine));
  } else if (arguments.prints_text()) {
    show_topology(console, machine);
  }
  if (!json.empty()) write_output(console, json, machine_json(machine));
  if (!csv.empty()) write_output(console, csv, machine_csv(machine));
}

void show_network(Arguments& arguments, const Console& console, const Model& model) {
  const std::string json = arguments.text("--json"), csv = arguments.text("--csv");
  if (arguments.prints_text()) show_model(console, model);
  if (!json.empty()) write_output(console, json, model_json(model));
  if (!csv.empty()) write_output(console, csv, model_csv(model));
}

int run_show(Arguments& arguments, const Console& console) {
  for (const char* option : {"--dot", "--save", "--json", "--csv"}) arguments.output(option);
  arguments.finish();
  const std::string& spec = arguments.positionals().front();
  const auto thing = resolve(arguments, spec);
  if (thing) refuse_options(arguments, *thing);
  arguments.finish();
  switch (*thing) {
    case Thing::topology:
      show_machine(arguments, console, open_machine(spec));
      break;
    case Thing::algorithm:
      return show_algorithm(arguments, console, spec);
    case Thing::scenario:
      show_scenario(console, spec);
      break;
    case Thing::model:
      show_network(arguments, console, load_model(spec));
      break;
    case Thing::program:
      return show_program(arguments, console, spec);
    case Thing::tables: {
      const std::string text = read_file(spec);
      console.out << describe(recognise(text)->read_tables({text, spec}));
      break;
    }
  }
  return 0;
}

}  // namespace

const Verb& show_verb() {
  static const Verb verb = {
      "show",
      "print a machine, an algorithm's program, a scenario, a model or what a file holds",
      "For a machine: its nodes and links, a matrix as nvidia-smi topo -m prints it, and what each "
      "profile makes of the links. For an algorithm: its program in the text form that verify "
      "reads; that of nccl is another one for every --size. For a scenario: its file. For a model: "
      "its gradients and step times.",
      {"NAME", "a name from list, or a file", WordKind::nameable, 1, 1},
      program_options({}, {{"--dot"}, {"--save"}, {"--json"}, {"--csv"}}),
      {{"show dgx1-v100", "a machine"},
       {"show ./nccl_topo.xml", "a file of another program: what it holds"},
       {"show dgx1-v100 --dot", "the same machine as a Graphviz graph"},
       {"show dgx1-v100 --csv links.csv", "and its links as a table for other programs"},
       {"show ring --ranks 4 --collective allreduce", "a program"},
       {"show nccl --topology dgx-a100 --size 1MiB", "what NCCL makes of a message"},
       {"show quickstart", "a scenario"},
       {"show resnet50", "a model: the sizes of its gradients, and its step times"}},
      run_show};
  return verb;
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <numeric>
#include <optional>

#include "algorithms/program_file.h"
#include "cli/exporting.h"
#include "cli/programs.h"
#include "cli/text.h"
#include "cli/verb.h"
#include "core/file.h"
#include "core/words.h"
#include "formats/machine.h"
#include "ir/instances.h"
#include "sim/simulator.h"
#include "topologies/load.h"

namespace espalier {

namespace {

/// Whether the words before a colon are a file with a program.
bool holds_program(const std::string& spec) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(spec, ignored)) return false;
  const std::string text = read_file(spec);
  if (text.find("espalier.topology/") != std::string::npos) return false;
  const Format* format = recognise_foreign(text, spec);
  return format == nullptr || format->read_program != nullptr;
}

/// Which GPUs are on one computer, and whose they are.
void add_machine(Arguments& arguments, const Topology& machine, const Program& program,
                 WritingOptions& options) {
  const std::vector<NodeId> gpus = machine.gpus();
  const auto ranks = static_cast<std::size_t>(program.ranks());
  if (gpus.size() < ranks) {
    arguments.problem_of(
        "--topology", fmt::format("the machine has {}, the program {}", counted(gpus.size(), "GPU"),
                                  counted(ranks, "rank")));
    return;
  }
  describe_gpus(machine, {gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(ranks)},
                options);
}

/// The size to simulate for; notes a problem where there are several, or there is no machine.
std::int64_t read_size(Arguments& arguments) {
  if (arguments.given("--size") && !arguments.given("--topology")) {
    arguments.problem("--size says for which message --topology simulates", "--topology MACHINE");
  }
  const std::vector<std::int64_t> sizes = arguments.sizes("--size");
  if (sizes.size() > 1) arguments.problem_of("--size", "one size is simulated");
  return sizes.empty() ? 0 : sizes.front();
}

/// On the first GPUs of the machine.
void say_times_there(const Console& console, const ExportTarget& target, const Topology& machine,
                     std::int64_t size_bytes, const Program& program, const Written& written) {
  Simulator simulator;
  Study study(simulator, &simulator);
  Query query;
  query.topology = machine.name;
  query.collective = program.contract.collective;
  query.root = program.contract.root;
  query.in_place = program.contract.in_place;
  query.size_bytes = size_bytes;
  query.gpus.resize(static_cast<std::size_t>(program.ranks()));
  std::iota(query.gpus.begin(), query.gpus.end(), 0);
  study.know_machine(query.topology, machine);
  say_times(console, target, study, query, program, written);
}

int convert_program(Arguments& arguments, const Console& console, const std::string& from,
                    const std::string& to) {
  const ExportTarget target = export_target(arguments, to, Exported::program);
  std::optional<Topology> machine;
  if (arguments.given("--topology")) {
    machine =
        arguments.reading("--topology", [&] { return open_machine(arguments.text("--topology")); });
  }
  const std::int64_t size_bytes = read_size(arguments);
  const auto count = static_cast<int>(arguments.integer("--instances", 1, kMostInstances));
  arguments.finish();
  const auto file = read_program_file(from);
  const Verification verification = verify(*file);
  for (const Diagnostic& problem : verification.problems) say(console, render(problem));
  if (!verification.ok()) return 1;
  if (file->foreign) {
    for (const ForeignNote& note : file->foreign->notes) say(console, render(note));
  }
  WritingOptions options;
  if (file->foreign) {
    options.protocol = file->foreign->protocol;
    options.min_bytes = file->foreign->min_bytes;
    options.max_bytes = file->foreign->max_bytes;
    options.host_of_rank = file->foreign->host_of_rank;
  }
  if (machine) add_machine(arguments, *machine, file->program, options);
  arguments.finish();
  const Written written = export_program(console, target, instances(file->program, count), options);
  if (target.format == nullptr && file->foreign) {
    if (const std::string lost = beside_program(*file->foreign); !lost.empty()) {
      say(console, "note: the text form does not say this of the file: " + printable(lost));
    }
  }
  if (machine) {
    say_times_there(console, target, *machine, size_bytes, file->program, written);
  } else if (written.is_reshaped) {
    say(console,
        "note: the program was brought into another form, so that it may take longer; --topology "
        "says how long on a machine");
  }
  return 0;
}

int run_convert(Arguments& arguments, const Console& console) {
  arguments.finish();
  const std::string& from = arguments.positionals()[0];
  if (from == "-") {
    arguments.problem("convert does not read standard input", "save it in a file first");
    arguments.finish();
  }
  const std::string to = arguments.output_word(1);
  arguments.finish();
  if (holds_program(from)) return convert_program(arguments, console, from, to);
  for (const char* option : {"--instances", "--topology", "--size"}) {
    if (arguments.given(option)) {
      arguments.problem_of(option, fmt::format("applies to programs, but {} is a machine", from));
    }
  }
  const ExportTarget target = export_target(arguments, to, Exported::machine);
  arguments.finish();
  const Topology machine = open_machine(from);
  for (const std::string& note : machine.notes) say(console, "note: " + printable(note));
  export_machine(console, target, machine);
  return 0;
}

}  // namespace

const Verb& convert_verb() {
  static const Verb verb = {
      "convert",
      "write a machine or a program in another program's format",
      "Reads a machine (a name from list, or a file) or a program (a file), and writes it as "
      "another program reads it. Formats are known by content when they are read, and by the "
      "ending of the name, or --to, when they are written; docs/formats.md describes them. A "
      "program is verified first, what is written is read back and compared, and what a format "
      "can't say is refused. Notes say what was guessed or left out. Some programs have to be "
      "brought into a form that a format can express; with a machine, what is written is simulated "
      "beside what was read.",
      {"IN OUT", "what to read, and the file to write; - for standard output", WordKind::nameable,
       2, 2},
      {{"--to"}, {"--instances", "1"}, {"--topology"}, {"--size", "1GiB"}},
      {{"convert dgx-h100 topo.xml", "a topology file for NCCL_TOPO_FILE"},
       {"convert ./plan.esp plan.json", "an execution plan for MSCCL++"},
       {"convert ./plan.esp plan.json --topology dgx-a100:nodes=2",
        "the same for ranks on two computers, whose GPUs can't read each other"},
       {"convert ./theirs.xml ours.esp", "MSCCL's algorithm in the text form"},
       {"convert dgx1-v100 - --to simgrid-platform", "a platform file of SimGrid"}},
      run_convert};
  return verb;
}

}  // namespace espalier

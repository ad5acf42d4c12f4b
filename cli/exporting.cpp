// SPDX-License-Identifier: Apache-2.0
#include "cli/exporting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/text.h"
#include "core/words.h"
#include "ir/print.h"
#include "scenarios/buildable.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr std::string_view kOwnProgram = "esp";
constexpr std::string_view kOwnMachine = "yaml";

bool can_write(const Format& format, Exported what) {
  return what == Exported::machine ? format.write_machine != nullptr
                                   : format.write_program != nullptr;
}

/// The formats that such a thing can be written in.
std::vector<std::string> names_for(Exported what) {
  std::vector<std::string> names{
      std::string(what == Exported::machine ? kOwnMachine : kOwnProgram)};
  for (const Format* format : all_formats()) {
    if (can_write(*format, what)) names.push_back(format->name);
  }
  return names;
}

/// Where several formats have an ending, the one that is meant most often.
const Format* by_ending(const std::string& path, Exported what) {
  static const std::array<std::string_view, 3> kFirst{"msccl-xml", "mscclpp-json", "nccl-topology"};
  const Format* found = nullptr;
  for (const Format* format : all_formats()) {
    if (!can_write(*format, what) || !path.ends_with(format->extension)) continue;
    const bool is_first = std::ranges::count(kFirst, format->name) > 0;
    if (found == nullptr || is_first) found = format;
  }
  return found;
}

void finish_writing(const Console& console, const ExportTarget& target, const Written& written) {
  write_output(console, target.path, written.text);
  for (const std::string& note : written.notes) say(console, "note: " + printable(note));
  if (target.path == "-") return;
  say(console, fmt::format("wrote {} ({})", printable(target.path),
                           target.format == nullptr ? "Espalier" : target.format->title));
}

const std::string& algorithm_of(const Outcome& outcome) {
  return outcome.chosen.empty() ? outcome.query.algorithm : outcome.chosen;
}

}  // namespace

ExportTarget export_target(Arguments& arguments, const std::string& path, Exported what) {
  ExportTarget target{path};
  if (path.empty()) return target;
  const std::string name = arguments.text("--to");
  const std::string_view own = what == Exported::machine ? kOwnMachine : kOwnProgram;
  const std::vector<std::string> names = names_for(what);
  const std::string things = what == Exported::machine ? "machines" : "programs";
  if (!name.empty()) {
    if (name == own) return target;
    const auto known = std::ranges::find(all_formats(), name, &Format::name);
    if (known == all_formats().end() || !can_write(**known, what)) {
      arguments.problem_of("--to", fmt::format("{} can't be written as {}", things, quote(name)),
                           fmt::format("one of: {}", join(names, ", ")));
      return target;
    }
    target.format = *known;
    return target;
  }
  if (path.ends_with("." + std::string(own))) return target;
  target.format = by_ending(path, what);
  if (target.format == nullptr) {
    arguments.problem(
        fmt::format("{} does not say in which format {} are to be written", quote(path), things),
        fmt::format("--to, with one of: {}", join(names, ", ")));
  }
  return target;
}

ExportTarget read_export(Arguments& arguments) {
  if (!arguments.given("--export")) {
    if (arguments.given("--to"))
      arguments.problem("--to says how --export writes", "--export FILE");
    return {};
  }
  return export_target(arguments, arguments.output("--export"), Exported::program);
}

WritingOptions writing_options(const Machine& machine) {
  WritingOptions options;
  for (const NodeId gpu : machine.placement.ranks) {
    options.host_of_rank.push_back(machine.topology->node(gpu).host);
  }
  return options;
}

void export_program(const Console& console, const ExportTarget& target, const Program& program,
                    const WritingOptions& options) {
  finish_writing(console, target,
                 target.format == nullptr ? Written{print_program(program), {}}
                                          : target.format->write_program(program, options));
}

void export_machine(const Console& console, const ExportTarget& target, const Topology& machine) {
  finish_writing(console, target,
                 target.format == nullptr ? Written{print_topology(machine), {}}
                                          : target.format->write_machine(machine));
}

std::shared_ptr<const Program> whole_program(Study& study, const Outcome& outcome) {
  Query query = outcome.query;
  query.algorithm = algorithm_of(outcome);
  return build_on(study.machine(query), study.choice(query.algorithm), query).program;
}

void export_outcome(const Console& console, const ExportTarget& target, Study& study,
                    const Outcome& outcome) {
  WritingOptions options = writing_options(study.machine(outcome.query));
  options.protocol = outcome.protocol;
  say(console, "exporting " + algorithm_of(outcome));
  export_program(console, target, *whole_program(study, outcome), options);
}

}  // namespace espalier

// SPDX-License-Identifier: Apache-2.0
#include "cli/exporting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "algorithms/program_file.h"
#include "cli/programs.h"
#include "cli/text.h"
#include "core/units.h"
#include "core/words.h"
#include "ir/instances.h"
#include "ir/print.h"
#include "scenarios/buildable.h"
#include "topologies/load.h"

namespace espalier {
namespace {

constexpr int kMostLanes = 65536;
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

/// As other formats, it is read back before anything is written.
Written written_as_yaml(const Topology& machine) {
  Written written{print_topology(machine), {}};
  try {
    parse_topology(written.text, machine.name);
  } catch (const Error& error) {
    throw Error(ErrorKind::unsupported, fmt::format("YAML can't say what {} is: {}", machine.name,
                                                    error.diagnostics().front().message));
  }
  return written;
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

void read_instances(Arguments& arguments, ExportTarget& target) {
  if (arguments.text("--instances") == "auto") return;
  target.instances = static_cast<int>(arguments.integer("--instances", 1, kMostInstances));
}

ExportTarget read_export(Arguments& arguments) {
  if (!arguments.given("--export")) {
    for (const char* option : {"--to", "--instances"}) {
      if (!arguments.given(option)) continue;
      arguments.problem(fmt::format("{} says how --export writes", option), "--export FILE");
    }
    return {};
  }
  ExportTarget target = export_target(arguments, arguments.output("--export"), Exported::program);
  for (const char* option : {"--algorithm", "--topology"}) {
    for (const std::string& word : arguments.words(option)) {
      std::error_code ignored;
      if (std::filesystem::equivalent(word, target.path, ignored)) {
        arguments.problem_of("--export", fmt::format("{} is read by {}", quote(word), option));
      }
    }
  }
  read_instances(arguments, target);
  return target;
}

Written write_for_machine(const Program& program, const ExportTarget& target,
                          const Machine& machine, const WritingOptions& options) {
  if (target.format == nullptr) {
    return {print_program(instances(program, std::max(target.instances, 1))), {}};
  }
  int lanes = 1;
  for (const Op& op : program.ops) lanes = std::max(lanes, op.lane + 1);
  const int blocks = machine.router->profile().blocks;
  const int most = target.format->is_repeated_by_reader ? 1 : kMostInstances;
  int count = target.instances > 0 ? target.instances : std::clamp(blocks / lanes, 1, most);
  const auto has_room = [&] {
    return program.contract.units <= kMaxUnits / count && lanes <= kMostLanes / count;
  };
  if (target.instances == 0 && target.format->needs_whole_chunks)
    count = std::bit_floor(static_cast<unsigned>(count));
  while (count > 1 && !has_room()) count /= 2;
  for (;; count /= 2) {
    try {
      Written written = target.format->write_program(instances(program, count), options);
      if (count > 1) {
        written.notes.insert(
            written.notes.begin(),
            fmt::format("{} instances side by side, of {} each: a GPU has {} blocks, and a lane is "
                        "one there; --instances 1 writes one",
                        count, counted(static_cast<std::size_t>(lanes), "lane"), blocks));
      }
      return written;
    } catch (const Error& error) {
      // Fewer may have room.
      if (error.kind() != ErrorKind::unsupported || target.instances > 0 || count == 1) throw;
    }
  }
}

void describe_gpus(const Topology& machine, const std::vector<NodeId>& gpus,
                   WritingOptions& options) {
  // Hosts that the GPU fabric joins are one: their GPUs read each other.
  std::map<int, int> joined;
  const std::function<int(int)> first_of = [&](int host) {
    const auto other = joined.find(host);
    return other == joined.end() ? host : first_of(other->second);
  };
  std::map<NodeId, int> host_at_switch;
  for (const Link& link : machine.links) {
    if (link.link_class != LinkClass::gpu_fabric) continue;
    for (const auto& [end, other] : {std::pair(link.a, link.b), {link.b, link.a}}) {
      if (machine.node(end).kind != NodeKind::gpu) continue;
      const int host = first_of(machine.node(end).host);
      const bool is_gpu = machine.node(other).kind == NodeKind::gpu;
      const int there = is_gpu ? first_of(machine.node(other).host)
                               : first_of(host_at_switch.try_emplace(other, host).first->second);
      if (there != host) joined[std::max(there, host)] = std::min(there, host);
    }
  }
  options.host_of_rank.clear();
  for (const NodeId gpu : gpus) {
    options.host_of_rank.push_back(first_of(machine.node(gpu).host));
  }
  options.for_amd = machine.node(gpus.front()).model.starts_with("mi");
}

WritingOptions writing_options(const Machine& machine) {
  WritingOptions options;
  describe_gpus(*machine.topology, machine.placement.ranks, options);
  return options;
}

Written export_program(const Console& console, const ExportTarget& target, const Program& program,
                       const WritingOptions& options) {
  Written written = target.format == nullptr ? Written{print_program(program), {}}
                                             : target.format->write_program(program, options);
  finish_writing(console, target, written);
  return written;
}

Written export_for_machine(const Console& console, const ExportTarget& target,
                           const Program& program, const Machine& machine,
                           const WritingOptions& options) {
  Written written = write_for_machine(program, target, machine, options);
  finish_writing(console, target, written);
  return written;
}

void export_machine(const Console& console, const ExportTarget& target, const Topology& machine) {
  finish_writing(
      console, target,
      target.format == nullptr ? written_as_yaml(machine) : target.format->write_machine(machine));
}

std::string word_of_written(const Written& written) {
  return fmt::format("./what is written ({:x})", std::hash<std::string>()(written.text));
}

TimesOfWritten time_written(Study& study, const Query& query, const Written& written,
                            double before_s) {
  Query after = query;
  after.algorithm = word_of_written(written);
  after.chunk_bytes.reset();
  after.judge = false;
  study.know_program(after.algorithm, program_file_of(written.text, after.algorithm));
  const Outcome outcome = study.ask(after);
  if (outcome.skipped) return {after.size_bytes, before_s, 0, *outcome.skipped};
  if (!outcome.verified) return {after.size_bytes, before_s, 0, outcome.problems.front().message};
  return {after.size_bytes, before_s, outcome.report.time_s, {}};
}

std::string describe(const TimesOfWritten& times) {
  const std::string with = " with " + describe_size(times.size_bytes);
  if (!times.why_not.empty()) return fmt::format("not simulated{}: {}", with, times.why_not);
  const std::string before = fit_number(times.before_s * 1e6, 7);
  const std::string after = fit_number(times.after_s * 1e6, 7);
  const auto under = [](const std::string& profile) {
    return profile.empty() ? std::string() : fmt::format(" under profile {}", profile);
  };
  if (before == after && times.before_profile == times.after_profile) {
    return fmt::format("simulated{}: {} us as it is written, as before", with, after);
  }
  return fmt::format("simulated{}: {} us as it is written{}, {} us before{}", with, after,
                     under(times.after_profile), before, under(times.before_profile));
}

void say_times(const Console& console, const ExportTarget& target, Study& study, Query query,
               const Program& program, const Written& written) {
  if (target.format == nullptr) return;
  query.algorithm = "./what was given";
  query.chunk_bytes.reset();
  query.judge = false;
  study.know_program(query.algorithm, program_file_of(program, query.algorithm));
  const Outcome before = study.ask(query);
  const TimesOfWritten times =
      before.ran()
          ? time_written(study, query, written, before.report.time_s)
          : TimesOfWritten{query.size_bytes, 0, 0, before.skipped.value_or("the program is wrong")};
  say(console, describe(times));
}

std::shared_ptr<const Program> whole_program(Study& study, const Outcome& outcome) {
  Query query = outcome.query;
  query.algorithm = algorithm_of(outcome);
  Built built = build_on(study.machine(query), study.choice(query.algorithm), query);
  if (built.why_not) {
    throw Error(ErrorKind::unsupported,
                fmt::format("{} cannot be written: it {}", query.algorithm, *built.why_not));
  }
  return std::move(built.program);
}

void export_outcome(const Console& console, const ExportTarget& target, Study& study,
                    const Outcome& outcome) {
  WritingOptions options = writing_options(study.machine(outcome.query));
  options.protocol = outcome.protocol;
  // A protocol for short messages is not for longer ones than were looked at.
  if (!outcome.protocol.empty() && outcome.protocol != "simple") {
    options.max_bytes = outcome.query.size_bytes;
  }
  say(console, "exporting " + algorithm_of(outcome));
  const Written written = export_for_machine(console, target, *whole_program(study, outcome),
                                             study.machine(outcome.query), options);
  if (target.format == nullptr || !outcome.report.simulated) return;
  TimesOfWritten times = time_written(study, outcome.query, written, outcome.report.time_s);
  const std::string runtime = profile_word(outcome.query.profile).runtime;
  if (outcome.profile != runtime) {
    times.before_profile = outcome.profile;
    times.after_profile = runtime;
  }
  say(console, describe(times));
}

}  // namespace espalier
